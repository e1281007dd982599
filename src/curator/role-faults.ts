/** @pure file: why roles are not granted or revoked: by the request, the node, the rules, the cluster, in this order. */

import { stateText } from './node-refusal.ts';
import type { NodeRecord } from './records.ts';
import type { CuratorRefusal } from './refusal.ts';
import { isSpent } from './role-left.ts';
import type { RoleChanges, RoleQuestion, RoleRequest } from './role-question.ts';
import { brokenDependency, consensusMember, knownRoles, requirementsOf, roleNamed } from './role-rules.ts';
import { type JudgedSafety, safetyRefusal } from './safety-reason.ts';
import { anyOperation, changeUnderWay, operationFor } from './under-way.ts';

/** So many roles can one node have. Source: records.ts. */
const maxRoles = 32;

/** @pure The request itself. */
export function requestFault({ grant, revoke }: RoleRequest): CuratorRefusal | undefined {
  if (grant.length + revoke.length === 0) return invalid('the request names no role', '');
  const both = grant.find((role) => revoke.includes(role));
  return both === undefined ? undefined : invalid(`${both} is both granted and revoked`, 'Say one of them.');
}

/** @pure Whether there are such roles. One that was taken out of the configuration can still be revoked. */
export function roleNameFault({ request, requires }: RoleQuestion, { roles }: NodeRecord): CuratorRefusal | undefined {
  const exists = (role: string) => requirementsOf(requires, role) !== undefined;
  const unknown =
    request.grant.find((role) => !exists(role)) ??
    request.revoke.find((role) => !exists(role) && roleNamed(roles, role) === undefined);
  if (unknown === undefined) return undefined;
  return invalid(`there is no role ${JSON.stringify(unknown)}`, `There are: ${knownRoles(requires).join(', ')}.`);
}

/** @pure The state of the node. */
export function stateFault(node: NodeRecord, { coming }: RoleChanges): CuratorRefusal | undefined {
  const { nodeId, state, roles } = node;
  const [first] = coming;
  if (first !== undefined && state !== 'up') {
    const comesUp = state === 'new' || state === 'standby';
    return {
      reason: 'wrongState',
      message: `${nodeId} is ${stateText(state)}, and ${first} is granted to a node that is UP`,
      hint: comesUp ? 'Approve it, and let it commit.' : 'A node on its way out gets no roles.',
    };
  }
  if (coming.includes(consensusMember) && roleNamed(roles, consensusMember)?.state === 'leaving') {
    return {
      reason: 'operationUnderWay',
      message: `${nodeId} is leaving: ${consensusMember} was revoked, and the node has not reported its end`,
      hint: 'Grant it anew when the node has left.',
    };
  }
  const added = coming.filter((role) => roleNamed(roles, role) === undefined).length;
  return roles.length + added > maxRoles ? invalid(`${nodeId} would have more than ${maxRoles} roles`, '') : undefined;
}

/** @pure What runs for this node. */
export function busyFault({ underWay, nodeId }: RoleQuestion): CuratorRefusal | undefined {
  const busy = operationFor(underWay, nodeId);
  return busy === undefined ? undefined : isBusy(busy);
}

/** @pure The dependencies between roles, both ways. */
export function rulesFault(
  { requires, consensus }: RoleQuestion,
  { nodeId, roles }: NodeRecord,
  changes: RoleChanges,
): CuratorRefusal | undefined {
  const held = new Set(roles.filter(({ state }) => state === 'granted').map(({ name }) => name));
  // A membership that ended without an order is none to depend on.
  if (isSpent(roles, consensus)) held.delete(consensusMember);
  const broken = brokenDependency(requires, held, changes);
  if (broken !== undefined) {
    const { role, requires: needed } = broken;
    if (changes.going.includes(needed)) {
      const message = `${needed} cannot be revoked from ${nodeId}: ${role} depends on it`;
      return dependency(message, `Revoke ${role} first, or both in one request.`);
    }
    return dependency(`${role} depends on ${needed}, which ${nodeId} does not have`, `Grant ${needed} first.`);
  }
  // A membership takes its time, and may fail; what depends on it is granted when it is there.
  const early = changes.coming.find((role) => requirementsOf(requires, role)?.includes(consensusMember));
  if (early === undefined || !changes.coming.includes(consensusMember)) return undefined;
  const message = `${early} depends on ${consensusMember}, which ${nodeId} does not have yet`;
  return dependency(message, `Grant ${consensusMember} first, and ${early} when the node has joined.`);
}

/** @pure What the consensus cluster says, where the request changes who is a member. */
export function consensusFault(
  question: RoleQuestion,
  node: NodeRecord,
  { coming, going }: RoleChanges,
): CuratorRefusal | undefined {
  const joins = coming.includes(consensusMember);
  if (!joins && !going.includes(consensusMember)) return undefined;
  return (
    clusterBusy(question) ??
    (joins ? healthFault(question, node) : undefined) ??
    membershipFault(question, node) ??
    (joins ? addFault(question, node) : removeFault(question, node))
  );
}

function clusterBusy({ underWay }: RoleQuestion): CuratorRefusal | undefined {
  const operation = anyOperation(underWay);
  if (operation !== undefined) return isBusy(operation);
  const change = changeUnderWay(underWay);
  if (change === undefined) return undefined;
  if (underWay.change !== 'unknown') return isBusy(change);
  return { reason: 'etcdSilent', message: change, hint: 'Ask again in a moment.' };
}

/** A member that cannot start takes the learner slot from all others. */
function healthFault({ health }: RoleQuestion, { nodeId }: NodeRecord): CuratorRefusal | undefined {
  if (health === 'healthy') return undefined;
  const message =
    health === 'unknown'
      ? `it is not known yet whether the agent of ${nodeId} lives: this curator has only begun to lead`
      : `the agent of ${nodeId} has not sent a heartbeat lately`;
  const hint = health === 'unknown' ? 'Ask again in a minute.' : 'Start the agent on that node, and ask again.';
  return { reason: 'nodeSilent', message, hint };
}

function membershipFault({ consensus }: RoleQuestion, { nodeId }: NodeRecord): CuratorRefusal | undefined {
  const { membership } = consensus;
  if (membership.kind === 'unknown') return notJudged(nodeId);
  if (membership.kind !== 'unclear') return undefined;
  return {
    reason: 'wrongState',
    message: `it is not clear which member is that of ${nodeId}: ${membership.members.length} may be`,
    hint: 'Give each node its own name and peer URL, and remove the member that is not wanted.',
  };
}

function addFault({ consensus }: RoleQuestion, { nodeId }: NodeRecord): CuratorRefusal | undefined {
  return consensus.membership.kind === 'member' ? undefined : judged(consensus.adding, nodeId);
}

function removeFault({ consensus }: RoleQuestion, { nodeId }: NodeRecord): CuratorRefusal | undefined {
  return consensus.membership.kind === 'member' ? judged(consensus.removing, nodeId) : undefined;
}

function judged(safety: JudgedSafety | undefined, nodeId: string): CuratorRefusal | undefined {
  return safety === undefined ? notJudged(nodeId) : safetyRefusal(safety);
}

function notJudged(nodeId: string): CuratorRefusal {
  const message = `it is not known who is in the consensus cluster, so nothing is changed for ${nodeId}`;
  return { reason: 'etcdSilent', message, hint: 'Ask again when etcd answers.' };
}

function isBusy(what: string): CuratorRefusal {
  return { reason: 'operationUnderWay', message: what, hint: 'One change at a time: ask again when it is over.' };
}

function dependency(message: string, hint: string): CuratorRefusal {
  return { reason: 'roleDependency', message, hint };
}

function invalid(message: string, hint: string): CuratorRefusal {
  return { reason: 'invalidArgument', message, hint };
}
