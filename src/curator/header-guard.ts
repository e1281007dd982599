/** @pure file: whether etcd's answers still come from the history that this curator knows. */

import { type ClusterId, formatId } from '../etcd/member.ts';
import type { AnswerHeader } from '../etcd/member-list.ts';

/** The farthest that any answer has shown of the cluster. */
export interface HighWater {
  readonly clusterId: ClusterId;
  readonly term: bigint;
  readonly revision: bigint;
}

/** What an answer is checked for. Only an answer that a quorum confirmed must not be behind: a member that was started anew catches up. */
export type AnswerKind = 'confirmed' | 'own view';

/**
 * Why an answer that was asked for when `known` was known is not of that history, in one sentence; undefined if it is. A cluster that was
 * put back from a copy, or forced anew out of one member, forgets what it acknowledged: nobody may act on both.
 */
export function headerFault(known: HighWater | undefined, header: AnswerHeader, kind: AnswerKind): string | undefined {
  if (known === undefined) return undefined;
  if (header.clusterId !== known.clusterId) {
    return `etcd answers for cluster ${formatId(header.clusterId)}, and this curator knows cluster ${formatId(known.clusterId)}`;
  }
  if (kind === 'own view') return undefined;
  if (header.revision < known.revision) {
    return `etcd is at revision ${header.revision}, and was at ${known.revision} before: it was put back from a copy`;
  }
  if (header.raftTerm < known.term) {
    return `etcd is in term ${header.raftTerm}, and was in ${known.term} before: it was put back from a copy`;
  }
  return undefined;
}

/** @pure The high water after a confirmed answer. */
export function raised(known: HighWater | undefined, header: AnswerHeader): HighWater {
  const { clusterId, raftTerm, revision } = header;
  if (known === undefined) return { clusterId, term: raftTerm, revision };
  return { clusterId, term: later(raftTerm, known.term), revision: later(revision, known.revision) };
}

function later(one: bigint, other: bigint): bigint {
  return one < other ? other : one;
}
