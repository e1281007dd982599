/** @pure file: the judgement of a change in one sentence for an operator. */

import { formatId, type Member, type MemberId, type MemberList, memberById } from './member.ts';
import { faultToleranceOf, quorumOf } from './quorum.ts';
import type {
  ClusterNumbers,
  Refusal,
  SafetyNumbers,
  SafetyQuestion,
  SafetyVerdict,
  WantedChange,
} from './safety-question.ts';
import type { Standing, Voter } from './survivors.ts';

/** @pure One sentence: what was asked, what is allowed or why not, with the numbers. */
export function describeSafety({ wanted, list }: SafetyQuestion, verdict: SafetyVerdict): string {
  const what = whatIsWanted(wanted, list);
  switch (verdict.kind) {
    case 'needless':
      return `${what} is not needed: ${needlessText(wanted)}`;
    case 'refused':
      return `${what} is refused: ${refusalText(verdict.refusal, verdict.numbers)}${howToAccept(verdict)}`;
    case 'allowed': {
      const { numbers, overridden, handOverFirst } = verdict;
      const first = handOverFirst ? '; it leads, so leadership is moved first' : '';
      const against =
        overridden === undefined
          ? ''
          : `, though ${refusalText(overridden.refusal, numbers)} (${overridden.by === 'force' ? 'forced' : 'accepted'})`;
      return `${what} is allowed: ${changeText(numbers)}${first}${against}`;
    }
  }
}

/** @pure What the vote of a learner will change, once it has it: `3 voters (quorum 2, 1 may fail, 3 answer now) become 4 voters (quorum 3, 1 may fail)`. */
export function describeVote({ before }: SafetyNumbers): string {
  const voters = before.voters + 1;
  return `with its vote ${clusterText(before)} become ${plural(voters, 'voter')} (quorum ${quorumOf(voters)}, ${mayFailText(faultToleranceOf(voters))})`;
}

/** What an acceptance in a role document has to name; a removal has it in its sentence. */
function howToAccept({ refusal, numbers }: SafetyVerdict & { kind: 'refused' }): string {
  return refusal.kind === 'quorum-loss'
    ? `; to accept that: quorum-loss for this member, list ${numbers.listHash}`
    : '';
}

function whatIsWanted(wanted: WantedChange, list: MemberList): string {
  switch (wanted.kind) {
    case 'addLearner':
      return `adding a learner at ${wanted.peerUrl}`;
    case 'promote':
      return `promoting ${nameOf(list, wanted.memberId)}`;
    case 'remove':
      return `removing ${nameOf(list, wanted.memberId)}`;
    case 'down':
      return `stopping ${nameOf(list, wanted.memberId)}`;
    case 'moveLeader':
      return `moving leadership to ${nameOf(list, wanted.target)}`;
  }
}

function needlessText(wanted: WantedChange): string {
  switch (wanted.kind) {
    case 'promote':
      return 'it votes already';
    case 'remove':
      return 'the list has no such member';
    case 'moveLeader':
      return 'it leads already';
    default:
      return 'it is so already';
  }
}

/** `3 voters (quorum 2, 1 may fail, 3 answer now) become 2 voters (…)` */
function changeText({ before, after }: SafetyNumbers): string {
  const same = after !== undefined && after.voters === before.voters;
  if (same && after.counted === before.counted) return `${clusterText(before)}, and nothing changes for them`;
  if (same) return `${clusterText(before)}, of which ${after.counted} would be up`;
  return after === undefined ? clusterText(before) : `${clusterText(before)} become ${clusterText(after)}`;
}

function clusterText({ voters, quorum, tolerance, counted }: ClusterNumbers): string {
  return `${plural(voters, 'voter')} (quorum ${quorum}, ${mayFailText(tolerance)}, ${counted} ${counted === 1 ? 'answers' : 'answer'} now)`;
}

function mayFailText(tolerance: number): string {
  return tolerance === 0 ? 'none may fail' : `${tolerance} may fail`;
}

function refusalText(refusal: Refusal, numbers: SafetyNumbers): string {
  const { before, after } = numbers;
  switch (refusal.kind) {
    case 'listUnconfirmed':
      return 'no quorum confirmed the member list';
    case 'listOld':
      return `the member list is ${seconds(refusal.ageMs)} old`;
    case 'noLeader':
      return `no leader among the ${plural(before.voters, 'voter')} answers (quorum ${before.quorum})`;
    case 'noQuorum':
      return `${refusal.needed} of ${plural(refusal.voters, 'voter')} must answer now and ${doing(refusal.counted)}${missing(numbers.voters)}`;
    case 'noSuchMember':
      return 'the list has no such member';
    case 'lastVoter':
      return 'it is the last voter, and a cluster without a voter is lost';
    case 'quorumOfRest':
      return `${plural(after?.voters ?? 0, 'voter')} would remain, of which ${refusal.needed} must answer now and ${doing(after?.counted ?? 0)}${missing(numbers.voters)}`;
    case 'quorum-loss':
      if (refusal.needed > before.voters - 1) {
        return `it stays one of ${plural(before.voters, 'voter')} with quorum ${before.quorum}, so the cluster stands still while it is down`;
      }
      return `it stays one of ${plural(before.voters, 'voter')}, so ${refusal.needed} others must answer now and ${doing(after?.counted ?? 0)}${missing(numbers.voters)}`;
    case 'zero-tolerance':
      return `${plural(after?.voters ?? 0, 'voter')} would remain with quorum ${after?.quorum ?? 0} and ${after?.counted ?? 0} that answer, so none more may fail${missing(numbers.voters)}; to accept that: zero-tolerance for this member, list ${numbers.listHash}`;
    case 'learnerSlotTaken':
      return `${refusal.by.map(memberText).join(' and ')} ${refusal.by.length === 1 ? 'holds' : 'hold'} the ${refusal.max === 1 ? 'one learner slot' : `${refusal.max} learner slots`}`;
    case 'peerUrlTaken':
      return `${memberText(refusal.by)} has this address`;
    case 'noConsent':
      return 'its own agent has not said within 2 s that it may vote';
    case 'learnerNotReady':
      return `the learner ${standingText(refusal.standing)}`;
    case 'learnerNotStable':
      return `it has been in sync for ${seconds(refusal.stableForMs)} and must be for ${seconds(refusal.neededMs)}${before.voters === 1 ? ', because a cluster of two stands still when one dies' : ''}`;
    case 'targetIsLearner':
      return 'a learner cannot lead';
    case 'targetDoesNotCount':
      return `it ${standingText(refusal.standing)}`;
    case 'targetNotActive':
      return `its agent says that it is ${refusal.activity}`;
  }
}

/** `; n2 (a1) is silent` for each voter that does not count. */
function missing(voters: readonly Voter[]): string {
  const texts = voters
    .filter(({ standing }) => standing.kind !== 'counts' && standing.kind !== 'goes')
    .map(({ member, standing }) => `${memberText(member)} ${standingText(standing)}`);
  return texts.length === 0 ? '' : ` (${texts.join(', ')})`;
}

/** @pure Where a member stands, as the end of a sentence about it. */
export function standingText(standing: Standing): string {
  switch (standing.kind) {
    case 'counts':
      return `has applied index ${standing.appliedIndex}`;
    case 'goes':
      return 'is the one that goes';
    case 'stopping':
      return 'is being stopped';
    case 'unstarted':
      return 'was never started';
    case 'silent':
      return 'does not answer';
    case 'stale':
      return standing.ageMs < 0 ? 'answered on another clock' : `answered last ${seconds(standing.ageMs)} ago`;
    case 'askedTooEarly':
      return 'was asked before the leader';
    case 'otherCluster':
      return `answers for another cluster (${formatId(standing.clusterId)})`;
    case 'saysLearner':
      return 'calls itself a learner';
    case 'noLeader':
      return 'knows no leader';
    case 'otherLeader':
      return `follows another leader (${formatId(standing.leader)})`;
    case 'behind':
      return `is behind (applied ${standing.appliedIndex}, the leader was at ${standing.index})`;
  }
}

function nameOf(list: MemberList, id: MemberId): string {
  const member = memberById(list.members, id);
  return member === undefined ? formatId(id) : memberText(member);
}

function memberText({ name, id }: Member): string {
  return name === '' ? `the unstarted member ${formatId(id)}` : `${name} (${formatId(id)})`;
}

function doing(count: number): string {
  return `${count} ${count === 1 ? 'does' : 'do'}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
