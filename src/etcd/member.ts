/** @pure file: members of an etcd cluster, their identifiers and how these are written. */

/** etcd's identifier of a member: an unsigned 64-bit number, never reused. Shown in hex without padding, as etcd's logs do. */
export type MemberId = bigint & { readonly memberId?: never };
/** etcd's identifier of a cluster: an unsigned 64-bit number. */
export type ClusterId = bigint & { readonly clusterId?: never };

/** One entry of a member list. */
export interface Member {
  readonly id: MemberId;
  /** Empty while the member has never been started; there is no other sign of that. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}

/** What one member answered when asked who is in its cluster. */
export interface MemberList {
  readonly clusterId: ClusterId;
  /** Who answered (`member_id` of the response header). */
  readonly answeredBy: MemberId;
  readonly members: readonly Member[];
  /** True if the answer was confirmed by a quorum; false for one member's local view, which may be old. */
  readonly linearizable: boolean;
}

/** @pure `8e9e05c52164694d`: lower-case hex, not padded, as in etcd's logs. */
export function formatId(id: MemberId | ClusterId): string {
  return id.toString(16);
}

/** @pure Reads what {@link formatId} writes; undefined if it is no such number. */
export function parseId(text: string): bigint | undefined {
  return /^[0-9a-f]{1,16}$/.test(text) ? BigInt(`0x${text}`) : undefined;
}

/** @pure Those that count for quorum: learners do not. */
export function votersOf(members: readonly Member[]): readonly Member[] {
  return members.filter((member) => !member.isLearner);
}

/** @pure The member with this id. */
export function memberById(members: readonly Member[], id: MemberId): Member | undefined {
  return members.find((member) => member.id === id);
}

/** @pure Whether two lists name the same URLs, in whatever order. */
export function sameUrls(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && [...a].sort().join() === [...b].sort().join();
}
