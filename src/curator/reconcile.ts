/**
 * @pure file: roles and members fitted together, at most one repair a pass. A half-done change is finished, never fought;
 * no member is ever removed here.
 */

import { formatId, type MemberList } from '../etcd/member.ts';
import { membershipOf, type NodeMembership, ownerOf } from './node-members.ts';
import {
  accountOf,
  type Brake,
  changesByOthers,
  groundOf,
  type MembershipAccount,
  touches,
} from './reconcile-brakes.ts';
import type { Finding } from './reconcile-findings.ts';
import type { AssignedRole, NodeRecord, OperationRecord } from './records.ts';
import { isSpent, judgeLeft, type LeftReport } from './role-left.ts';
import type { GrantStamp } from './role-question.ts';
import { consensusMember, roleNamed } from './role-rules.ts';
import type { UnderWay } from './under-way.ts';

/** A node as the pass sees it. */
export interface SeenNode {
  readonly record: NodeRecord;
  /** The last that it reported about an end of its membership; undefined: nothing, which is no sign of anything. */
  readonly left: LeftReport | undefined;
}

/** All that a pass rests on. The members are read before the nodes: a node that came later is never taken for missing. */
export interface ReconcileSeen {
  /** The node on which this curator lives. */
  readonly ownNodeId: string;
  /** Why this curator is read-only already; empty: it is not. */
  readonly readOnly: string;
  /** Undefined: etcd did not say. */
  readonly list: MemberList | undefined;
  /** Undefined: they could not be read. */
  readonly nodes: readonly SeenNode[] | undefined;
  /** The membership of the pass before; undefined: there was none. */
  readonly account: MembershipAccount | undefined;
  /** The operations that run, and those that have ended since `account` was written: their changes are not others'. */
  readonly underWay: UnderWay;
  /** For the grant of this pass, if it makes one. */
  readonly stamp: GrantStamp;
}

/** A change of one node's roles; `roles` are all of its roles from then on. There is no repair of another kind. */
export interface Repair {
  /** `giveRole`: it is a member and has no role for it. `clearRole`: it has left, and has said so. */
  readonly kind: 'giveRole' | 'clearRole';
  readonly nodeId: string;
  readonly roles: readonly AssignedRole[];
  readonly because: string;
}

/**
 * What a pass comes to. `account` is what the next pass compares with: it is stored if it differs from the one of before, or
 * if an operation has ended since that was written.
 */
export type Reconciled =
  /** Nothing is changed. `account` undefined: the one of before stays. */
  | { readonly kind: 'halted'; readonly brake: Brake; readonly account: MembershipAccount | undefined }
  | {
      readonly kind: 'repair';
      readonly repair: Repair;
      readonly findings: readonly Finding[];
      readonly account: MembershipAccount;
    }
  | { readonly kind: 'rest'; readonly findings: readonly Finding[]; readonly account: MembershipAccount };

/** What a pass works on, once nothing stands against it. */
interface Pass {
  readonly list: MemberList;
  readonly records: readonly NodeRecord[];
  readonly operations: readonly OperationRecord[];
  readonly stamp: GrantStamp;
}

/** What one node comes to: at most one repair, and what an operator has to know. */
interface NodeOutcome {
  readonly repair?: Repair;
  readonly finding?: Finding;
}

/** @pure One pass. Running it again after each repair comes to rest. */
export function reconcile(seen: ReconcileSeen): Reconciled {
  const ground = groundOf(seen);
  if (ground.kind === 'braked') return { kind: 'halted', brake: ground.brake, account: ground.account };
  const { list, nodes } = ground;
  const records = nodes.map(({ record }) => record);
  const pass: Pass = { list, records, operations: seen.underWay.operations, stamp: seen.stamp };
  const outcomes = nodes
    .toSorted((a, b) => (a.record.nodeId < b.record.nodeId ? -1 : 1))
    .map((node) => outcomeOf(pass, node));
  const findings = [
    ...changesByOthers(seen.account, list, records, pass.operations),
    ...strangers(pass),
    ...outcomes.flatMap(({ finding }) => (finding === undefined ? [] : [finding])),
  ];
  const repairs = outcomes.flatMap(({ repair }) => (repair === undefined ? [] : [repair]));
  // Who is a member is told so first: only then it can be asked to leave.
  const repair = repairs.find(({ kind }) => kind === 'giveRole') ?? repairs[0];
  const account = accountOf(list, records);
  return repair === undefined ? { kind: 'rest', findings, account } : { kind: 'repair', repair, findings, account };
}

/** Members that are no node's. Each is reported, and removed by an operator's order alone. */
function strangers({ list, records, operations }: Pass): readonly Finding[] {
  return list.members.flatMap((member): readonly Finding[] => {
    const owner = ownerOf(member, records);
    const { id, name, peerUrls } = member;
    if (owner.kind === 'several') return [{ kind: 'memberOfSeveral', memberId: formatId(id), nodeIds: owner.nodeIds }];
    if (owner.kind === 'node' || operations.some((operation) => touches(operation, formatId(id), ''))) return [];
    return [{ kind: 'memberWithoutNode', memberId: formatId(id), name, peerUrls }];
  });
}

function outcomeOf(pass: Pass, node: SeenNode): NodeOutcome {
  const { nodeId, roles } = node.record;
  // Its roles and the list may be of different moments: the next pass sees them together.
  if (pass.operations.some((operation) => operation.nodeId === nodeId)) return {};
  const membership = membershipOf(nodeId, pass.records, pass.list);
  if (membership.kind === 'unknown') return {};
  if (membership.kind === 'unclear') {
    const memberIds = membership.members.map(({ id }) => formatId(id));
    return { finding: { kind: 'severalMembers', nodeId, memberIds } };
  }
  const role = roleNamed(roles, consensusMember);
  if (role === undefined) return membership.kind === 'member' ? withoutRole(pass, node, membership) : {};
  if (membership.kind === 'member') {
    if (role.state === 'granted') return {};
    return { finding: { kind: 'leavingStill', nodeId, memberId: formatId(membership.member.id) } };
  }
  return role.state === 'leaving' ? hasLeft(pass, node, membership) : withoutMember(pass, node, role, membership);
}

/** A member without the role for it. */
function withoutRole(
  { stamp }: Pass,
  { record, left }: SeenNode,
  { member }: NodeMembership & { readonly kind: 'member' },
): NodeOutcome {
  const { nodeId, state, roles } = record;
  const memberId = formatId(member.id);
  // It has said that this very member is gone: then the list is older than the word.
  if (left?.memberId === member.id) return {};
  // No role is given to a node on its way out, nor to one that has not come yet.
  if (state !== 'up') return { finding: { kind: 'memberNotUp', nodeId, state, memberId } };
  const { grantId, at, by } = stamp;
  const granted: AssignedRole = {
    name: consensusMember,
    state: 'granted',
    grantId,
    grantedAt: at,
    grantedBy: by,
    accept: [],
  };
  const because = `its member ${memberId} is in the list, and it has no role for that`;
  return { repair: { kind: 'giveRole', nodeId, roles: [...roles, granted], because } };
}

/** A revoked role whose member is gone: it is cleared when the node has said so. */
function hasLeft({ list }: Pass, { record, left }: SeenNode, membership: NodeMembership): NodeOutcome {
  const { nodeId, roles } = record;
  if (left === undefined) return { finding: { kind: 'leavingUnreported', nodeId } };
  const verdict = judgeLeft({ roles, clusterId: formatId(list.clusterId), membership }, left);
  if (verdict.kind !== 'cleared') return { finding: { kind: 'leavingUnreported', nodeId } };
  return { repair: { kind: 'clearRole', nodeId, roles: verdict.roles, because: verdict.because } };
}

/** A granted role without a member: its node is about to join, or was removed by others. Neither is repaired here. */
function withoutMember(
  { list }: Pass,
  { record, left }: SeenNode,
  { grantId }: AssignedRole,
  membership: NodeMembership,
): NodeOutcome {
  const { nodeId, roles } = record;
  const spent = isSpent(roles, { list, membership, left });
  return { finding: { kind: spent ? 'grantSpent' : 'grantWithoutMember', nodeId, grantId } };
}
