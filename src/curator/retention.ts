/** @pure file: what the curator keeps of events, ended operations and the membership history, and what goes first. */

import type { History } from './history-draft.ts';

/** How much is kept of one kind of thing. */
export interface Bounds {
  /** More than this go, whatever their age. */
  readonly count: number;
  /** What is older goes. Unit: ms, by the clock of the curator. */
  readonly ageMs: number;
  /** So many are kept whatever their age: a clock that jumps ahead does not wipe everything. */
  readonly atLeast: number;
}

/** Something that is kept under a number. */
export interface Kept {
  readonly number: number;
  /** When it was stored. Unit: ms since 1970. */
  readonly storedAtMs: number;
  /** `first`: before all others. `last`: when none of those is left, for reports of membership. `never`: for what is under way. */
  readonly goes: 'first' | 'last' | 'never';
}

/** @pure The numbers that go now, in the order in which they go: the oldest first, and of the two kinds `first` before `last`. */
export function numbersToDrop(kept: readonly Kept[], bounds: Bounds, nowMs: number): readonly number[] {
  const rank = ({ goes }: Kept) => (goes === 'first' ? 0 : 1);
  const mayGo = kept
    .filter(({ goes }) => goes !== 'never')
    .sort((one, other) => rank(one) - rank(other) || one.number - other.number);
  const beyond = Math.max(0, kept.length - bounds.count);
  const mayAge = Math.max(0, kept.length - bounds.atLeast);
  const isOld = ({ storedAtMs }: Kept) => storedAtMs < nowMs - bounds.ageMs;
  const byCount = mayGo.slice(0, beyond);
  const byAge = mayGo
    .slice(beyond)
    .filter(isOld)
    .slice(0, Math.max(0, mayAge - byCount.length));
  return [...byCount, ...byAge].map(({ number }) => number);
}

/**
 * @pure The members whose entries go now, whole, those first that were removed longest ago. A member that is in the cluster keeps all
 * of its entries, so that what is reported of it is known from what is kept.
 */
export function membersToForget(
  { entries }: Pick<History, 'entries'>,
  bounds: Bounds,
  nowMs: number,
): readonly string[] {
  const gone = entries
    .filter(({ transition }) => transition === 'removed')
    .sort((one, other) => one.number - other.number);
  const forget: string[] = [];
  let left = entries.length;
  for (const { memberId, storedAt } of gone) {
    const size = entries.filter((entry) => entry.memberId === memberId).length;
    const isOld = Date.parse(storedAt) < nowMs - bounds.ageMs;
    const goes = left > bounds.count || (isOld && left - size >= bounds.atLeast);
    if (!goes) continue;
    forget.push(memberId);
    left -= size;
  }
  return forget;
}
