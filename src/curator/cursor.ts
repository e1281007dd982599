/** @pure file: cursors: where a reader is, and whether something went before it was read. */

import type { CuratorRefusal } from './refusal.ts';

/** What is read: numbered from 1, some of it gone. */
export interface Readable<Item extends { readonly number: number }> {
  /** Of this history, or of these events. Random; another one when numbers may come a second time. */
  readonly id: string;
  /** The highest number that was given out. */
  readonly last: number;
  /** What is kept, by number. */
  readonly items: readonly Item[];
}

/** One answer to a reader. */
export type CursorReading<Item> =
  | { readonly kind: 'page'; readonly items: readonly Item[]; readonly next: string; readonly more: boolean }
  /** CURSOR_LOST: so many went before they were read. `resume` goes on behind the loss, knowing of it. */
  | { readonly kind: 'lost'; readonly lost: number; readonly resume: string; readonly refusal: CuratorRefusal }
  /** The cursor is none of this history, or no cursor. */
  | { readonly kind: 'refused'; readonly refusal: CuratorRefusal };

/** How many items a page has at most. */
export const maxPage = 1_000;

/**
 * @pure The next page behind `cursor`; an empty one stands before the oldest that is kept. A cursor carries how many numbers behind it
 * were gone when it was made. What has gone since then, its reader has lost: it is told so, once, and never gets the next page instead.
 */
export function readAfter<Item extends { readonly number: number }>(
  readable: Readable<Item>,
  cursor: string,
  limit: number,
): CursorReading<Item> {
  const start = cursor === '' ? { id: readable.id, number: 0, gone: goneBehind(readable, 0) } : parsed(cursor);
  if (start === undefined) return refused('invalidArgument', 'it is none of this curator');
  if (start.id !== readable.id) return refused('cursorLost', 'it is of another history');
  const gone = goneBehind(readable, start.number);
  // Numbers that are there again, or are not yet given out: an older copy took the place of the history.
  if (start.number > readable.last || start.gone > gone) return refused('cursorLost', 'it is ahead of this history');
  if (gone > start.gone) return lost(readable, start.number, gone - start.gone);
  const items = readable.items.filter(({ number }) => number > start.number);
  const page = items.slice(0, Math.min(Math.max(1, limit), maxPage));
  const next = cursorAt(readable, page.at(-1)?.number ?? start.number);
  return { kind: 'page', items: page, next, more: items.length > page.length };
}

/** @pure The cursor of a reader that has read up to `number`, and knows what is gone behind it. */
export function cursorAt(
  readable: Pick<Readable<{ readonly number: number }>, 'id' | 'last' | 'items'>,
  number: number,
): string {
  return `${readable.id}.${number}.${goneBehind(readable, number)}`;
}

function parsed(cursor: string): { readonly id: string; readonly number: number; readonly gone: number } | undefined {
  const match = /^([A-Za-z0-9_-]{1,64})\.(\d{1,15})\.(\d{1,15})$/.exec(cursor);
  const [, id, number, gone] = match ?? [];
  return id === undefined ? undefined : { id, number: Number(number), gone: Number(gone) };
}

/** How many of the numbers behind `number` that were given out are not kept. */
function goneBehind(readable: Pick<Readable<{ readonly number: number }>, 'last' | 'items'>, number: number): number {
  return Math.max(0, readable.last - number) - readable.items.filter((item) => item.number > number).length;
}

function lost<Item extends { readonly number: number }>(
  readable: Readable<Item>,
  number: number,
  count: number,
): CursorReading<Item> {
  const resume = cursorAt(readable, number);
  const message = `${count} ${count === 1 ? 'entry' : 'entries'} behind number ${number} went before this reader came`;
  const hint = 'They were dropped at the bounds of the curator. Its answer has a cursor to go on with.';
  return { kind: 'lost', lost: count, resume, refusal: { reason: 'cursorLost', message, hint } };
}

function refused(reason: CuratorRefusal['reason'], because: string): { kind: 'refused'; refusal: CuratorRefusal } {
  const hint = 'Read anew, with an empty cursor: what is kept now is a whole of its own.';
  return { kind: 'refused', refusal: { reason, message: `the cursor is refused: ${because}`, hint } };
}
