/** @pure file: is a log older than what the member had acknowledged? */

import type { DataOfMember } from './data-dir.ts';

/** What was seen of a member while it ran, from its `Status`: its term and the index that it had applied. */
export interface NotedProgress {
  readonly term: bigint;
  readonly appliedIndex: bigint;
}

/**
 * @pure Why the data must not be started: it is behind what the member once had, so it was put back from a copy. Undefined if it
 * is not. A voter that forgot acknowledged writes loses them for the whole cluster, without a line in any log.
 *
 * `noted` must be the poll before the last one: etcd applies beside its own fsync, so the last value may rightly be
 * ahead after a power cut. Both numbers only grow in an intact log: applied entries are never overwritten, and the term is
 * synced before it is used. Source: docs/etcd-facts.md, "silent disasters".
 */
export function logRegression(
  noted: NotedProgress,
  data: Pick<DataOfMember, 'last' | 'term' | 'commit'>,
): string | undefined {
  if (data.last.index < noted.appliedIndex) {
    return `its log ends at index ${data.last.index}, but it had applied ${noted.appliedIndex}`;
  }
  if (data.term < noted.term && data.last.term < noted.term) {
    return `its log knows term ${data.term}, but it had been in term ${noted.term}`;
  }
  return undefined;
}
