/** @pure file: what a member list shows that the history lacks: the net below the reports of the nodes. */

import { formatId, type Member, type MemberList, sameUrls } from '../etcd/member.ts';
import type { History } from './history-draft.ts';
import { type HistoryEntry, type HistoryWitness, isArrival } from './history-entry.ts';
import type { MembershipFact } from './membership-fact.ts';

/**
 * @pure The facts that bring `history` to where `list` is, all inferred: the list shows that something was changed, not when, and not
 * what was changed and changed back. The history must be that from before the list was asked for, else a change between the two would
 * look undone. Empty for a list that no quorum confirmed, or of another cluster.
 *
 * It is for members that no node tells of any more (a curator that is set up beside an old cluster, reports that were dropped), and waits
 * until the reports have had their time: they know the order, and a list does not.
 */
export function factsFromList(
  history: History,
  list: MemberList,
  witness: Omit<HistoryWitness, 'certainty' | 'order'>,
): readonly MembershipFact[] {
  if (!list.linearizable || formatId(list.clusterId) !== history.clusterId) return [];
  const by = { ...witness, certainty: 'inferred', order: 0 } as const;
  const fact = (what: MembershipFact['what'], memberId: string, now: Pick<Member, 'peerUrls' | 'isLearner'>) => ({
    ...{ what, memberId, clusterId: history.clusterId, nodeId: '', witness: by, forked: false, urlsBefore: [] },
    ...{ learner: now.isLearner, peerUrls: now.peerUrls },
  });
  const lives = livesIn(history);
  const here = list.members.flatMap((member): readonly MembershipFact[] => {
    const memberId = formatId(member.id);
    const life = lives.get(memberId);
    if (history.forgotten.includes(memberId)) return [];
    if (life === undefined || (life.isLearner && !member.isLearner)) return [fact('added', memberId, member)];
    if (life.peerUrls.length === 0 || sameUrls(life.peerUrls, member.peerUrls)) return [];
    return [{ ...fact('urlsChanged', memberId, member), urlsBefore: life.peerUrls }];
  });
  const ids = new Set(list.members.map(({ id }) => formatId(id)));
  const gone = [...lives].filter(([memberId, { removed }]) => !removed && !ids.has(memberId));
  return [...here, ...gone.map(([memberId, life]) => fact('removed', memberId, life))];
}

/** What the history knows of a member. */
interface Life {
  readonly isLearner: boolean;
  readonly peerUrls: readonly string[];
  readonly removed: boolean;
}

function livesIn({ entries }: History): ReadonlyMap<string, Life> {
  const lives = new Map<string, Life>();
  for (const entry of entries) lives.set(entry.memberId, after(lives.get(entry.memberId), entry));
  return lives;
}

function after(life: Life | undefined, entry: HistoryEntry): Life {
  const isLearner = isArrival(entry) ? entry.learner : (life?.isLearner ?? false) && entry.transition !== 'promoted';
  const changesUrls = isArrival(entry) || entry.transition === 'urlsChanged';
  const peerUrls = changesUrls ? entry.peerUrls : (life?.peerUrls ?? []);
  return { isLearner, peerUrls, removed: entry.transition === 'removed' };
}
