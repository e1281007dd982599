import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type MemberList, votersOf } from '../etcd/member.ts';
import { membershipChanges } from './changes.ts';
import type { ClusterPort } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord } from './state/schemas.ts';

/** Deadline of a list. etcd itself gives up after 7 s. Unit: ms. */
const listDeadlineMs = 5_000;
/** A failed reading is repeated after this. Unit: ms. */
const retryMs = 1_000;

/**
 * The members of the cluster as this node's own etcd tells them: read on a trigger from the log and by a slow poll. What
 * has changed is reported, and the voters are remembered for the day when this member is told that it was removed.
 */
export class Membership {
  readonly #cluster: ClusterPort;
  readonly #clock: Clock;
  readonly #state: AgentState;
  readonly #reports: Reports;
  readonly #log: Log;
  readonly #everyMs: () => number;
  readonly #ownUrl: () => string;
  #latest: { readonly list: MemberList; readonly atMs: number; readonly wallMs: number } | undefined;
  #dueMs = 0;
  #silentSinceMs: number | undefined;

  constructor(options: {
    readonly cluster: ClusterPort;
    readonly clock: Clock;
    readonly state: AgentState;
    readonly reports: Reports;
    readonly log: Log;
    /** A linearizable list is read at least this often while etcd is ready. Unit: ms. */
    readonly everyMs: () => number;
    /** Where the own etcd serves clients. */
    readonly ownUrl: () => string;
  }) {
    this.#cluster = options.cluster;
    this.#clock = options.clock;
    this.#state = options.state;
    this.#reports = options.reports;
    this.#log = options.log;
    this.#everyMs = options.everyMs;
    this.#ownUrl = options.ownUrl;
  }

  /** The last linearizable list, with the wall time of its reading. */
  get latest(): { readonly list: MemberList; readonly wallMs: number } | undefined {
    return this.#latest;
  }

  /** Something changed: the next look reads the list. */
  trigger(): void {
    this.#dueMs = 0;
  }

  /** When the next reading is due. Monotonic, ms. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** Our own etcd gave no list when it was last asked: it has no quorum, or no longer belongs to one. */
  get silent(): boolean {
    return this.#silentSinceMs !== undefined;
  }

  /** Since when each of its lists was asked for in vain. Monotonic, ms; undefined while it gives them. */
  get silentSinceMs(): number | undefined {
    return this.#silentSinceMs;
  }

  /** It is not ready, so it is not asked: what it did not confirm before says nothing about it now. */
  notAsked(): void {
    this.#silentSinceMs = undefined;
  }

  /** Reads the list if that is due, reports changes, remembers the voters. Never throws for a silent cluster. */
  async look(identity: IdentityRecord): Promise<void> {
    const now = this.#clock.monotonicMs();
    if (now < this.#dueMs) return;
    this.#dueMs = now + retryMs;
    let list: MemberList;
    try {
      list = await this.#cluster.memberList(this.#ownUrl(), { linearizable: true, timeoutMs: listDeadlineMs });
    } catch (error) {
      this.#log.debug({ error: String(error) }, 'the member list could not be read');
      this.#silentSinceMs ??= now;
      return;
    }
    this.#silentSinceMs = undefined;
    if (list.clusterId !== identity.clusterId || list.answeredBy !== identity.memberId) return;
    this.#dueMs = this.#clock.monotonicMs() + this.#everyMs();
    this.#latest = { list, atMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
    for (const event of membershipChanges(this.#reports.reported, list, identity.memberId)) {
      this.#log.info({ event }, 'membership changed');
      this.#reports.report(event);
    }
    this.#remember(identity, list);
  }

  #remember(identity: IdentityRecord, list: MemberList): void {
    const self = list.members.find((member) => member.id === identity.memberId);
    // A list without us is for the removal to judge; the voters that must prove it are those from before.
    if (self === undefined) return;
    const members = list.members.map(plain);
    const lastVoters = votersOf(list.members).map(plain);
    if (JSON.stringify(members, bigints) === JSON.stringify(identity.lastMembers, bigints)) return;
    // Supervise-only: what is there is not written over, and what was lost is only written anew by an operator.
    if (this.#state.supervision().kind !== 'full') return;
    this.#state.recordIdentity({ ...identity, lastVoters, lastMembers: members });
  }
}

type RecordedMember = IdentityRecord['lastMembers'][number];

function plain(member: MemberList['members'][number]): RecordedMember {
  return { ...member, peerUrls: [...member.peerUrls], clientUrls: [...member.clientUrls] };
}

function bigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
