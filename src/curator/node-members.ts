/** @pure file: which member of the consensus cluster is whose. */

import { parseEtcdUrl } from '../etcd/address.ts';
import { type Member, type MemberId, type MemberList, votersOf } from '../etcd/member.ts';
import type { NodePlace } from './node-leaving.ts';
import type { NodeRecord } from './records.ts';

/** What is needed of a node to find its members. */
export type KnownNode = Pick<NodeRecord, 'nodeId' | 'peerUrls'>;

/** Whose a member is: `none`: no known node's; `several`: more than one node has its address. */
export type Owner =
  | { readonly kind: 'none' }
  | { readonly kind: 'node'; readonly nodeId: string }
  | { readonly kind: 'several'; readonly nodeIds: readonly string[] };

/** What a member list says of a node. Silence is `unknown`, which is never read as `absent`. */
export type NodeMembership =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'member'; readonly member: Member }
  /** More than one member is, or may be, this node's: nothing is concluded from that. */
  | { readonly kind: 'unclear'; readonly members: readonly Member[] };

/**
 * @pure Whose a member is: by its name, else by a peer URL. A member that was never started has no name; one without
 * either belongs to nobody.
 */
export function ownerOf(member: Member, nodes: readonly KnownNode[]): Owner {
  const named = member.name === '' ? undefined : nodes.find(({ nodeId }) => nodeId === member.name);
  if (named !== undefined) return { kind: 'node', nodeId: named.nodeId };
  const places = new Set(member.peerUrls.map(placeOfUrl));
  const [first, ...others] = nodes.filter(({ peerUrls }) => peerUrls.some((url) => places.has(placeOfUrl(url))));
  if (first === undefined) return { kind: 'none' };
  if (others.length === 0) return { kind: 'node', nodeId: first.nodeId };
  return { kind: 'several', nodeIds: [first, ...others].map(({ nodeId }) => nodeId).sort() };
}

/** @pure What a list says of one node. Only a list that a quorum has confirmed says anything. */
export function membershipOf(
  nodeId: string,
  nodes: readonly KnownNode[],
  list: MemberList | undefined,
): NodeMembership {
  if (list === undefined || !list.linearizable) return { kind: 'unknown' };
  const owners = list.members.map((member) => ({ member, owner: ownerOf(member, nodes) }));
  const own = owners.filter(({ owner }) => owner.kind === 'node' && owner.nodeId === nodeId);
  const perhaps = owners.filter(({ owner }) => owner.kind === 'several' && owner.nodeIds.includes(nodeId));
  const [first, ...others] = [...own, ...perhaps].map(({ member }) => member);
  if (first === undefined) return { kind: 'absent' };
  if (others.length === 0 && perhaps.length === 0) return { kind: 'member', member: first };
  return { kind: 'unclear', members: [first, ...others] };
}

/** @pure Where a node stands, for a decision about its end. */
export function placeOf(
  membership: NodeMembership,
  list: MemberList | undefined,
  leaders: { readonly raft: MemberId | undefined; readonly isCurator: boolean },
): NodePlace {
  const leadsCurator = leaders.isCurator;
  if (membership.kind === 'unknown' || membership.kind === 'unclear' || list === undefined) {
    return { consensus: 'unknown', leadsRaft: 'unknown', leadsCurator };
  }
  if (membership.kind === 'absent') return { consensus: 'none', leadsRaft: false, leadsCurator };
  const { member } = membership;
  if (member.isLearner) return { consensus: 'learner', leadsRaft: false, leadsCurator };
  const consensus = votersOf(list.members).length === 1 ? 'lastVoter' : 'voter';
  return { consensus, leadsRaft: leaders.raft === undefined ? 'unknown' : leaders.raft === member.id, leadsCurator };
}

/** Host and port: the same place over http and https, in capitals or not. */
function placeOfUrl(url: string): string {
  const answer = parseEtcdUrl(url);
  return answer.kind === 'ok' ? answer.address.hostPort : url;
}
