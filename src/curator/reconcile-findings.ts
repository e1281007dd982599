/** @pure file: what does not fit together and is not repaired by itself. It is reported, until it is gone. */

import { stateText } from './node-refusal.ts';
import type { NodeState } from './records.ts';
import { consensusMember } from './role-rules.ts';

/** Ids of members are hex. */
export type Finding =
  | {
      readonly kind: 'memberWithoutNode';
      readonly memberId: string;
      readonly name: string;
      readonly peerUrls: readonly string[];
    }
  /** Several nodes have its address, so it cannot be said whose it is. */
  | { readonly kind: 'memberOfSeveral'; readonly memberId: string; readonly nodeIds: readonly string[] }
  | { readonly kind: 'severalMembers'; readonly nodeId: string; readonly memberIds: readonly string[] }
  /** A member whose node is not UP: it gets no role. */
  | { readonly kind: 'memberNotUp'; readonly nodeId: string; readonly state: NodeState; readonly memberId: string }
  /** The member was removed, and nobody revoked the role. */
  | { readonly kind: 'grantSpent'; readonly nodeId: string; readonly grantId: string }
  /** Granted, no member, and no word of a removal: the node is still to join. */
  | { readonly kind: 'grantWithoutMember'; readonly nodeId: string; readonly grantId: string }
  /** Revoked, and the member is there still, although nothing is under way. */
  | { readonly kind: 'leavingStill'; readonly nodeId: string; readonly memberId: string }
  /** Revoked, the member is gone, and the node has not said so. */
  | { readonly kind: 'leavingUnreported'; readonly nodeId: string }
  /** The membership changed without an operation of ours. */
  | {
      readonly kind: 'changedByOthers';
      readonly change: 'added' | 'removed';
      readonly memberId: string;
      /** Empty: it is no known node's. */
      readonly nodeId: string;
    };

/** @pure One sentence for an operator: what is so, and what helps. */
export function findingText(finding: Finding): string {
  switch (finding.kind) {
    case 'memberWithoutNode':
      return `the member ${memberText(finding)} belongs to no node; register its node, or remove the member by order`;
    case 'memberOfSeveral':
      return `the member ${finding.memberId} may belong to ${finding.nodeIds.join(' or ')}: they have the same peer URL`;
    case 'severalMembers':
      return `${finding.nodeId} may have ${finding.memberIds.length} members (${finding.memberIds.join(', ')}); remove the one that is not wanted by order`;
    case 'memberNotUp':
      return `${finding.nodeId} is ${stateText(finding.state)} and is the member ${finding.memberId}; it gets no role before it is UP`;
    case 'grantSpent':
      return `the member of ${finding.nodeId} was removed, so its grant ${finding.grantId} is used up; grant ${consensusMember} anew, or revoke it`;
    case 'grantWithoutMember':
      return `${finding.nodeId} has ${consensusMember} and has not joined yet; see its plan`;
    case 'leavingStill':
      return `${finding.nodeId} is to leave and is the member ${finding.memberId} still; see its plan`;
    case 'leavingUnreported':
      return `the member of ${finding.nodeId} is gone and the node has not said so; start its agent, or clean the node up`;
    case 'changedByOthers':
      return `${finding.nodeId === '' ? 'a member of no node' : `the member of ${finding.nodeId}`} (${finding.memberId}) was ${finding.change} without an operation of this curator`;
  }
}

function memberText({ memberId, name, peerUrls }: Finding & { readonly kind: 'memberWithoutNode' }): string {
  const where = peerUrls.length === 0 ? 'no peer URL' : peerUrls.join(', ');
  return `${memberId} (${name === '' ? 'never started' : name}, ${where})`;
}
