/** @pure file: one committed change of the membership, and who saw it. */

import type { MembershipChange, Witness } from './records.ts';

/** A report of a change, and what it says of its place. */
export interface HistoryWitness extends Readonly<Witness> {
  /**
   * Of two changes that one stream reports, the one with the lower number was committed first. 0: the report does not say. See
   * src/curator/membership-fact.ts.
   */
  readonly order: number;
}

/** An entry of the history. */
export interface HistoryEntry extends Readonly<Omit<MembershipChange, 'peerUrls' | 'first' | 'confirmed'>> {
  /**
   * The place in the order of commitment: directly before the entry with this number, as it stands among those with lower numbers than
   * this one. 0: behind all of them, which is the rule. The number itself never changes.
   */
  readonly before: number;
  /** It came as a learner. False for a founder, for a voter that was added as one, and as long as everybody saw it as a voter only. */
  readonly learner: boolean;
  /** Since the change. */
  readonly peerUrls: readonly string[];
  /** The first who saw it; the first who concluded it, while nobody says that it was seen. */
  readonly first: HistoryWitness;
  readonly confirmed: readonly HistoryWitness[];
  /** When it was stored, by the clock of the curator that stored it. ISO 8601, UTC. */
  readonly storedAt: string;
}

/** How many nodes are remembered as witnesses of one change. A cluster has seven members at most, over the years many more. */
export const maxWitnesses = 16;

/** @pure True for the change with which a member came into its cluster. */
export function isArrival({ transition }: HistoryEntry): boolean {
  return transition === 'founded' || transition === 'added';
}

/** @pure Everybody who reported it, the first one first. */
export function witnessesOf({ first, confirmed }: HistoryEntry): readonly HistoryWitness[] {
  return [first, ...confirmed];
}

/**
 * @pure The entry with one more witness. Each node counts once; what it saw replaces what it had only concluded. Who saw it comes
 * before who concluded it.
 */
export function confirmedBy(entry: HistoryEntry, witness: HistoryWitness): HistoryEntry {
  const known = witnessesOf(entry);
  const own = known.find(({ nodeId }) => nodeId === witness.nodeId);
  if (own === undefined && known.length >= maxWitnesses) return entry;
  if (own !== undefined && (own.certainty === 'observed' || witness.certainty === 'inferred')) return entry;
  const all = [...known.filter((one) => one !== own), witness];
  const first = all.find(({ certainty }) => certainty === 'observed') ?? all[0] ?? witness;
  return { ...entry, certainty: first.certainty, first, confirmed: all.filter((one) => one !== first) };
}
