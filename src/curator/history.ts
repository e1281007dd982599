/**
 * @pure file: the membership history: what several nodes report, merged into one entry for each committed change.
 *
 * A number is given in the order in which changes become known, and never changes: readers hold cursors. It is the order of commitment
 * as long as the reports come from nodes that saw all changes, since each tells of them in order, and whoever comes later only confirms.
 * A change that becomes known late says where it belongs (`before`), and an order that is proven later is mended the same way.
 */

import {
  attributed,
  change,
  confirm,
  type Draft,
  enter,
  type History,
  type HistoryContext,
  inferred,
} from './history-draft.ts';
import { type HistoryEntry, isArrival } from './history-entry.ts';
import { inOrder, withPlaces } from './history-order.ts';
import { changeUrls } from './history-urls.ts';
import type { MembershipFact } from './membership-fact.ts';

/** What a report has changed. */
export interface HistoryStep {
  readonly history: History;
  /** The entries that are new or differ, by number: what is to be written, and what watchers are told. */
  readonly changed: readonly HistoryEntry[];
  /** The numbers of entries that were dropped for it. */
  readonly dropped: readonly number[];
  /** Why the report is left out of the history; empty if it is not. */
  readonly ignored: string;
}

/** @pure A history that nothing was reported to. */
export function emptyHistory(id: string, clusterId: string): History {
  return { id, clusterId, last: 0, entries: [], forgotten: [] };
}

/** @pure The history as it was stored, its entries in whatever order. */
export function loadedHistory(stored: History): History {
  return { ...stored, entries: inOrder(stored.entries) };
}

/**
 * @pure The history with one more fact. Facts come in any order, late, and repeated; taking one twice changes nothing.
 *
 * A fact proves more than it says: whoever is promoted was added before, and whoever came as a learner and is a voter was promoted.
 * What is proven so and was not reported yet gets its entry at once, in its place and as inferred; its own report then confirms it.
 */
export function takeFact(history: History, fact: MembershipFact, context: HistoryContext): HistoryStep {
  const ignored = reasonToIgnore(history, fact);
  if (ignored !== '') return { history, changed: [], dropped: [], ignored };
  return stepBetween(history, merged({ history, context }, fact).history);
}

/** @pure The history once it is known which node runs a member: each report of a node names its own. */
export function learnOwner(
  history: History,
  owner: { readonly clusterId: string; readonly memberId: string; readonly nodeId: string },
  context: HistoryContext,
): HistoryStep {
  const isNews = (entry: HistoryEntry) => entry.memberId === owner.memberId && entry.nodeId === '';
  if (owner.clusterId !== history.clusterId || !history.entries.some(isNews)) return stepBetween(history, history);
  const entries = history.entries.map((entry) =>
    isNews(entry) ? attributed({ ...entry, nodeId: owner.nodeId }, context) : entry,
  );
  return stepBetween(history, { ...history, entries });
}

/** @pure The history without the entries of these members, which it remembers by their ids, the newest `keptIds` of them. */
export function withoutMembers(history: History, memberIds: readonly string[], keptIds: number): HistoryStep {
  const entries = history.entries.filter(({ memberId }) => !memberIds.includes(memberId));
  const forgotten = [...history.forgotten, ...memberIds].slice(-keptIds);
  return stepBetween(history, { ...history, entries, forgotten });
}

function stepBetween(before: History, after: History): HistoryStep {
  const entries = withPlaces(after.entries);
  const known = new Set(before.entries);
  const kept = new Set(entries.map(({ number }) => number));
  const changed = entries.filter((entry) => !known.has(entry)).sort((a, b) => a.number - b.number);
  const dropped = before.entries.filter(({ number }) => !kept.has(number)).map(({ number }) => number);
  return { history: { ...after, entries }, changed, dropped, ignored: '' };
}

function reasonToIgnore(history: History, { clusterId, memberId }: MembershipFact): string {
  if (clusterId !== history.clusterId)
    return `it is of cluster ${clusterId}, and this is the history of ${history.clusterId}`;
  return history.forgotten.includes(memberId) ? `the entries of member ${memberId} were dropped long ago` : '';
}

function merged(draft: Draft, fact: MembershipFact): Draft {
  switch (fact.what) {
    case 'founded':
    case 'joined':
    case 'added':
      return arrived(draft, fact, 'reported');
    case 'promoted':
      return reported(arrived(draft, { ...fact, learner: true }, 'implied'), fact, 'promoted');
    case 'removed':
      return reported(arrived(draft, fact, 'implied'), fact, 'removed');
    case 'urlsChanged':
      return changeUrls(entryOf(draft, fact.memberId, isArrival) === undefined ? cameWith(draft, fact) : draft, fact);
  }
}

/** It came before its URLs changed. Some etcd take the mark of a learner off with that change, so it tells nothing of a promotion. */
function cameWith(draft: Draft, fact: MembershipFact): Draft {
  return arrived(draft, { ...fact, peerUrls: fact.urlsBefore }, 'implied');
}

/** The member came. If one saw it as a learner and another as a voter, it was promoted in between. */
function arrived(draft: Draft, fact: MembershipFact, how: 'reported' | 'implied'): Draft {
  const isReported = how === 'reported';
  const isFounder = isReported && fact.what === 'founded';
  const known = entryOf(draft, fact.memberId, isArrival);
  if (known === undefined) {
    const witness = isReported ? fact.witness : inferred(fact.witness);
    return enter(draft, fact, { transition: isFounder ? 'founded' : 'added', learner: fact.learner, witness });
  }
  const confirmed = isReported ? confirm(draft, known.number, fact) : draft;
  if (isFounder) return known.learner ? confirmed : change(confirmed, known.number, { transition: 'founded' });
  if (fact.learner === known.learner || known.transition === 'founded') return confirmed;
  const asLearner = change(confirmed, known.number, { learner: true });
  if (entryOf(asLearner, fact.memberId, isPromotion) !== undefined) return asLearner;
  const voterSeenBy = fact.learner ? known.first : fact.witness;
  return enter(asLearner, fact, { transition: 'promoted', learner: false, witness: inferred(voterSeenBy) });
}

function reported(draft: Draft, fact: MembershipFact, transition: 'promoted' | 'removed'): Draft {
  const known = entryOf(draft, fact.memberId, (entry) => entry.transition === transition);
  if (known !== undefined) return confirm(draft, known.number, fact);
  return enter(draft, fact, { transition, learner: false, witness: fact.witness });
}

function entryOf(
  { history }: Draft,
  memberId: string,
  which: (entry: HistoryEntry) => boolean,
): HistoryEntry | undefined {
  return history.entries.find((entry) => entry.memberId === memberId && which(entry));
}

function isPromotion({ transition }: HistoryEntry): boolean {
  return transition === 'promoted';
}
