import type { BootClock } from '../base/boot-clock.ts';
import { type CancelTimer, type Clock, delay, timestamp } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { EtcdKey, EtcdKeys } from '../etcd/keys.ts';
import type { EtcdLeases, LeaseId } from '../etcd/leases.ts';
import { type AnswerKind, type HighWater, headerFault, raised } from './header-guard.ts';
import type { HighWaterFile } from './high-water-file.ts';
import { curatorKeys } from './keys.ts';
import {
  actsForMs,
  type Candidate,
  type LeadershipSeen,
  type LeadershipStep,
  type LeaderValue,
  leadershipStep,
  leaseS,
} from './leadership.ts';

/** What every write of a leading curator is conditional on: its leader key still stands as it was made. */
export interface Fence {
  readonly key: string;
  readonly createRevision: bigint;
  /** The whole value; the session in it is random, so that a key of a restored etcd is no fence of ours. */
  readonly value: string;
}

/** This curator does not lead, or does not any more; nothing was written. */
export class NotLeadingError extends AgentError {
  readonly code = 'CURATOR_NOT_LEADING';
}

export interface LeaderOptions {
  readonly nodeId: string;
  /** Where this curator serves, host:port. */
  readonly address: string;
  /** Of the own member alone: another one's answers would say nothing about it. */
  readonly keys: Pick<EtcdKeys, 'read' | 'create' | 'put' | 'remove'>;
  readonly leases: EtcdLeases;
  /** Whether the own etcd leads the raft, by its metrics; undefined: it does not say. Never by Status, which makes a removed member panic. */
  readonly raftLeader: () => Promise<boolean | undefined>;
  /** Whether the alarm NOSPACE is raised. */
  readonly noSpace: () => Promise<boolean>;
  readonly memory: HighWaterFile;
  readonly clock: Clock;
  readonly bootClock: BootClock;
  readonly random: Random;
  readonly log: Log;
  /** It leads from now on. */
  readonly onLead: (fence: Fence) => void;
  /** It leads no more. */
  readonly onStop: (because: string) => void;
}

/** Unit: ms. */
const lookEveryMs = 500;
const callMs = 2_000;
const spaceEveryMs = 10_000;
const rememberEveryMs = 10_000;

interface Leading {
  readonly fence: Fence;
}

/** Campaigns, holds the lease, and gives leadership up: one step, then it looks again. */
export class CuratorLeader {
  readonly #options: LeaderOptions;
  #lease: { readonly id: LeaseId; sentMs: number } | undefined;
  #leading: Leading | undefined;
  /** A session that may stand in the leader key: the answer to its making was lost. */
  #maybe = '';
  #seen: LeadershipSeen;
  #vacantSinceMs: number | undefined;
  #ledRaftAtMs: number;
  #told: Candidate | undefined;
  #highWater: HighWater | undefined;
  #readOnly: string;
  #noSpace = { is: false, askedMs: Number.NEGATIVE_INFINITY };
  #rememberedMs = Number.NEGATIVE_INFINITY;
  #mustResign = false;
  #wake: (() => void) | undefined;
  /** Ends the leading by itself, whatever call hangs at that moment. */
  #cancelEnd: CancelTimer | undefined;

  constructor(options: LeaderOptions) {
    this.#options = options;
    const memory = options.memory.read();
    this.#highWater = memory.highWater;
    this.#readOnly = memory.readOnly;
    this.#ledRaftAtMs = options.bootClock.bootMs();
    this.#seen = this.#emptyLook();
  }

  /** Why this curator changes nothing; empty if it would. */
  get readOnly(): string {
    return this.#readOnly;
  }

  /** Who leads, as far as this curator has seen. */
  get leader(): LeaderValue | undefined {
    return this.#seen.leader === 'unknown' ? undefined : this.#seen.leader;
  }

  get candidates(): readonly Candidate[] {
    return this.#seen.candidates;
  }

  /** The condition of a write that is to be made now. Throws {@link NotLeadingError}. */
  fence(): Fence {
    if (this.#leading === undefined || (this.#leadsForMs() ?? 0) <= 0) {
      throw new NotLeadingError('this curator does not lead', {
        hint: 'Ask the one that does: `etcd-curator leader`.',
      });
    }
    return this.#leading.fence;
  }

  /**
   * An answer of etcd to somebody else's call, checked against all that was known when it was asked. Throws
   * {@link NotLeadingError}, and this curator only reads from then on.
   */
  check(known: HighWater | undefined, header: Parameters<typeof headerFault>[1], kind: AnswerKind): void {
    const fault = headerFault(known, header, kind);
    if (fault !== undefined) {
      this.#turnReadOnly(fault);
      throw new NotLeadingError(fault, { hint: acceptHint });
    }
    if (kind === 'confirmed') this.#highWater = raised(this.#highWater, header);
  }

  /** What is known now, for a later {@link check}. */
  get highWater(): HighWater | undefined {
    return this.#highWater;
  }

  /** Leads no more, and does not campaign again. */
  resign(): void {
    this.#mustResign = true;
    this.#wake?.();
  }

  /** Until `signal` aborts; then it resigns and ends its lease, if etcd lets it. Never throws for a silent etcd. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#turn();
      if (!signal.aborted) await this.#rest(signal);
    }
    this.#mustResign = true;
    await this.#turn();
    this.#write();
    if (this.#lease !== undefined) {
      await this.#options.leases.revoke(this.#lease.id, { deadlineMs: callMs }).catch(() => undefined);
    }
  }

  async #turn(): Promise<void> {
    try {
      await this.#look();
      await this.#do(leadershipStep(this.#seen));
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#options.log.warn({ error: describeError(error) }, 'a step of the election failed');
    }
  }

  async #rest(signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await delay(this.#options.clock, lookEveryMs, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    this.#wake = undefined;
  }

  async #look(): Promise<void> {
    const { keys, bootClock } = this.#options;
    const known = this.#highWater;
    const [election, raftLeader] = await Promise.all([
      keys.read(curatorKeys.election, { deadlineMs: callMs }).catch(() => undefined),
      this.#options.raftLeader().catch(() => undefined),
    ]);
    await this.#askForSpace();
    const nowMs = bootClock.bootMs();
    if (raftLeader !== false) this.#ledRaftAtMs = nowMs;
    if (election !== undefined) {
      const fault = headerFault(known, election.header, 'confirmed');
      if (fault !== undefined) this.#turnReadOnly(fault);
      else this.#remember(raised(this.#highWater, election.header));
    }
    const leaderKey = election?.keys.find(({ key }) => key === curatorKeys.leader);
    const leader = election === undefined ? 'unknown' : jsonOf<LeaderValue>(leaderKey);
    this.#takeUp(leaderKey, leader);
    if (leader === undefined) this.#vacantSinceMs ??= nowMs;
    else this.#vacantSinceMs = undefined;
    const prefix = curatorKeys.candidate('');
    this.#seen = {
      ...this.#emptyLook(),
      leader,
      raftLeader,
      vacantForMs: this.#vacantSinceMs === undefined ? 0 : nowMs - this.#vacantSinceMs,
      notRaftLeaderForMs: nowMs - this.#ledRaftAtMs,
      candidates: (election?.keys ?? [])
        .filter(({ key }) => key.startsWith(prefix))
        .flatMap((key) => jsonOf<Candidate>(key) ?? []),
    };
  }

  #emptyLook(): LeadershipSeen {
    const lease = this.#lease;
    return {
      self: this.#options.nodeId,
      readOnly: this.#readOnly,
      noSpace: this.#noSpace.is,
      mustResign: this.#mustResign,
      leadsForMs: this.#leadsForMs(),
      keptAliveMs: lease === undefined ? undefined : this.#options.bootClock.bootMs() - lease.sentMs,
      leader: 'unknown',
      vacantForMs: 0,
      raftLeader: undefined,
      notRaftLeaderForMs: 0,
      candidates: [],
    };
  }

  async #do(step: LeadershipStep): Promise<void> {
    switch (step.kind) {
      case 'wait':
        return;
      case 'keepAlive':
        await this.#keepAlive();
        return;
      case 'clearOwn':
        await this.#removeLeaderKey('an earlier curator of this node left its leader key');
        return;
      case 'campaign':
        await this.#campaign();
        return;
      case 'resign':
        this.#stop(step.because);
        await this.#removeLeaderKey(step.because);
        return;
      case 'stepDown':
        this.#stop(step.because);
    }
  }

  async #keepAlive(): Promise<void> {
    const { leases, keys, bootClock, nodeId, address } = this.#options;
    const sentMs = bootClock.bootMs();
    const how = { deadlineMs: callMs };
    if (this.#lease === undefined) {
      this.#told = undefined;
      this.#lease = { id: await leases.grant(leaseS, how), sentMs };
    } else {
      const { alive, header } = await leases.keepAlive(this.#lease.id, how);
      const fault = headerFault(this.#highWater, header, 'own view');
      if (fault !== undefined) return this.#turnReadOnly(fault);
      if (!alive) {
        this.#lease = undefined;
        return this.#stop('its lease is gone');
      }
      this.#lease.sentMs = sentMs;
    }
    const candidate = { nodeId, address, raftLeader: this.#seen.raftLeader === true };
    if (this.#told?.raftLeader === candidate.raftLeader) return;
    await keys.put(curatorKeys.candidate(nodeId), JSON.stringify(candidate), { ...how, lease: this.#lease.id });
    this.#told = candidate;
  }

  async #campaign(): Promise<void> {
    const { keys, random, clock, nodeId, address } = this.#options;
    const lease = this.#lease;
    if (lease === undefined) return;
    const session = random.hex(16);
    const value = JSON.stringify({ nodeId, address, session, since: timestamp(clock) } satisfies LeaderValue);
    this.#maybe = session;
    const { applied, header } = await keys.create(curatorKeys.leader, value, { deadlineMs: callMs, lease: lease.id });
    this.#maybe = '';
    if (applied) this.#lead({ key: curatorKeys.leader, createRevision: header.revision, value });
  }

  /** The answer to a campaign was lost, and the key stands all the same. */
  #takeUp(key: EtcdKey | undefined, leader: LeadershipSeen['leader']): void {
    if (key === undefined || leader === 'unknown' || leader === undefined || this.#maybe === '') return;
    if (leader.session === this.#maybe)
      this.#lead({ key: key.key, createRevision: key.createRevision, value: key.value });
    this.#maybe = '';
  }

  #lead(fence: Fence): void {
    this.#leading = { fence };
    this.#options.log.info({ revision: fence.createRevision.toString() }, 'this curator leads');
    this.#options.onLead(fence);
    this.#endInTime();
  }

  /** Nobody acts beyond the lease, however long a step takes. */
  #endInTime(): void {
    const leftMs = this.#leadsForMs();
    if (leftMs === undefined) return;
    if (leftMs <= 0) {
      this.#stop('etcd has not answered for too long');
      return;
    }
    // In steps: while the machine is suspended the clock of timers stands still, and the lease does not.
    this.#cancelEnd = this.#options.clock.after(Math.min(leftMs, lookEveryMs), () => this.#endInTime());
  }

  #stop(because: string): void {
    if (this.#leading === undefined) return;
    this.#leading = undefined;
    this.#cancelEnd?.();
    this.#options.log.info({ because }, 'this curator leads no more');
    this.#options.onStop(because);
  }

  /** Only one that names this node: no other curator of it lives. */
  async #removeLeaderKey(because: string): Promise<void> {
    const { keys, nodeId, log } = this.#options;
    const { keys: found } = await keys.read(curatorKeys.leader, { deadlineMs: callMs });
    const key = found.find((one) => one.key === curatorKeys.leader);
    if (key === undefined || jsonOf<LeaderValue>(key)?.nodeId !== nodeId) return;
    await keys.remove(key, { deadlineMs: callMs });
    log.info({ because }, 'the leader key was removed');
  }

  #leadsForMs(): number | undefined {
    if (this.#leading === undefined) return undefined;
    if (this.#lease === undefined) return 0;
    return this.#lease.sentMs + actsForMs - this.#options.bootClock.bootMs();
  }

  #turnReadOnly(because: string): void {
    if (this.#readOnly === '') {
      this.#readOnly = because;
      this.#options.log.error({ because, hint: acceptHint }, 'this curator changes nothing any more');
      this.#write();
    }
    this.#stop(because);
  }

  async #askForSpace(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#noSpace.askedMs < spaceEveryMs) return;
    const is = await this.#options.noSpace().catch(() => this.#noSpace.is);
    this.#noSpace = { is, askedMs: nowMs };
  }

  #remember(highWater: HighWater): void {
    this.#highWater = highWater;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#rememberedMs < rememberEveryMs) return;
    this.#rememberedMs = nowMs;
    this.#write();
  }

  /** A disk that refuses does not end a curator: within this life it knows. */
  #write(): void {
    try {
      this.#options.memory.write({ highWater: this.#highWater, readOnly: this.#readOnly });
    } catch (error) {
      this.#options.log.warn({ error: describeError(error) }, 'what is known of the cluster could not be written');
    }
  }
}

const acceptHint = 'Look at the cluster. If it is the one to go on with: `etcd-curator accept-membership`.';

/** Values are our own; one that is no JSON object counts as absent. */
function jsonOf<T extends object>(key: EtcdKey | undefined): T | undefined {
  if (key === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(key.value);
    return typeof value === 'object' && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
