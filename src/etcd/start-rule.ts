/** @pure file: may a member be started whose removal is not confirmed? */

import { type ClusterId, formatId, type MemberId, type MemberList, memberById } from './member.ts';

/** What is known at the moment of a start. */
export interface StartQuestion {
  readonly ownId: MemberId;
  readonly clusterId: ClusterId;
  /** The lists that peers answer now; one that nobody confirmed counts as well, for here it only forbids or allows one try. */
  readonly lists: readonly MemberList[];
  /** How long no peer has answered. Unit: ms. */
  readonly silentForMs: number;
}

export interface StartAnswer {
  readonly start: boolean;
  readonly because: string;
}

/** How long nobody may have answered before a start is tried all the same: etcd itself may reach them. Unit: ms. */
export const silenceBeforeStartMs = 30_000;

/** @pure Row 2 of docs/exit-classes.md: an allowed start is one start, the next one waits for its backoff. */
export function mayStartUnconfirmed({ ownId, clusterId, lists, silentForMs }: StartQuestion): StartAnswer {
  const answered = lists.filter((list) => list.clusterId === clusterId && list.answeredBy !== ownId);
  const lacking = answered.find((list) => memberById(list.members, ownId) === undefined);
  if (lacking !== undefined) {
    return { start: false, because: `the list of ${formatId(lacking.answeredBy)} lacks us` };
  }
  const having = answered[0];
  if (having !== undefined) return { start: true, because: `the list of ${formatId(having.answeredBy)} has us` };
  if (silentForMs >= silenceBeforeStartMs) return { start: true, because: 'nobody has answered for 30 s' };
  return { start: false, because: 'nobody has answered yet' };
}
