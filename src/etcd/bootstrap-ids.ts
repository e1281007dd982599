/** The ids that etcd computes for members and cluster when a cluster is founded from a static list. */
import { createHash } from 'node:crypto';
import type { ClusterId, MemberId } from './member.ts';

/** One founder as it stands in `--initial-cluster`. */
export interface Founder {
  readonly name: string;
  /** As they are given to etcd, unchanged; their order does not matter. */
  readonly peerUrls: readonly string[];
}

/**
 * The id that etcd gives to a founder. The same list and token give the same id again: a founder that lost its disk would
 * come back under the id of the dead one. Source: docs/etcd-facts.md, "ids of founders".
 */
export function founderMemberId(peerUrls: readonly string[], token: string): MemberId {
  return firstEightBytes([...peerUrls].sort().join('') + token);
}

/** The cluster id that follows from the founders and the token; the order of the founders does not matter. */
export function founderClusterId(founders: readonly Founder[], token: string): ClusterId {
  const ids = founders.map((founder) => founderMemberId(founder.peerUrls, token));
  const sorted = ids.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const bytes = Buffer.alloc(8 * sorted.length);
  for (const [index, id] of sorted.entries()) bytes.writeBigUInt64BE(id, 8 * index);
  return firstEightBytes(bytes);
}

function firstEightBytes(content: string | Uint8Array): bigint {
  return createHash('sha1').update(content).digest().readBigUInt64BE(0);
}
