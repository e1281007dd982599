/** @pure file: which of two changes was committed first, and the order of all of them. */

import { type HistoryEntry, isArrival, witnessesOf } from './history-entry.ts';

/**
 * @pure True if it is proven that `one` was committed before `other`. `standsFirst` tells whether it stands before it now, which
 * decides between two changes of the URLs of one member that nothing else orders. What proves it:
 *
 * - a member comes, then is promoted or changes its URLs, then goes, and never comes again: etcd does not use an id twice;
 * - the founders are the first entries of the raft log, in the order of their ids. Source: `bootstrapRaftFromCluster`, etcd 3.6 and 3.7;
 * - a node that reports both, and knows ({@link HistoryWitness.order}), has seen them in this order.
 */
export function isProvenBefore(one: HistoryEntry, other: HistoryEntry, standsFirst: boolean): boolean {
  if (one.memberId === other.memberId) {
    const byLife = lifeRank(one) - lifeRank(other);
    if (byLife !== 0) return byLife < 0;
  }
  const byFounding = foundingOrder(one, other);
  if (byFounding !== 0) return byFounding < 0;
  const bySight = orderSeen(one, other);
  if (bySight !== 0) return bySight < 0;
  const sameUrlsStory = one.memberId === other.memberId && one.transition === other.transition;
  return sameUrlsStory && standsFirst;
}

function lifeRank(entry: HistoryEntry): number {
  return isArrival(entry) ? 0 : entry.transition === 'removed' ? 2 : 1;
}

/** A voter that stands in the list may be a founder that has not said so. */
function foundingOrder(one: HistoryEntry, other: HistoryEntry): number {
  const [a, b] = [one.transition === 'founded', other.transition === 'founded'];
  if (a && b) return BigInt(`0x${one.memberId}`) < BigInt(`0x${other.memberId}`) ? -1 : 1;
  if (a === b) return 0;
  const rest = a ? other : one;
  if (isArrival(rest) && !rest.learner) return 0;
  return a ? -1 : 1;
}

/** By what the nodes saw; 0 if none saw both, or if they contradict each other. */
function orderSeen(one: HistoryEntry, other: HistoryEntry): number {
  let seen = 0;
  for (const witness of witnessesOf(one)) {
    if (witness.order === 0) continue;
    const same = witnessesOf(other).find(
      ({ nodeId, stream, order }) => nodeId === witness.nodeId && stream === witness.stream && order > 0,
    );
    const difference = same === undefined ? 0 : Math.sign(witness.order - same.order);
    if (difference === 0) continue;
    if (seen === -difference) return 0;
    seen = difference;
  }
  return seen;
}

/**
 * @pure `entries`, in which the entry `number` is new or has become better known, in an order that agrees with all that is proven
 * of it. As little as possible is moved, and always forward: what arrived late goes before what it belongs before. What contradicts
 * itself stays where it is.
 */
export function settled(entries: readonly HistoryEntry[], number: number): readonly HistoryEntry[] {
  const entry = entries.find((one) => one.number === number);
  if (entry === undefined) return entries;
  const at = entries.indexOf(entry);
  const tooEarly = entries.findIndex((one, index) => index < at && isProvenBefore(entry, one, false));
  let result = tooEarly === -1 ? entries : movedUp(entries, at, tooEarly);
  const tooLate = result.slice(result.indexOf(entry) + 1).filter((one) => isProvenBefore(one, entry, false));
  for (const late of tooLate) result = movedUp(result, result.indexOf(late), result.indexOf(entry));
  return result;
}

/** @pure `entries` with the entry `number` before the entry `other`, unless what is proven forbids it. */
export function putBefore(entries: readonly HistoryEntry[], number: number, other: number): readonly HistoryEntry[] {
  const from = entries.findIndex((one) => one.number === number);
  const to = entries.findIndex((one) => one.number === other);
  return from > to && to !== -1 ? movedUp(entries, from, to, false) : entries;
}

/** The entry at `from`, and all that must stand before it, moved before the one at `to`. Place alone counts as {@link isProvenBefore} has it. */
function movedUp(
  entries: readonly HistoryEntry[],
  from: number,
  to: number,
  placeCounts = true,
): readonly HistoryEntry[] {
  const moved: HistoryEntry[] = [];
  const left: HistoryEntry[] = [];
  for (const entry of entries.slice(to, from + 1).reverse()) {
    const goes = moved.length === 0 || moved.some((one) => isProvenBefore(entry, one, placeCounts));
    (goes ? moved : left).push(entry);
  }
  const target = entries[to];
  // What only stands so gives way to what is proven; what is proven both ways is left.
  if (target === undefined || moved.includes(target)) return placeCounts ? movedUp(entries, from, to, false) : entries;
  return [...entries.slice(0, to), ...moved.reverse(), ...left.reverse(), ...entries.slice(from + 1)];
}

/** @pure `entries`, which stand in order, with `before` saying so. What has it right already is left as it is. */
export function withPlaces(entries: readonly HistoryEntry[]): readonly HistoryEntry[] {
  // Taken away from the highest number down, so that the neighbour of each is the next of those with lower numbers.
  const next = entries.map((_entry, index) => index + 1);
  const previous = entries.map((_entry, index) => index - 1);
  const result = [...entries];
  const byNumber = entries.map((_entry, index) => index).sort((a, b) => numberAt(entries, b) - numberAt(entries, a));
  for (const index of byNumber) {
    const [behind = entries.length, ahead = -1] = [next[index], previous[index]];
    if (ahead >= 0) next[ahead] = behind;
    if (behind < entries.length) previous[behind] = ahead;
    const entry = entries[index];
    const before = numberAt(entries, behind);
    if (entry !== undefined && entry.before !== before) result[index] = { ...entry, before };
  }
  return result;
}

function numberAt(entries: readonly HistoryEntry[], index: number): number {
  return entries[index]?.number ?? 0;
}

/** @pure The entries in the order of commitment, from any order: what a reader does who has all of them. */
export function inOrder<Entry extends { readonly number: number; readonly before: number }>(
  entries: readonly Entry[],
): readonly Entry[] {
  const placed: Entry[] = [];
  for (const entry of [...entries].sort((a, b) => a.number - b.number)) {
    const at = entry.before === 0 ? -1 : placed.findIndex((one) => one.number === entry.before);
    if (at === -1) placed.push(entry);
    else placed.splice(at, 0, entry);
  }
  return placed;
}
