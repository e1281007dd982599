/** @pure file: may these roles be granted and revoked? All of a request is judged before any of it is done. */

import { formatId } from '../etcd/member.ts';
import { unknownNode } from './node-refusal.ts';
import type { AssignedRole, NodeRecord } from './records.ts';
import type { CuratorRefusal } from './refusal.ts';
import { busyFault, consensusFault, requestFault, roleNameFault, rulesFault, stateFault } from './role-faults.ts';
import { isSpent } from './role-left.ts';
import type { NeededOperation, RoleChanges, RoleQuestion, RoleVerdict } from './role-question.ts';
import { consensusMember, inOrder, roleNamed } from './role-rules.ts';
import { roleWarnings } from './role-warnings.ts';
import { reasonOf } from './safety-reason.ts';

/** @pure What becomes of a request. A refusal has no side effect; the first one in the order of the rules is named. */
export function judgeRoles(question: RoleQuestion): RoleVerdict {
  const { record: node, request } = question;
  const unreadable = requestFault(request);
  if (unreadable !== undefined) return refused(unreadable);
  if (node === undefined) return refused(unknownNode(question));
  const unknown = roleNameFault(question, node);
  if (unknown !== undefined) return refused(unknown);
  const changes = changesOf(question, node);
  if (changes.coming.length === 0 && changes.going.length === 0) {
    return { kind: 'needless', because: `the roles of ${node.nodeId} are so already` };
  }
  const fault =
    stateFault(node, changes) ??
    rulesFault(question, node, changes) ??
    busyFault(question) ??
    consensusFault(question, node, changes);
  if (fault !== undefined) return refused(fault);
  const operations = [
    ...changes.going.map((role) => revocation(question, role)),
    ...changes.coming.map((role) => granting(question, role)),
  ];
  return {
    kind: 'allowed',
    roles: rolesAfter(question, node, changes),
    operations,
    text: allowedText(node.nodeId, operations),
    warnings: roleWarnings(question, changes),
  };
}

/** @pure The same node with other roles. What the node is told has changed, so its generation goes up. */
export function withRoles(node: NodeRecord, roles: readonly AssignedRole[]): NodeRecord {
  return { ...node, roles: [...roles], generation: node.generation + 1 };
}

function changesOf(question: RoleQuestion, node: NodeRecord): RoleChanges {
  const { request, requires } = question;
  const anew = isSpent(node.roles, question.consensus) ? consensusMember : undefined;
  const has = (name: string) => roleNamed(node.roles, name)?.state === 'granted';
  const coming = [...new Set(request.grant)].filter((name) => !has(name) || name === anew);
  const going = [...new Set(request.revoke)].filter(has);
  return { coming: inOrder(requires, coming), going: inOrder(requires, going).toReversed() };
}

function rolesAfter({ request, stamp }: RoleQuestion, node: NodeRecord, changes: RoleChanges): readonly AssignedRole[] {
  const accept = request.accept.map((risk) => ({ ...risk }));
  const stays = node.roles
    .filter(({ name }) => !changes.coming.includes(name))
    .flatMap((role): readonly AssignedRole[] => {
      if (!changes.going.includes(role.name)) return [role];
      // The node works a membership off, and its report clears the role. No other role has anything to wait for.
      return role.name === consensusMember ? [{ ...role, state: 'leaving', accept }] : [];
    });
  const { grantId, at, by } = stamp;
  const coming = changes.coming.map(
    (name): AssignedRole => ({
      name,
      state: 'granted',
      grantId,
      grantedAt: at,
      grantedBy: by,
      accept: name === consensusMember ? accept : [],
    }),
  );
  return [...stays, ...coming];
}

function granting({ consensus }: RoleQuestion, role: string): NeededOperation {
  const { membership } = consensus;
  const none = { kind: 'grantRole', role, handOver: { raft: false, curator: false }, bypassed: [] } as const;
  if (role !== consensusMember) return { ...none, memberId: null, ends: 'atOnce' };
  // It is a member already: then the role alone was missing.
  if (membership.kind === 'member') return { ...none, memberId: formatId(membership.member.id), ends: 'atOnce' };
  return { ...none, memberId: null, ends: 'byNode' };
}

function revocation({ consensus }: RoleQuestion, role: string): NeededOperation {
  const { membership, removing, leadsCurator } = consensus;
  const none = { kind: 'revokeRole', role, memberId: null, bypassed: [] } as const;
  const nothing = { raft: false, curator: false };
  if (role !== consensusMember) return { ...none, ends: 'atOnce', handOver: nothing };
  const curator = leadsCurator;
  if (membership.kind !== 'member') return { ...none, ends: 'byNode', handOver: { raft: false, curator } };
  const verdict = removing?.verdict;
  const overridden = verdict?.kind === 'allowed' ? verdict.overridden : undefined;
  return {
    ...none,
    memberId: formatId(membership.member.id),
    ends: 'byNode',
    handOver: { raft: verdict?.kind === 'allowed' && verdict.handOverFirst, curator },
    bypassed: overridden === undefined ? [] : [reasonOf(overridden.refusal)],
  };
}

function allowedText(nodeId: string, operations: readonly NeededOperation[]): string {
  return `${nodeId} ${operations.map(operationText).join(', then ')}`;
}

function operationText({ kind, role, ends, handOver }: NeededOperation): string {
  if (role !== consensusMember) return kind === 'grantRole' ? `gets ${role}` : `loses ${role}`;
  if (kind === 'grantRole')
    return ends === 'atOnce' ? `gets ${role}, which it is already` : `joins as a learner (${role})`;
  const moved = handOver.raft || handOver.curator ? 'hands leadership over and ' : '';
  return `${moved}leaves the cluster (${role})`;
}

function refused(refusal: CuratorRefusal): RoleVerdict {
  return { kind: 'refused', refusal };
}
