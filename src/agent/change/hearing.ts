import { createHash } from 'node:crypto';
import { type Clock, delay } from '../../base/clock.ts';
import { AgentError, describeError } from '../../base/errors.ts';
import type { Sha256 } from '../../etcd/accepted-risk.ts';
import { changeRecordKey, decodeChangeRecord } from '../../etcd/change-record.ts';
import type { EtcdKey } from '../../etcd/keys.ts';
import {
  type ClusterId,
  formatId,
  type Member,
  type MemberId,
  type MemberList,
  memberById,
  parseId,
} from '../../etcd/member.ts';
import { decodeMemberKey, memberKeyMaxAgeMs, memberKeyPrefix, memberOfKey } from '../../etcd/member-key.ts';
import type { Activity } from '../../etcd/safety-question.ts';
import type { LeaderReport, MemberAnswer } from '../../etcd/survivors.ts';
import type { ClusterPort, MemberStatusAnswer } from '../ports.ts';

/** A linearizable list is waited for this long, from whoever gives it first. Unit: ms. */
const listMs = 5_000;
/** A Status may take this long; an answer counts for 2 s, so a frozen member must not make the others' old. Unit: ms. */
const statusMs = 1_200;
/** The members' keys are read beside it. Unit: ms. */
const keysMs = 1_000;
/** A follower that is behind has this long to apply what the leader had committed. Unit: ms. */
const catchUpMs = 600;
/** And is asked again after this. Unit: ms. */
const askAgainMs = 25;

/** What the cluster said when it was asked, as fresh as it gets. */
export interface Heard {
  readonly list: MemberList;
  /** When the list came; times are monotonic, ms. */
  readonly listAtMs: number;
  /** The same by the wall clock, which goes on while the machine is suspended. Unit: ms. */
  readonly listAtWallMs: number;
  /** The endpoint that gave the list. */
  readonly through: string;
  readonly answers: readonly MemberAnswer[];
  readonly leader: LeaderReport | undefined;
  readonly activities: ReadonlyMap<MemberId, Activity>;
  /** Of the leader, where it answered; for the space that a joiner needs. Unit: bytes. */
  readonly leaderDbBytes: number | undefined;
  /** The address at which each member answered: of several it may have, the one that leads to it from here. */
  readonly reachedAt: ReadonlyMap<MemberId, string>;
  /** The whole answers, for `members`. */
  readonly statuses: ReadonlyMap<MemberId, MemberStatusAnswer>;
}

/** Nobody gave a list that a quorum confirmed. */
export class ClusterSilentError extends AgentError {
  readonly code = 'CLUSTER_SILENT';
}

/** The endpoints belong to another cluster than the one this node is told to be in. Nothing was changed. */
export class OtherClusterError extends AgentError {
  readonly code = 'OTHER_CLUSTER';
}

/** Whom to ask. */
export interface HearingQuestion {
  /** Client URLs of members, the likeliest first. */
  readonly endpoints: readonly string[];
  /** Undefined: whatever cluster it is. */
  readonly clusterId: ClusterId | undefined;
}

/** SHA-256 in hex, as the pure files want it. */
export const sha256: Sha256 = (text) => createHash('sha256').update(text).digest('hex');

/**
 * Asks the cluster before a change: list, leader, then everybody else, in this order. A member that is being removed is not asked
 * for its Status: in flight at its removal that call kills etcd.
 */
export class Hearings {
  readonly #cluster: ClusterPort;
  readonly #clock: Clock;
  /** When a revision of a member's key was first seen here; other clocks are not trusted. */
  readonly #firstSeen = new Map<MemberId, { readonly revision: bigint; readonly atMs: number }>();
  /** The same for the change record. */
  #recordSeen: { readonly revision: bigint; readonly atMs: number } | undefined;

  constructor(options: { readonly cluster: ClusterPort; readonly clock: Clock }) {
    this.#cluster = options.cluster;
    this.#clock = options.clock;
  }

  /** Throws {@link ClusterSilentError}, {@link OtherClusterError}. No call is in flight when it returns. */
  async hear(question: HearingQuestion): Promise<Heard> {
    const { list, through } = await this.#firstList(question);
    const listAtMs = this.#clock.monotonicMs();
    const listAtWallMs = this.#clock.wallMs();
    const { activities, goes } = await this.#said(through);
    const asked = list.members.filter(({ id }) => id !== goes);
    const first = await this.#statuses(asked);
    const leading = first.find(({ status }) => status.leader !== 0n && status.leader === status.memberId);
    const leader: LeaderReport | undefined =
      leading === undefined
        ? undefined
        : { memberId: leading.status.memberId, index: leading.status.raftIndex, atMs: leading.atMs };
    // What the others have applied counts only if they were asked after the leader had said how far the cluster is.
    const again = asked.filter(({ id }) => first.some(({ status }) => status.memberId === id));
    const second = leader === undefined ? [] : await this.#statuses(again, leader.index);
    return {
      list,
      listAtMs,
      listAtWallMs,
      through,
      leader,
      answers: second.map(answerOf),
      activities,
      leaderDbBytes: leading === undefined ? undefined : Number(leading.status.dbSizeBytes),
      reachedAt: new Map([...first, ...second].map(({ status, endpoint }) => [status.memberId, endpoint])),
      statuses: new Map([...first, ...second].map(({ status }) => [status.memberId, status])),
    };
  }

  /**
   * The first linearizable list of the cluster that is meant, whoever gives it; silent endpoints cost nothing beside an answer, and
   * neither does one that belongs to another cluster.
   */
  async #firstList({ endpoints, clusterId }: HearingQuestion): Promise<{ list: MemberList; through: string }> {
    const unique = [...new Set(endpoints)];
    try {
      return await Promise.any(
        unique.map(async (through) => {
          const list = await this.#cluster.memberList(through, { linearizable: true, timeoutMs: listMs });
          if (clusterId === undefined || list.clusterId === clusterId) return { list, through };
          throw new OtherClusterError(
            `${through} belongs to cluster ${formatId(list.clusterId)}, and this node to cluster ${formatId(clusterId)}`,
            { hint: 'Correct the endpoints or the cluster id of the role document.' },
          );
        }),
      );
    } catch (error) {
      const foreign =
        error instanceof AggregateError ? error.errors.find((one) => one instanceof OtherClusterError) : undefined;
      if (foreign !== undefined) throw foreign;
      const cause = error instanceof AggregateError ? error.errors.map(describeError).join('; ') : describeError(error);
      throw new ClusterSilentError(
        unique.length === 0
          ? 'no member is known that could be asked'
          : `no quorum confirmed a member list through ${unique.join(', ')}: ${cause}`,
        {
          hint:
            unique.length === 0
              ? 'Name voters to ask: `etcd-node-agent join --endpoint URL`, or `endpoints` in the role document.'
              : 'If the addresses are right and the quorum is lost, see docs/runbook.md, "a lost quorum".',
        },
      );
    }
  }

  /** `upTo`: asked again for a moment until it has applied that index; under load a follower is some entries behind. */
  async #statuses(members: readonly Member[], upTo = 0n): Promise<readonly Answered[]> {
    const asked = members.filter(({ clientUrls }) => clientUrls.length > 0);
    const answers = await Promise.all(asked.map((member) => this.#caughtUp(member, upTo)));
    return answers.filter((answer) => answer !== undefined);
  }

  async #caughtUp(member: Member, upTo: bigint): Promise<Answered | undefined> {
    const until = this.#clock.monotonicMs() + catchUpMs;
    for (;;) {
      const answer = await this.#statusOf(member);
      const behind = answer !== undefined && answer.status.raftAppliedIndex < upTo;
      if (!behind || this.#clock.monotonicMs() >= until) return answer;
      await delay(this.#clock, askAgainMs);
    }
  }

  /** Any of its addresses will do. */
  async #statusOf(member: Member): Promise<Answered | undefined> {
    const askedAtMs = this.#clock.monotonicMs();
    const until = askedAtMs + statusMs;
    for (const endpoint of member.clientUrls) {
      const leftMs = until - this.#clock.monotonicMs();
      if (leftMs <= 0) return undefined;
      try {
        const status = await this.#cluster.status(endpoint, leftMs);
        // An address that was taken over by another member says nothing about this one.
        if (status.memberId === member.id) return { status, endpoint, askedAtMs, atMs: this.#clock.monotonicMs() };
      } catch {
        // Silence; the next address of the same member, if it has one.
      }
    }
    return undefined;
  }

  /** What the agents say of their members, and whom one of them is removing right now. */
  async #said(through: string): Promise<{ activities: ReadonlyMap<MemberId, Activity>; goes: MemberId | undefined }> {
    const keys = this.#cluster.keys(through);
    const [members, record] = await Promise.all([
      keys.list(memberKeyPrefix, { deadlineMs: keysMs }).catch(() => []),
      keys.get(changeRecordKey, { deadlineMs: keysMs }).catch(() => undefined),
    ]);
    return { activities: this.#activities(members), goes: record === undefined ? undefined : this.#goes(record) };
  }

  /** Whom a record is removing. Once it could be taken over, its call is on its way no more, and its target counts as before. */
  #goes({ value, modRevision }: EtcdKey): MemberId | undefined {
    const now = this.#clock.monotonicMs();
    if (this.#recordSeen?.revision !== modRevision) this.#recordSeen = { revision: modRevision, atMs: now };
    const change = decodeChangeRecord(value);
    if (change?.kind !== 'remove' || change.phase !== 'sending') return undefined;
    return now - this.#recordSeen.atMs < change.waitMs ? parseId(change.target) : undefined;
  }

  /** A key that was not written for 3 minutes says nothing. */
  #activities(found: readonly EtcdKey[]): ReadonlyMap<MemberId, Activity> {
    const now = this.#clock.monotonicMs();
    const activities = new Map<MemberId, Activity>();
    for (const { key, value, modRevision } of found) {
      const id = memberOfKey(key);
      const said = decodeMemberKey(value);
      if (id === undefined || said === undefined) continue;
      const seen = this.#firstSeen.get(id);
      if (seen?.revision !== modRevision) this.#firstSeen.set(id, { revision: modRevision, atMs: now });
      const ageMs = seen?.revision === modRevision ? now - seen.atMs : 0;
      if (ageMs < memberKeyMaxAgeMs) activities.set(id, said.activity);
    }
    return activities;
  }
}

interface Answered {
  readonly status: MemberStatusAnswer;
  readonly endpoint: string;
  readonly askedAtMs: number;
  readonly atMs: number;
}

function answerOf({ status, askedAtMs, atMs }: Answered): MemberAnswer {
  return {
    memberId: status.memberId,
    clusterId: status.clusterId,
    leader: status.leader === 0n ? undefined : status.leader,
    appliedIndex: status.raftAppliedIndex,
    isLearner: status.isLearner,
    askedAtMs,
    atMs,
  };
}

/** @pure The addresses at which these members answered, that of `first` before the others; learners are left out. */
export function reachedOf(heard: Heard, members: readonly Member[], first?: MemberId): readonly string[] {
  const leading = first === undefined ? undefined : memberById(members, first);
  const rest = members.filter((member) => member.id !== first && !member.isLearner);
  return [...(leading === undefined ? [] : [leading]), ...rest].flatMap(({ id }) => heard.reachedAt.get(id) ?? []);
}
