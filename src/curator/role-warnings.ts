/** @pure file: what an operator should know of a change of roles that is allowed. */

import { formatId } from '../etcd/member.ts';
import { faultToleranceOf, quorumOf } from '../etcd/quorum.ts';
import type { RoleChanges, RoleQuestion } from './role-question.ts';
import { consensusMember } from './role-rules.ts';

/** @pure One sentence each, the gravest first. */
export function roleWarnings(question: RoleQuestion, { coming, going }: RoleChanges): readonly string[] {
  if (coming.includes(consensusMember)) return joinWarnings(question);
  return going.includes(consensusMember) ? leaveWarnings(question) : [];
}

function joinWarnings({ consensus }: RoleQuestion): readonly string[] {
  const { membership, adding } = consensus;
  if (membership.kind === 'member' || adding === undefined) return [];
  // A learner has no vote yet; what counts is the cluster once it votes.
  return sizeWarnings(adding.verdict.numbers.before.voters, 1);
}

function leaveWarnings({ consensus, health, nodeId }: RoleQuestion): readonly string[] {
  const { membership, removing, list, leadsCurator } = consensus;
  const warnings: string[] = [];
  if (health !== 'healthy') {
    warnings.push(
      `The agent of ${nodeId} is ${health === 'silent' ? 'silent' : 'not known to live'}: it leaves when it is back. A node that burned down is cleaned up instead.`,
    );
  }
  if (leadsCurator) warnings.push(`The curator on ${nodeId} leads; it resigns first.`);
  if (membership.kind !== 'member') return warnings;
  if (!membership.member.isLearner && removing !== undefined) {
    warnings.push(...sizeWarnings(removing.verdict.numbers.before.voters, -1));
  }
  const learners = (list?.members ?? []).filter(({ isLearner, id }) => isLearner && id !== membership.member.id);
  if (learners.length > 0) {
    const names = learners.map(({ name, id }) => (name === '' ? formatId(id) : name)).join(', ');
    warnings.push(`${names} is a learner and does not vote yet: it makes up for nobody.`);
  }
  return warnings;
}

/** What the size of the cluster comes to. */
function sizeWarnings(voters: number, growsBy: 1 | -1): readonly string[] {
  const after = voters + growsBy;
  if (after < 1) return [];
  const [mayFailBefore, mayFail] = [voters < 1 ? 0 : faultToleranceOf(voters), faultToleranceOf(after)];
  const size = `${after} ${after === 1 ? 'voter' : 'voters'} (quorum ${quorumOf(after)})`;
  if (mayFail === 0) {
    const even = after === 2 ? ', and either of them stops the cluster when it fails' : '';
    return [`With ${size} none may fail${even}.`];
  }
  if (after % 2 === 1) return [];
  const than = growsBy === 1 ? `no more than before (${mayFailBefore})` : `as many as with ${after - 1}`;
  return [`With ${size}, an even number, ${mayFail} may fail: ${than}.`];
}
