/** @pure file: one segment file of the outbox: a run of facts, one line each. */

import { decodeFact, type GapData, gapDataOf, gapKind, type Missing, type StoredFact } from './fact.ts';

/** What is known of one segment without keeping its facts in memory. */
export interface Segment {
  readonly path: string;
  /** Segments follow each other in this order. From 1, never reused while later ones exist. */
  readonly ordinal: number;
  readonly stream: string;
  /** The first number that it covers. */
  readonly first: number;
  /** The last number that it covers. */
  readonly last: number;
  /** Unit: bytes. What lies beyond is no accepted fact. */
  readonly bytes: number;
  readonly facts: number;
  /** How many of the facts may be given up before any fact of membership. */
  readonly droppable: number;
}

/** What a look at the content of a segment file shows. */
export interface SegmentScan {
  readonly path: string;
  readonly ordinal: number;
  readonly stream: string;
  /** Undefined if there is no good line. */
  readonly segment: Segment | undefined;
  /** Numbers that are missing between good lines. */
  readonly holes: readonly Missing[];
  /** True if a line before the last good one is damaged. */
  readonly damagedWithin: boolean;
  /** True if something that is no fact follows the last good line: a torn tail, if this is the end of the history. */
  readonly badTail: boolean;
  /** Set if a record was written by a newer agent. */
  readonly newerVersion: number | undefined;
  /** Only if the first fact opens a stream: what it says of the stream before and of what is missing. */
  readonly opener: GapData | undefined;
  readonly firstIsGap: boolean;
  /** The last number that the first fact stands for; 0 if there is none. */
  readonly firstTo: number;
  /** The last good fact and the one before it. */
  readonly lastId: string | undefined;
  readonly lastIsGap: boolean;
  readonly beforeLast: { readonly seq: number; readonly id: string; readonly isGap: boolean } | undefined;
}

/** One line of a segment. */
export type SegmentLine =
  | { readonly kind: 'fact'; readonly fact: StoredFact; readonly end: number }
  | { readonly kind: 'damaged'; readonly why: string; readonly end: number }
  | { readonly kind: 'newer'; readonly version: number; readonly end: number };

/** @pure The lines of `content` from byte `offset` on. A last line without its newline is damaged. */
export function* linesOf(content: Uint8Array, offset = 0): Generator<SegmentLine> {
  for (let start = offset; start < content.byteLength; ) {
    const newline = content.indexOf(10, start);
    const end = newline === -1 ? content.byteLength : newline + 1;
    if (newline === -1) yield { kind: 'damaged', why: 'it has no end', end };
    else yield { ...decodeFact(content.subarray(start, newline)), end };
    start = end;
  }
}

/** @pure Looks at a whole segment file. Facts from number `before` on are no part of it: a later file has them. */
export function scanSegment(
  file: { readonly path: string; readonly ordinal: number; readonly stream: string },
  content: Uint8Array,
  before = Number.POSITIVE_INFINITY,
): SegmentScan {
  const holes: Missing[] = [];
  let first: StoredFact | undefined;
  let last: StoredFact | undefined;
  let beforeLast: StoredFact | undefined;
  let badSince = false;
  let damagedWithin = false;
  let newerVersion: number | undefined;
  let bytes = 0;
  let facts = 0;
  let droppable = 0;
  for (const line of linesOf(content)) {
    if (line.kind === 'newer') newerVersion = line.version;
    const known = line.kind === 'fact' && line.fact.stream === file.stream && line.fact.seq > (last?.seq ?? 0);
    if (line.kind !== 'fact' || !known || line.fact.seq >= before) {
      badSince = true;
      continue;
    }
    if (badSince) damagedWithin = true;
    badSince = false;
    const { fact } = line;
    if (last !== undefined && fact.from > last.seq + 1)
      holes.push({ stream: file.stream, from: last.seq + 1, to: fact.from - 1 });
    first ??= fact;
    beforeLast = last;
    last = fact;
    bytes = line.end;
    facts++;
    if (isDroppable(fact)) droppable++;
  }
  return {
    ...file,
    segment:
      first === undefined || last === undefined
        ? undefined
        : { ...file, first: first.from, last: last.seq, bytes, facts, droppable },
    holes,
    damagedWithin: damagedWithin || holes.length > 0,
    badTail: badSince,
    newerVersion,
    opener: first === undefined || first.seq !== 1 ? undefined : gapDataOf(first),
    firstIsGap: first?.kind === gapKind,
    firstTo: first?.seq ?? 0,
    lastId: last?.id,
    lastIsGap: last?.kind === gapKind,
    beforeLast: beforeLast && { seq: beforeLast.seq, id: beforeLast.id, isGap: beforeLast.kind === gapKind },
  };
}

/** @pure True if the fact may be given up before any fact of membership. */
export function isDroppable(fact: StoredFact): boolean {
  return !fact.important && fact.kind !== gapKind;
}
