import { type Clock, delay, timestamp } from '../../base/clock.ts';
import { AgentError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import {
  type ChangeKind,
  type ChangeRecord,
  changeRecordKey,
  decodeChangeRecord,
  encodeChangeRecord,
} from '../../etcd/change-record.ts';
import { outcomeOf } from '../../etcd/error-table.ts';
import type { EtcdKey } from '../../etcd/keys.ts';
import { type ClusterId, formatId, type MemberList, parseId } from '../../etcd/member.ts';
import type { Effects } from '../effects.ts';
import type { ClusterPort } from '../ports.ts';

/** Deadline of one read or write of the record. Unit: ms. */
const keyMs = 3_000;
/** The same for one that an earlier agent left: it also goes by itself. Unit: ms. */
const dropMs = 1_000;
/** A record that this version cannot read is waited out as long as any may last. Unit: ms. */
const unreadableWaitMs = 60_000;

/** Somebody else changes the cluster now; asked again later. Nothing was changed. */
export class ChangeUnderWayError extends AgentError {
  readonly code = 'CHANGE_UNDER_WAY';
  /** When it may be taken over. Unit: ms from now. */
  readonly againMs: number;
  constructor(message: string, againMs: number) {
    super(message, { hint: 'One membership change at a time; the agent tries again by itself.' });
    this.againMs = againMs;
  }
}

/** The record is not ours any more: the change was not sent. */
export class ChangeLostError extends AgentError {
  readonly code = 'CHANGE_LOST';
}

/** What is wanted, for the record. */
export interface ChangeIntent {
  readonly clusterId: ClusterId;
  readonly kind: ChangeKind;
  /** Member id in hex; for `addLearner` the peer URL. */
  readonly target: string;
  /** How long the call may take, with some time for its late application. Unit: ms. */
  readonly waitMs: number;
}

/** A record that somebody left, and what became of its change. */
export interface Resolved {
  readonly record: ChangeRecord | undefined;
  readonly applied: boolean | 'unknown';
}

export interface ChangeLockOptions {
  readonly cluster: ClusterPort;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly effects: Effects;
  readonly nodeId: string;
  /** An earlier agent of this node was ended in a change: its record may stand in etcd. */
  readonly interrupted: boolean;
  /** Told when a record that nobody cleared was resolved and cleared. */
  readonly onResolved: (resolved: Resolved) => void;
}

/** The held change record. */
export interface HeldRecord {
  readonly record: ChangeRecord;
  /** As it was written last. */
  readonly key: EtcdKey;
}

/**
 * The change record: created only if absent, held for one change, and taken over from whoever died with it. etcd itself
 * cannot fence a membership change by a transaction; this can.
 */
export class ChangeLock {
  readonly #options: ChangeLockOptions;
  /** When a revision of somebody's record was first seen here. */
  #firstSight: { readonly revision: bigint; readonly atMs: number } | undefined;
  #mayStand: boolean;

  constructor(options: ChangeLockOptions) {
    this.#options = options;
    this.#mayStand = options.interrupted;
  }

  /** A record of this node may stand in etcd, and nobody is known to clear it. */
  get mayStand(): boolean {
    return this.#mayStand;
  }

  /** Resolves and clears what this node has left there, if it did. Throws {@link ChangeUnderWayError} while its call may be on its way. */
  async resolveOwn(endpoint: string, clusterId: ClusterId, listNow: () => Promise<MemberList>): Promise<void> {
    const key = await this.#options.cluster.keys(endpoint).get(changeRecordKey, { deadlineMs: keyMs });
    const record = key === undefined ? undefined : decodeChangeRecord(key.value);
    if (record?.by === this.#options.nodeId) await this.#clearTheWay(endpoint, clusterId, listNow);
    this.#mayStand = false;
  }

  /**
   * Creates the record. Throws {@link ChangeUnderWayError} while somebody else holds it, and EtcdError if etcd cannot be
   * written. A record that was waited out is resolved and cleared on the way; `listNow` reads a linearizable list.
   */
  async take(endpoint: string, intent: ChangeIntent, listNow: () => Promise<MemberList>): Promise<HeldRecord> {
    const { clock, random, nodeId } = this.#options;
    const record: ChangeRecord = {
      clusterId: formatId(intent.clusterId),
      operation: random.hex(8),
      kind: intent.kind,
      target: intent.target,
      by: nodeId,
      phase: 'checking',
      waitMs: intent.waitMs,
      at: timestamp(clock),
    };
    await this.#clearTheWay(endpoint, intent.clusterId, listNow);
    return await this.#create(endpoint, record);
  }

  /** From now on the change may be on its way. Throws {@link ChangeLostError} if somebody has rewritten the record. */
  async sending(endpoint: string, held: HeldRecord): Promise<HeldRecord> {
    return await this.#options.effects.doing('record.sending', () =>
      this.#rewrite(endpoint, held, { ...held.record, phase: 'sending' }),
    );
  }

  /** Removes the record if it is still ours; whoever took it over clears it otherwise. */
  async clear(endpoint: string, held: HeldRecord): Promise<void> {
    const keys = this.#options.cluster.keys(endpoint);
    const { applied } = await this.#options.effects.doing('record.clear', () =>
      keys.remove(held.key, { deadlineMs: keyMs }),
    );
    if (!applied) await this.#clearRewritten(endpoint, held);
    this.#mayStand = false;
  }

  /** A rewriting of ours whose answer was lost: the record is still this operation's, under another revision. */
  async #clearRewritten(endpoint: string, { record }: HeldRecord): Promise<void> {
    const keys = this.#options.cluster.keys(endpoint);
    const key = await keys.get(changeRecordKey, { deadlineMs: keyMs });
    const found = key === undefined ? undefined : decodeChangeRecord(key.value);
    if (key === undefined || found?.operation !== record.operation || found.by !== this.#options.nodeId) return;
    await keys.remove(key, { deadlineMs: keyMs });
  }

  /** Removes a record that an earlier agent of this node left, if nothing of its change can be on its way any more. */
  async dropOwn(endpoint: string, clusterId: ClusterId): Promise<void> {
    const keys = this.#options.cluster.keys(endpoint);
    const key = await keys.get(changeRecordKey, { deadlineMs: dropMs });
    const record = key === undefined ? undefined : decodeChangeRecord(key.value);
    // An endpoint of the role may belong to another cluster, in which a node has the same name.
    if (key === undefined || record?.clusterId !== formatId(clusterId) || !this.#needsNoWaiting(record)) return;
    await this.#options.effects.doing('record.clear', () => keys.remove(key, { deadlineMs: dropMs }));
  }

  async #create(endpoint: string, record: ChangeRecord): Promise<HeldRecord> {
    const { cluster, effects } = this.#options;
    const keys = cluster.keys(endpoint);
    const value = encodeChangeRecord(record);
    this.#mayStand = true;
    try {
      await effects.doing('record.create', () => keys.create(changeRecordKey, value, { deadlineMs: keyMs }));
    } catch (error) {
      // It may have been written all the same; what stands there decides.
      if (!(error instanceof AgentError)) throw error;
      if (outcomeOf(error) === 'refused') {
        this.#mayStand = false;
        throw error;
      }
    }
    const key = await keys.get(changeRecordKey, { deadlineMs: keyMs });
    if (key === undefined) throw new ChangeLostError('the change record could not be written');
    if (key.value === value) return { record, key };
    this.#mayStand = false;
    throw this.#busy(decodeChangeRecord(key.value), key);
  }

  async #rewrite(endpoint: string, held: HeldRecord, record: ChangeRecord): Promise<HeldRecord> {
    const keys = this.#options.cluster.keys(endpoint);
    const value = encodeChangeRecord(record);
    try {
      await keys.replace(held.key, value, { deadlineMs: keyMs });
    } catch (error) {
      if (!(error instanceof AgentError) || outcomeOf(error) === 'refused') throw error;
    }
    const key = await keys.get(changeRecordKey, { deadlineMs: keyMs });
    if (key?.value === value) return { record, key };
    throw new ChangeLostError(`the change record of ${record.kind} ${record.target} was taken over; it was not sent`);
  }

  /** Resolves and clears whatever record stands there, if its time is over. Throws {@link ChangeUnderWayError}. */
  async #clearTheWay(endpoint: string, clusterId: ClusterId, listNow: () => Promise<MemberList>): Promise<void> {
    const { cluster, log, onResolved, effects } = this.#options;
    const keys = cluster.keys(endpoint);
    const key = await keys.get(changeRecordKey, { deadlineMs: keyMs });
    if (key === undefined) return;
    const record = decodeChangeRecord(key.value);
    if (record !== undefined && record.clusterId !== formatId(clusterId)) {
      log.warn({ cluster: record.clusterId }, 'a change record of another cluster was found and is cleared');
      await effects.doing('record.clear', () => keys.remove(key, { deadlineMs: keyMs }));
      return;
    }
    const isOver = record?.by === this.#options.nodeId && isApplied(record, await listNow()) === true;
    if (!isOver && this.#remainingMs(record, key) > 0) throw this.#busy(record, key);
    // Rewritten first: from here on its owner cannot go from `checking` to `sending` any more.
    const mine = { ...(record ?? unreadable(clusterId)), phase: 'resolving' as const, waitMs: keyMs };
    const taken = await effects.doing('record.takeOver', () =>
      this.#rewrite(
        endpoint,
        { record: mine, key },
        { ...mine, by: this.#options.nodeId, at: timestamp(this.#options.clock) },
      ),
    );
    const list = await listNow();
    const resolved: Resolved = { record, applied: record === undefined ? 'unknown' : isApplied(record, list) };
    log.warn({ record, applied: resolved.applied }, 'a change record that nobody cleared was resolved');
    onResolved(resolved);
    await this.clear(endpoint, taken);
  }

  /** Our own, where nothing was sent yet, or only to our own child: this agent is the only one of its node. */
  #needsNoWaiting({ by, phase, kind }: ChangeRecord): boolean {
    return by === this.#options.nodeId && (phase !== 'sending' || kind === 'down');
  }

  #remainingMs(record: ChangeRecord | undefined, key: EtcdKey): number {
    if (record !== undefined && this.#needsNoWaiting(record)) return 0;
    const now = this.#options.clock.monotonicMs();
    if (this.#firstSight?.revision !== key.modRevision) this.#firstSight = { revision: key.modRevision, atMs: now };
    return this.#firstSight.atMs + (record?.waitMs ?? unreadableWaitMs) - now;
  }

  #busy(record: ChangeRecord | undefined, key: EtcdKey): ChangeUnderWayError {
    const what =
      record === undefined
        ? 'a change record that this version cannot read stands in etcd'
        : `${record.by} has begun a change (${record.kind} ${record.target}, ${record.at})`;
    return new ChangeUnderWayError(what, Math.max(250, this.#remainingMs(record, key)));
  }

  /** For whoever asks again and again: waits until the record may be free. */
  async waitMs(error: ChangeUnderWayError, atMostMs: number): Promise<void> {
    await delay(this.#options.clock, Math.min(error.againMs, atMostMs));
  }
}

/** Whether the change of a record stands in the list. A stop leaves no trace there. */
function isApplied(record: ChangeRecord, list: MemberList): boolean | 'unknown' {
  const id = parseId(record.target);
  const member = list.members.find((one) => one.id === id);
  switch (record.kind) {
    case 'addLearner':
      return list.members.some(({ peerUrls }) => peerUrls.includes(record.target));
    case 'promote':
      return member !== undefined && !member.isLearner;
    case 'remove':
      return member === undefined;
    case 'updateUrls':
    case 'down':
      return 'unknown';
  }
}

function unreadable(clusterId: ClusterId): Omit<ChangeRecord, 'phase' | 'waitMs'> {
  const what = 'unreadable';
  return { clusterId: formatId(clusterId), operation: what, kind: 'down', target: what, by: what, at: what };
}

/** @pure In words, for a report. */
export function describeResolved({ record, applied }: Resolved): string {
  if (record === undefined) return 'a change record that could not be read was cleared';
  const what = `${record.kind} ${record.target} by ${record.by}`;
  return applied === 'unknown'
    ? `${what}: its record was cleared`
    : `${what}: ${applied ? 'it was applied' : 'it was not applied'}; its record was cleared`;
}
