/** @pure file: the end of a membership, as its node reports it. Only that clears the role. */

import { formatId, type MemberId, type MemberList } from '../etcd/member.ts';
import type { NodeMembership } from './node-members.ts';
import type { AssignedRole } from './records.ts';
import { consensusMember, roleNamed } from './role-rules.ts';

/** What a node says once it is no member any more: the tombstone that it keeps. */
export interface LeftReport {
  /** The grant under which it was a member, or was to become one. */
  readonly grantId: string;
  /** The cluster that it has left; hex. */
  readonly clusterId: string;
  /** The member that it was; undefined: it never became one under this grant. */
  readonly memberId: MemberId | undefined;
}

/** What a report comes to. */
export type LeftVerdict =
  | { readonly kind: 'cleared'; readonly roles: readonly AssignedRole[]; readonly because: string }
  /** Nobody revoked the role, and its member is gone: the grant is used up. A new one is an operator's decision. */
  | { readonly kind: 'spent'; readonly grantId: string }
  /** Not yet: the list has the member still, or nobody knows. */
  | { readonly kind: 'waiting'; readonly because: string }
  /** It is about something that is over. */
  | { readonly kind: 'needless'; readonly because: string };

/** What a report is held against. */
export interface LeftSituation {
  readonly roles: readonly AssignedRole[];
  /** Hex. */
  readonly clusterId: string;
  readonly membership: NodeMembership;
}

/** @pure What the report of a node means for its role. Nothing is cleared that another grant has made. */
export function judgeLeft({ roles, clusterId, membership }: LeftSituation, left: LeftReport): LeftVerdict {
  const role = roleNamed(roles, consensusMember);
  if (role === undefined) return { kind: 'needless', because: 'the node has no such role' };
  if (left.grantId !== role.grantId) return { kind: 'needless', because: 'the report is about another grant' };
  if (left.clusterId !== clusterId) {
    return { kind: 'needless', because: `the report is about another cluster (${left.clusterId})` };
  }
  switch (membership.kind) {
    case 'unknown':
      return { kind: 'waiting', because: 'no list that a quorum confirms says that its member is gone' };
    case 'member':
      return { kind: 'waiting', because: `its member ${formatId(membership.member.id)} is in the list` };
    case 'unclear':
      return { kind: 'waiting', because: 'it is not clear which members in the list are its own' };
    case 'absent':
      break;
  }
  if (role.state === 'granted') return { kind: 'spent', grantId: role.grantId };
  const was = left.memberId === undefined ? 'it never became a member' : `its member was ${formatId(left.memberId)}`;
  return {
    kind: 'cleared',
    roles: roles.filter(({ name }) => name !== consensusMember),
    because: `the node reports that it has left (${was})`,
  };
}

/** @pure Whether the member of the grant is gone although nobody revoked the role: only a new grant makes another. */
export function isSpent(
  roles: readonly AssignedRole[],
  seen: {
    readonly list: MemberList | undefined;
    readonly membership: NodeMembership;
    readonly left: LeftReport | undefined;
  },
): boolean {
  const { list, membership, left } = seen;
  if (list === undefined || left === undefined) return false;
  return judgeLeft({ roles, clusterId: formatId(list.clusterId), membership }, left).kind === 'spent';
}
