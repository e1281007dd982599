/** @pure file: the changes of a member's peer URLs, of which there may be many, also to the same URLs again. */

import { sameUrls } from '../etcd/member.ts';
import { change, confirm, type Draft, enter } from './history-draft.ts';
import { type HistoryEntry, type HistoryWitness, witnessesOf } from './history-entry.ts';
import { putBefore } from './history-order.ts';
import type { MembershipFact } from './membership-fact.ts';

/** How many changes of its URLs are kept of one member; the oldest go first. */
export const keptUrlChanges = 100;

/**
 * @pure The draft with a report that the URLs of a member went from `urlsBefore` to `peerUrls`.
 *
 * The second time that one stream tells of a change to the same URLs, it is another change; the first time, it is the first that is
 * known. So there are as many entries as any one stream tells of, and none is invented. Where a member goes back and forth and no stream
 * tells of all of it, entries are lacking, and stand as one stream has it.
 */
export function changeUrls(draft: Draft, fact: MembershipFact): Draft {
  const { witness } = fact;
  const changes = changesOf(draft, fact.memberId);
  const same = changes.filter(({ peerUrls }) => sameUrls(peerUrls, fact.peerUrls));
  if (same.some((one) => toldBy(one, witness)?.seq === witness.seq)) return draft;
  const told = fact.forked ? -1 : same.findLastIndex((one) => toldBy(one, witness) !== undefined);
  const known = same[told + 1];
  if (known !== undefined) {
    // There are later ones, and it may be one of those: then the place where the reporter saw it says nothing of this one.
    const order = known === same.at(-1) ? witness.order : 0;
    const confirmed = confirm(draft, known.number, { ...fact, witness: { ...witness, order } });
    return behindBefore(confirmed, fact, known.number);
  }
  // Of so many changes some were dropped, and an old one that is told late would look new.
  const last = changes.at(-1);
  if (changes.length >= keptUrlChanges && !sameUrls(last?.peerUrls ?? [], fact.urlsBefore)) return draft;
  const occurrence = Math.max(0, ...same.map((one) => one.occurrence)) + 1;
  const entered = enter(withoutOrder(draft, same, witness), fact, {
    transition: 'urlsChanged',
    learner: false,
    witness,
    occurrence,
  });
  return withoutOldest(behindBefore(entered, fact, entered.history.last), fact.memberId);
}

function changesOf({ history }: Draft, memberId: string): readonly HistoryEntry[] {
  return history.entries.filter((one) => one.memberId === memberId && one.transition === 'urlsChanged');
}

function toldBy(entry: HistoryEntry, { nodeId, stream }: HistoryWitness): HistoryWitness | undefined {
  return witnessesOf(entry).find((one) => one.nodeId === nodeId && one.stream === stream);
}

/** There is a later one than these: only the stream that tells of it is known to mean these. */
function withoutOrder(draft: Draft, entries: readonly HistoryEntry[], by: HistoryWitness): Draft {
  const vague = (one: HistoryWitness) => (one.stream === by.stream || one.order === 0 ? one : { ...one, order: 0 });
  return entries.reduce(
    (next, { number, first, confirmed }) =>
      change(next, number, { first: vague(first), confirmed: confirmed.map(vague) }),
    draft,
  );
}

/** The change to the URLs that it had before comes before this one, where there is one of each. */
function behindBefore(draft: Draft, fact: MembershipFact, number: number): Draft {
  const changes = changesOf(draft, fact.memberId);
  const to = (urls: readonly string[]) => changes.filter(({ peerUrls }) => sameUrls(peerUrls, urls));
  const [before, ...others] = to(fact.urlsBefore);
  if (before === undefined || others.length > 0 || to(fact.peerUrls).length > 1) return draft;
  const { history, context } = draft;
  return { history: { ...history, entries: putBefore(history.entries, before.number, number) }, context };
}

function withoutOldest(draft: Draft, memberId: string): Draft {
  const changes = changesOf(draft, memberId);
  const [oldest] = changes;
  if (changes.length <= keptUrlChanges) return draft;
  const { history, context } = draft;
  return { history: { ...history, entries: history.entries.filter((entry) => entry !== oldest) }, context };
}
