/** @pure file: which voters can be counted on at this moment, and why the others cannot. */

import { type ClusterId, type Member, type MemberId, type MemberList, votersOf } from './member.ts';
import type { Activity } from './safety-question.ts';

/** An answer may be this old. Unit: ms. Source: design, "Every change to the world". */
export const answerMaxAgeMs = 2_000;

/** What a member said of itself (its Status), and when. Times are monotonic, ms. */
export interface MemberAnswer {
  readonly memberId: MemberId;
  readonly clusterId: ClusterId;
  /** Undefined: it knows no leader. */
  readonly leader: MemberId | undefined;
  readonly appliedIndex: bigint;
  readonly isLearner: boolean;
  /** When the question was sent; it must not be older than the leader's report. */
  readonly askedAtMs: number;
  /** When the answer came. */
  readonly atMs: number;
}

/** What the leader said before anybody else was asked: how far the cluster had committed by then. */
export interface LeaderReport {
  readonly memberId: MemberId;
  /** Its raft index (committed). */
  readonly index: bigint;
  /** When it answered. Monotonic, ms. */
  readonly atMs: number;
}

/** Whether a voter counts. All but `counts` is a reason not to. */
export type Standing =
  | { readonly kind: 'counts'; readonly appliedIndex: bigint }
  /** It is the one that is about to go. */
  | { readonly kind: 'goes' }
  /** Its agent says that it stops it: it may answer for seconds yet. */
  | { readonly kind: 'stopping' }
  /** It has never been started: nobody is there to answer. */
  | { readonly kind: 'unstarted' }
  | { readonly kind: 'silent' }
  | { readonly kind: 'stale'; readonly ageMs: number }
  /** It was asked before the leader said how far the cluster is. */
  | { readonly kind: 'askedTooEarly' }
  | { readonly kind: 'otherCluster'; readonly clusterId: ClusterId }
  /** The list calls it a voter, it calls itself a learner. */
  | { readonly kind: 'saysLearner' }
  | { readonly kind: 'noLeader' }
  | { readonly kind: 'otherLeader'; readonly leader: MemberId }
  | { readonly kind: 'behind'; readonly appliedIndex: bigint; readonly index: bigint };

/** A voter of the list and where it stands. */
export interface Voter {
  readonly member: Member;
  readonly standing: Standing;
}

/** What there is to judge by. */
export interface Hearing {
  readonly list: MemberList;
  readonly answers: readonly MemberAnswer[];
  /** Undefined: no leader answered, so nobody counts. */
  readonly leader: LeaderReport | undefined;
  /** Monotonic, ms. */
  readonly nowMs: number;
  /** What the agents say of their members. Who is missing is `unknown`. */
  readonly activities?: ReadonlyMap<MemberId, Activity>;
}

/** @pure Every voter of the list with its standing; `goes` names the one that is about to go, if one is. */
export function standingsOf(hearing: Hearing, goes: MemberId | undefined): readonly Voter[] {
  return votersOf(hearing.list.members).map((member) => ({
    member,
    standing: member.id === goes ? { kind: 'goes' } : standingOf(member, hearing),
  }));
}

/** @pure How many of them count. */
export function countedOf(voters: readonly Voter[]): number {
  return voters.filter(({ standing }) => standing.kind === 'counts').length;
}

/** @pure Where one voter stands, by the newest answer that it gave. */
export function standingOf(member: Member, hearing: Hearing): Standing {
  const answer = newestAnswer(hearing.answers, member.id);
  if (answer === undefined) return { kind: member.name === '' ? 'unstarted' : 'silent' };
  if (answer.isLearner) return { kind: 'saysLearner' };
  if (hearing.activities?.get(member.id) === 'stopping') return { kind: 'stopping' };
  const fault = answerFault(answer, hearing);
  return fault ?? { kind: 'counts', appliedIndex: answer.appliedIndex };
}

/** @pure What is wrong with an answer, whoever gave it: too old, of another cluster, under another leader, behind. Undefined: nothing is. */
export function answerFault(answer: MemberAnswer, { list, leader, nowMs }: Hearing): Standing | undefined {
  const ageMs = nowMs - answer.atMs;
  // An answer from the future, or one before its question, was measured on another clock: it proves nothing.
  if (!(ageMs >= 0 && ageMs <= answerMaxAgeMs && answer.askedAtMs <= answer.atMs)) return { kind: 'stale', ageMs };
  if (answer.clusterId !== list.clusterId) return { kind: 'otherCluster', clusterId: answer.clusterId };
  if (answer.leader === undefined || leader === undefined) return { kind: 'noLeader' };
  if (answer.leader !== leader.memberId) return { kind: 'otherLeader', leader: answer.leader };
  if (answer.askedAtMs < leader.atMs) return { kind: 'askedTooEarly' };
  if (answer.appliedIndex < leader.index) {
    return { kind: 'behind', appliedIndex: answer.appliedIndex, index: leader.index };
  }
  return undefined;
}

/** @pure The last thing that a member said. */
export function newestAnswer(answers: readonly MemberAnswer[], id: MemberId): MemberAnswer | undefined {
  let newest: MemberAnswer | undefined;
  for (const answer of answers) {
    if (answer.memberId === id && (newest === undefined || answer.atMs >= newest.atMs)) newest = answer;
  }
  return newest;
}
