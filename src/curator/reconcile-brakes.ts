/** @pure file: when the reconciler touches nothing. What it does not know, it does not repair. */

import { formatId, type MemberList } from '../etcd/member.ts';
import { type KnownNode, membershipOf, ownerOf } from './node-members.ts';
import type { ReconcileSeen, SeenNode } from './reconcile.ts';
import type { Finding } from './reconcile-findings.ts';
import type { OperationRecord } from './records.ts';
import { anyOperation, changeUnderWay } from './under-way.ts';

/** Who was in the cluster when the curator looked last, as it is stored. */
export interface MembershipAccount {
  /** Hex. */
  readonly clusterId: string;
  readonly members: readonly AccountedMember[];
}

export interface AccountedMember {
  /** Hex. */
  readonly memberId: string;
  /** Whose it was; empty: no known node's. */
  readonly nodeId: string;
}

/** Why nothing is repaired. */
export interface Brake {
  readonly kind:
    | 'readOnly'
    | 'membersUnknown'
    | 'nodesUnknown'
    | 'clusterChanged'
    | 'ownNodeMissing'
    | 'membershipJumped'
    | 'operationUnderWay'
    | 'changeUnderWay';
  /** One sentence. */
  readonly because: string;
  /** The curator is read-only from now on, until somebody accepts the membership. */
  readonly isFinal: boolean;
}

/** Whether a pass may repair anything, and what it then rests on. */
export type Ground =
  | { readonly kind: 'firm'; readonly list: MemberList; readonly nodes: readonly SeenNode[] }
  /** `account` undefined: what was read is not to be compared with later. */
  | { readonly kind: 'braked'; readonly brake: Brake; readonly account: MembershipAccount | undefined };

/** @pure What stands against a pass, the gravest first. */
export function groundOf(seen: ReconcileSeen): Ground {
  const { list, account, underWay, ownNodeId } = seen;
  if (seen.readOnly !== '') return braked('readOnly', seen.readOnly, true);
  if (list === undefined) return braked('membersUnknown', 'etcd did not say who is in the cluster');
  if (!list.linearizable) return braked('membersUnknown', 'no quorum confirmed the member list');
  const clusterId = formatId(list.clusterId);
  if (account !== undefined && account.clusterId !== clusterId) {
    return braked('clusterChanged', `the cluster was ${account.clusterId} and is ${clusterId} now`, true);
  }
  if (seen.nodes === undefined) return braked('nodesUnknown', 'the nodes could not be read');
  const records = seen.nodes.map(({ record }) => record);
  const others = changesByOthers(account, list, records, underWay.operations);
  if (others.length > 1) {
    const changes = others.map(({ memberId, change }) => `${memberId} ${change}`).join(', ');
    return braked('membershipJumped', `several members changed without an operation of this curator: ${changes}`, true);
  }
  if (!records.some(({ nodeId }) => nodeId === ownNodeId)) {
    return braked('ownNodeMissing', `there is no record of ${ownNodeId}, on which this curator lives`);
  }
  if (membershipOf(ownNodeId, records, list).kind === 'absent') {
    return braked('ownNodeMissing', `${ownNodeId}, on which this curator lives, is not in the member list`);
  }
  // What is under way is another's to finish. The list itself is as good as any.
  const operation = anyOperation(underWay);
  if (operation !== undefined) return braked('operationUnderWay', operation, false, accountOf(list, records));
  const change = changeUnderWay(underWay);
  if (change !== undefined) return braked('changeUnderWay', change, false, accountOf(list, records));
  return { kind: 'firm', list, nodes: seen.nodes };
}

/** @pure Who came and went since the last account, and no operation of ours explains it. */
export function changesByOthers(
  account: MembershipAccount | undefined,
  list: MemberList,
  nodes: readonly KnownNode[],
  operations: readonly OperationRecord[],
): readonly (Finding & { readonly kind: 'changedByOthers' })[] {
  if (account === undefined) return [];
  const now = accountOf(list, nodes).members;
  const notIn = (others: readonly AccountedMember[]) => (one: AccountedMember) =>
    !others.some(({ memberId }) => memberId === one.memberId) &&
    !operations.some((operation) => touches(operation, one.memberId, one.nodeId));
  const added = now.filter(notIn(account.members));
  const removed = account.members.filter(notIn(now));
  return [
    ...added.map((one) => ({ kind: 'changedByOthers', change: 'added', ...one }) as const),
    ...removed.map((one) => ({ kind: 'changedByOthers', change: 'removed', ...one }) as const),
  ];
}

/** @pure The account of this list. */
export function accountOf(list: MemberList, nodes: readonly KnownNode[]): MembershipAccount {
  const members = list.members.map((member): AccountedMember => {
    const owner = ownerOf(member, nodes);
    return { memberId: formatId(member.id), nodeId: owner.kind === 'node' ? owner.nodeId : '' };
  });
  return { clusterId: formatId(list.clusterId), members };
}

/** @pure Whether an operation explains a change of this member (hex), or of one of this node's. A repair changes no member. */
export function touches(operation: OperationRecord, memberId: string, nodeId: string): boolean {
  if (operation.kind === 'repair') return false;
  return operation.memberId === memberId || (nodeId !== '' && operation.nodeId === nodeId);
}

function braked(kind: Brake['kind'], because: string, isFinal = false, account?: MembershipAccount): Ground {
  return { kind: 'braked', brake: { kind, because, isFinal }, account };
}
