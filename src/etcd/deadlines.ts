/** @pure file: how long each kind of call to etcd may take. */

/** Unit: ms. Without a quorum etcd gives reads up after 7 s, and changes never. Source: docs/etcd-facts.md, "Cluster API". */
export const callDeadlines = {
  statusMs: 2_000,
  listMs: 5_000,
  keysMs: 5_000,
  changeMs: 10_000,
  /** Three elections: a frozen target makes the call hang. */
  moveLeaderMs: 3_000,
} as const;

/** What one call may override. */
export interface CallWishes {
  /** Unit: ms, greater than 0. Default: {@link callDeadlines} of its kind. */
  readonly deadlineMs?: number | undefined;
  /** Gives the call up. */
  readonly signal?: AbortSignal | undefined;
}

/** @pure The wishes with a deadline in any case. */
export function withDefaults(
  how: CallWishes,
  deadlineMs: number,
): { deadlineMs: number; signal: AbortSignal | undefined } {
  return { deadlineMs: how.deadlineMs ?? deadlineMs, signal: how.signal };
}
