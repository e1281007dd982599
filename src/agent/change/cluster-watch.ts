import type { Clock } from '../../base/clock.ts';
import { AgentError, describeError } from '../../base/errors.ts';
import { type ClusterId, type MemberId, memberById } from '../../etcd/member.ts';
import type { LearnerConsent } from '../../etcd/safety-question.ts';
import { answerFault, newestAnswer } from '../../etcd/survivors.ts';
import type { Host } from '../host.ts';
import { type ClusterSeen, isJoining, isOverdue, type JoinSeen, type RoleSeen } from '../observed.ts';
import type { IdentityRecord } from '../state/schemas.ts';
import { type Heard, type Hearings, sha256 } from './hearing.ts';

/** What a turn knows when it asks whether the cluster is to be heard. */
export interface ClusterMoment {
  readonly identity: IdentityRecord | undefined;
  /** The own member was removed and its data lies in the archive. */
  readonly removed: boolean;
  readonly full: boolean;
  readonly ready: boolean;
  readonly role: RoleSeen;
  readonly join: JoinSeen;
}

export interface ClusterWatchOptions {
  readonly hearings: Hearings;
  readonly clock: Clock;
  readonly host: Host;
  readonly roleEndpoints: () => readonly string[];
  /** Where the own etcd serves its clients. */
  readonly clientUrl: () => string;
  /** The peer URL that this node is configured with. */
  readonly peerUrl: () => string;
  readonly dataRoot: string;
}

/** A hearing is used by plans for so long; what is done is judged by a fresh one. Unit: ms. */
const freshMs = 1_500;
/** Between two hearings, from the first to the longest: a small learner is in sync in about 0.1 s, a large one in minutes. Unit: ms. */
const paces = { promote: [100, 2_000], other: [freshMs, 5_000] } as const;
/** A silent cluster is asked again after this. Unit: ms. */
const silentAgainMs = 2_000;
/** Space that a joiner needs in any case. Unit: bytes. */
const minSpaceBytes = 1024 ** 3;

/** Hears the cluster while this node joins, waits for its vote or leaves, and never otherwise. */
export class ClusterWatch {
  readonly #options: ClusterWatchOptions;
  /** How often the cluster was heard in a row for the same purpose. */
  #times = { purpose: 'none', count: 0 };
  #latest: { readonly seen: ClusterSeen; readonly atMs: number; readonly heard: Heard | undefined } | undefined;
  /** Since when our learner has been in sync at every look. Monotonic, ms. */
  #stableSinceMs: number | undefined;
  /** The highest index that our learner had applied, and since when. */
  #progress: { readonly index: bigint; readonly sinceMs: number } | undefined;

  constructor(options: ClusterWatchOptions) {
    this.#options = options;
  }

  /** Something was changed: what was heard before counts no more. */
  forget(): void {
    this.#latest = undefined;
    this.#times = { purpose: 'none', count: 0 };
  }

  /** Never throws for a silent cluster. */
  async look(moment: ClusterMoment): Promise<ClusterSeen> {
    const purpose = purposeOf(moment, this.#options.peerUrl());
    if (purpose !== 'promote') this.#progress = undefined;
    if (purpose === 'none') {
      this.#latest = undefined;
      this.#stableSinceMs = undefined;
      return { kind: 'notAsked' };
    }
    const now = this.#options.clock.monotonicMs();
    if (this.#latest !== undefined && now - this.#latest.atMs < this.#paceMs(purpose)) return this.#current(moment);
    this.#times = { purpose, count: this.#times.purpose === purpose ? this.#times.count + 1 : 0 };
    await this.#hear(moment);
    return this.#current(moment);
  }

  /** A wait that goes on asks less and less often: each hearing asks everybody for a Status. */
  #paceMs(purpose: string): number {
    if (this.#latest?.seen.kind === 'silent') return silentAgainMs;
    const [first, longest] = purpose === 'promote' ? paces.promote : paces.other;
    return Math.min(longest, first * 1.5 ** (this.#times.purpose === purpose ? this.#times.count : 0));
  }

  async #hear(moment: ClusterMoment): Promise<void> {
    const { hearings, clock } = this.#options;
    try {
      const heard = await hearings.hear({ endpoints: this.endpoints(moment.identity), clusterId: clusterOf(moment) });
      this.#latest = { seen: { kind: 'notAsked' }, atMs: clock.monotonicMs(), heard };
      this.#followLearner(heard, moment.identity?.memberId);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const seen: ClusterSeen = { kind: 'silent', because: describeError(error), hint: error.hint };
      this.#latest = { seen, atMs: clock.monotonicMs(), heard: undefined };
      this.#stableSinceMs = undefined;
      this.#follow(undefined);
    }
  }

  /** What was heard, as of now: how old it is counts. */
  #current({ identity, role }: ClusterMoment): ClusterSeen {
    const latest = this.#latest;
    if (latest === undefined) return { kind: 'notAsked' };
    if (latest.heard === undefined) return latest.seen;
    const { list, listAtMs, answers, leader, activities, leaderDbBytes } = latest.heard;
    const { clock, host, dataRoot, peerUrl } = this.#options;
    // What was heard is judged as of then: a plan says what was so, and whatever is done is judged by a hearing of its own.
    const nowMs = Math.min(clock.monotonicMs(), latest.atMs + freshMs);
    return {
      kind: 'heard',
      question: {
        list,
        listAtMs,
        answers,
        leader,
        nowMs,
        activities,
        accepted: role.kind === 'known' ? role.accepted : [],
        force: false,
        sha256,
      },
      peerUrl: peerUrl(),
      consent: this.#consent(identity?.memberId, latest.heard),
      space: { neededBytes: Math.max(minSpaceBytes, 2.5 * (leaderDbBytes ?? 0)), freeBytes: host.freeBytes(dataRoot) },
      stalledForMs: this.#progress === undefined ? 0 : clock.monotonicMs() - this.#progress.sinceMs,
    };
  }

  /** Our learner's own word: it answered now, in sync with the leader, and at every look since then. */
  #followLearner(heard: Heard, memberId: MemberId | undefined): void {
    const answer = memberId === undefined ? undefined : newestAnswer(heard.answers, memberId);
    const nowMs = this.#options.clock.monotonicMs();
    this.#follow(answer?.appliedIndex);
    if (answer === undefined || answerFault(answer, { ...heard, nowMs }) !== undefined) this.#stableSinceMs = undefined;
    else this.#stableSinceMs ??= answer.atMs;
  }

  /** A learner that is silent makes no progress either. */
  #follow(index: bigint | undefined): void {
    const before = this.#progress;
    if (before !== undefined && (index === undefined || index <= before.index)) return;
    this.#progress = { index: index ?? 0n, sinceMs: this.#options.clock.monotonicMs() };
  }

  #consent(memberId: MemberId | undefined, heard: Heard): LearnerConsent | undefined {
    const answer = memberId === undefined ? undefined : newestAnswer(heard.answers, memberId);
    if (answer === undefined || this.#stableSinceMs === undefined) return undefined;
    return { stableForMs: answer.atMs - this.#stableSinceMs, atMs: answer.atMs };
  }

  /** Whom to ask: the own member unless it has no vote, the members of the last list, those that the role names. */
  endpoints(identity: IdentityRecord | undefined): readonly string[] {
    const members = (identity?.lastMembers ?? []).filter(({ isLearner }) => !isLearner);
    const own =
      members.some(({ id }) => id === identity?.memberId) && identity !== undefined ? [this.#options.clientUrl()] : [];
    return [...new Set([...own, ...members.flatMap(({ clientUrls }) => clientUrls), ...this.#options.roleEndpoints()])];
  }
}

function purposeOf(
  { identity, removed, full, ready, role, join }: ClusterMoment,
  peerUrl: string,
): 'none' | 'join' | 'promote' | 'expire' | 'leave' | 'address' {
  if (!full || role.kind === 'unknown') return 'none';
  const isMember = identity !== undefined && !removed;
  if (role.role !== 'consensus-member') {
    if (isMember) return 'leave';
    return isJoining(join, identity) ? 'join' : 'none';
  }
  if (!isMember) return role.spent || !(role.hasEndpoints || identity !== undefined) ? 'none' : 'join';
  if (isOverdue(join, identity)) return 'expire';
  const self = memberById(identity.lastMembers, identity.memberId);
  if (!ready || self === undefined) return 'none';
  if (self.isLearner) return 'promote';
  return self.peerUrls.includes(peerUrl) && identity.peerUrl === peerUrl ? 'none' : 'address';
}

/** A joiner goes where its role says, or where it has begun to join; a member belongs to its cluster. */
function clusterOf({ identity, role, join }: ClusterMoment): ClusterId | undefined {
  if (join.kind !== 'none' && isJoining(join, identity)) return join.clusterId;
  if (role.kind === 'known' && role.clusterId !== undefined) return role.clusterId;
  return identity?.clusterId;
}
