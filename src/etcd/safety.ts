/** @pure file: may this change of membership, or this stop, be made now? The agent and the curator ask the same question. */

import { isAccepted, listHash, type RiskKind } from './accepted-risk.ts';
import { type Member, type MemberId, memberById, votersOf } from './member.ts';
import { quorumOf } from './quorum.ts';
import type {
  Activity,
  ClusterNumbers,
  LearnerConsent,
  Refusal,
  SafetyNumbers,
  SafetyQuestion,
  SafetyVerdict,
} from './safety-question.ts';
import {
  answerFault,
  answerMaxAgeMs,
  countedOf,
  type LeaderReport,
  newestAnswer,
  type Standing,
  standingOf,
  standingsOf,
} from './survivors.ts';

/** A list may be this old. Unit: ms. */
export const listMaxAgeMs = 5_000;
/** The leader is asked before the others, so its report may be older than an answer. Unit: ms. */
export const leaderMaxAgeMs = 4_000;
/** How long a learner is stable before it votes. Unit: ms. Source: design, "defaults". */
export const stableMs = 1_000;
/** The same for the second voter of a cluster: when that one dies, the cluster stands still. Unit: ms. */
export const stableSecondVoterMs = 10_000;
/** How many targets of a hand-over are tried. */
export const maxMoveTargets = 2;

/** @pure Judges one change by the state of this moment. It is asked again right before each act. */
export function judgeChange(question: SafetyQuestion): SafetyVerdict {
  const known: SafetyQuestion = { ...question, leader: knownLeader(question) };
  const { wanted } = known;
  switch (wanted.kind) {
    case 'addLearner':
      return judgeAdd(known, wanted.peerUrl);
    case 'promote':
      return judgePromote(known, wanted.memberId, wanted.consent);
    case 'remove':
      return judgeRemove(known, wanted.memberId, wanted.provenDead);
    case 'down':
      return judgeDown(known, wanted.memberId);
    case 'moveLeader':
      return judgeMove(known, wanted.target);
  }
}

/** @pure Who may take leadership over now, the best first, at most {@link maxMoveTargets}: those that say they are active, the most caught up. */
export function moveTargets(question: Omit<SafetyQuestion, 'wanted'>): readonly Member[] {
  const ranked = votersOf(question.list.members).flatMap((member) => {
    const verdict = judgeChange({ ...question, wanted: { kind: 'moveLeader', target: member.id } });
    if (verdict.kind !== 'allowed') return [];
    const applied = newestAnswer(question.answers, member.id)?.appliedIndex ?? 0n;
    return [{ member, applied, active: activityOf(question, member.id) === 'active' }];
  });
  const byRank = (a: (typeof ranked)[number], b: (typeof ranked)[number]) => {
    if (a.active !== b.active) return a.active ? -1 : 1;
    if (a.applied !== b.applied) return a.applied > b.applied ? -1 : 1;
    return a.member.id < b.member.id ? -1 : 1;
  };
  return ranked
    .sort(byRank)
    .slice(0, maxMoveTargets)
    .map(({ member }) => member);
}

function judgeAdd(question: SafetyQuestion, peerUrl: string): SafetyVerdict {
  const numbers = numbersOf(question);
  const problem = listDoubt(question) ?? placeProblem(question, peerUrl) ?? cannotCommit(question, numbers);
  return problem === undefined ? allowed(numbers) : refused(numbers, problem);
}

/** The one learner slot, and the address. */
function placeProblem({ list, maxLearners = 1 }: SafetyQuestion, peerUrl: string): Refusal | undefined {
  const owner = list.members.find((member) => member.peerUrls.includes(peerUrl));
  if (owner !== undefined) return { kind: 'peerUrlTaken', by: owner };
  const by = list.members.filter((member) => member.isLearner);
  return by.length < maxLearners ? undefined : { kind: 'learnerSlotTaken', by, max: maxLearners };
}

function judgePromote(question: SafetyQuestion, memberId: MemberId, consent: LearnerConsent | undefined) {
  const member = memberById(question.list.members, memberId);
  const numbers = numbersOf(question, { grows: member?.isLearner === true ? 1 : 0 });
  const doubt = listDoubt(question);
  if (doubt !== undefined) return refused(numbers, doubt);
  if (member === undefined) return refused(numbers, { kind: 'noSuchMember' });
  if (!member.isLearner) return needless(numbers);
  const notYet = cannotCommit(question, numbers) ?? unfit(question, member, consent, numbers.before.voters);
  if (notYet !== undefined) return refused(numbers, notYet);
  // It has just answered like the voters do, so it counts among those that must carry the larger cluster.
  const grown = numbersOf(question, { grows: 1, joins: 1 });
  const lacking = lackOfQuorum(grown.after ?? noVoters);
  return lacking === undefined ? allowed(grown) : refused(grown, lacking);
}

/** Why a learner must not vote yet. etcd itself promotes one that is dead, if it had caught up. */
function unfit(
  question: SafetyQuestion,
  learner: Member,
  consent: LearnerConsent | undefined,
  voters: number,
): Refusal | undefined {
  const answer = newestAnswer(question.answers, learner.id);
  const silence: Standing = { kind: learner.name === '' ? 'unstarted' : 'silent' };
  const standing = answer === undefined ? silence : answerFault(answer, question);
  if (standing !== undefined) return { kind: 'learnerNotReady', standing };
  if (consent === undefined || !isWithin(question.nowMs - consent.atMs, answerMaxAgeMs)) return { kind: 'noConsent' };
  const neededMs = voters === 1 ? stableSecondVoterMs : stableMs;
  const { stableForMs } = consent;
  return stableForMs >= neededMs ? undefined : { kind: 'learnerNotStable', stableForMs, neededMs };
}

function judgeRemove(question: SafetyQuestion, memberId: MemberId, provenDead: boolean): SafetyVerdict {
  const member = memberById(question.list.members, memberId);
  const votes = member?.isLearner === false;
  const numbers = numbersOf(question, votes ? { goes: memberId, grows: -1 } : {});
  const doubt = listDoubt(question);
  if (doubt !== undefined) return refused(numbers, doubt);
  if (member === undefined) return needless(numbers);
  if (!votes) return allowed(numbers);
  const { after } = numbers;
  if (after === undefined) return refused(numbers, { kind: 'lastVoter' });
  if (question.leader === undefined) return refused(numbers, { kind: 'noLeader' });
  if (after.counted < after.quorum) return refused(numbers, { kind: 'quorumOfRest', needed: after.quorum });
  const leads = question.leader.memberId === memberId;
  // Without a dead voter the cluster can bear as little as before.
  const isDead = provenDead && !leads && standingOf(member, question).kind !== 'counts';
  if (after.counted > after.quorum || isDead) return allowed(numbers, leads);
  return overridable(question, numbers, { kind: 'zero-tolerance' }, memberId);
}

function judgeDown(question: SafetyQuestion, memberId: MemberId): SafetyVerdict {
  const member = memberById(question.list.members, memberId);
  const votes = member?.isLearner === false;
  const numbers = numbersOf(question, votes ? { goes: memberId } : {});
  // Who is the quorum alone needs nobody's word, and could get none while it hangs.
  if (votes && numbers.before.voters === 1) return allowed(numbers);
  const refusal = listDoubt(question) ?? (votes ? downProblem(question, numbers) : undefined);
  if (refusal !== undefined) return overridable(question, numbers, refusal, memberId);
  return allowed(numbers, question.leader?.memberId === memberId);
}

/** Who is down still counts as a voter: the others must be a quorum of all. */
function downProblem(question: SafetyQuestion, { before, after }: SafetyNumbers): Refusal | undefined {
  if (question.leader === undefined) return { kind: 'noLeader' };
  return (after?.counted ?? 0) < before.quorum ? { kind: 'quorum-loss', needed: before.quorum } : undefined;
}

function judgeMove(question: SafetyQuestion, target: MemberId): SafetyVerdict {
  const numbers = numbersOf(question);
  const doubt = listDoubt(question);
  if (doubt !== undefined) return refused(numbers, doubt);
  const member = memberById(question.list.members, target);
  if (member === undefined) return refused(numbers, { kind: 'noSuchMember' });
  if (member.isLearner) return refused(numbers, { kind: 'targetIsLearner' });
  if (question.leader === undefined) return refused(numbers, { kind: 'noLeader' });
  if (question.leader.memberId === target) return needless(numbers);
  const standing = standingOf(member, question);
  if (standing.kind !== 'counts') return refused(numbers, { kind: 'targetDoesNotCount', standing });
  const activity = activityOf(question, target);
  const busy = activity !== 'active' && activity !== 'unknown';
  return busy ? refused(numbers, { kind: 'targetNotActive', activity }) : allowed(numbers);
}

/** The list must be a quorum's, and of now. */
function listDoubt({ list, listAtMs, nowMs }: SafetyQuestion): Refusal | undefined {
  if (!list.linearizable) return { kind: 'listUnconfirmed' };
  const ageMs = nowMs - listAtMs;
  return isWithin(ageMs, listMaxAgeMs) ? undefined : { kind: 'listOld', ageMs };
}

/** A leader that answered lately and votes; without one nobody's answer can be measured. */
function knownLeader({ leader, list, nowMs }: SafetyQuestion): LeaderReport | undefined {
  if (leader === undefined || !isWithin(nowMs - leader.atMs, leaderMaxAgeMs)) return undefined;
  return memberById(list.members, leader.memberId)?.isLearner === false ? leader : undefined;
}

/** A change that cannot be committed now hangs, and may be applied at any time later. */
function cannotCommit(question: SafetyQuestion, { before }: SafetyNumbers): Refusal | undefined {
  if (question.leader === undefined) return { kind: 'noLeader' };
  return lackOfQuorum(before);
}

function lackOfQuorum({ voters, quorum, counted }: ClusterNumbers): Refusal | undefined {
  return counted < quorum ? { kind: 'noQuorum', needed: quorum, counted, voters } : undefined;
}

/** An age from 0 to `maxMs`. One below 0 was measured on another clock. */
function isWithin(ageMs: number, maxMs: number): boolean {
  return ageMs >= 0 && ageMs <= maxMs;
}

function activityOf({ activities }: Pick<SafetyQuestion, 'activities'>, id: MemberId): Activity {
  return activities.get(id) ?? 'unknown';
}

/** `grows`: change of the number of voters; `joins`: how many of those that come count already. */
function numbersOf(
  question: SafetyQuestion,
  { goes, grows = 0, joins = 0 }: { goes?: MemberId; grows?: number; joins?: number } = {},
): SafetyNumbers {
  const { list, sha256 } = question;
  const count = votersOf(list.members).length;
  const voters = standingsOf(question, goes);
  const all = goes === undefined ? voters : standingsOf(question, undefined);
  return {
    before: clusterNumbers(count, countedOf(all)) ?? noVoters,
    after: clusterNumbers(count + grows, countedOf(voters) + joins),
    voters,
    listHash: listHash(list.clusterId, list.members, sha256),
  };
}

function clusterNumbers(voters: number, counted: number): ClusterNumbers | undefined {
  if (voters < 1) return undefined;
  const quorum = quorumOf(voters);
  return { voters, quorum, tolerance: voters - quorum, counted };
}

/** No list of etcd's is without a voter; nothing is allowed on one that is. */
const noVoters: ClusterNumbers = { voters: 0, quorum: 1, tolerance: 0, counted: 0 };

function allowed(numbers: SafetyNumbers, handOverFirst = false): SafetyVerdict {
  return { kind: 'allowed', numbers, handOverFirst, overridden: undefined };
}

function needless(numbers: SafetyNumbers): SafetyVerdict {
  return { kind: 'needless', numbers };
}

function refused(numbers: SafetyNumbers, refusal: Refusal): SafetyVerdict {
  return { kind: 'refused', refusal, numbers };
}

/** Refused, unless somebody accepted this very risk, or forces a stop. */
function overridable(
  { wanted, force, accepted, leader }: SafetyQuestion,
  numbers: SafetyNumbers,
  refusal: Refusal,
  memberId: MemberId,
): SafetyVerdict {
  const stops = wanted.kind === 'down';
  const kind: RiskKind = stops ? 'quorum-loss' : 'zero-tolerance';
  const forced = force && stops;
  if (!forced && !isAccepted(accepted, { kind, memberId, listHash: numbers.listHash }))
    return refused(numbers, refusal);
  const handOverFirst = leader?.memberId === memberId;
  return { kind: 'allowed', numbers, handOverFirst, overridden: { refusal, by: forced ? 'force' : 'accept' } };
}
