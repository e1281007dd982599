/** @pure file: what is given up when the outbox is full, and the gap that takes its place. */

import { encodeFact, type GapData, gapDataOf, gapKind, type StoredFact } from './fact.ts';
import { coalesce } from './history.ts';
import { isDroppable } from './segment.ts';

/** What may be given up now. */
export interface SqueezeOptions {
  /** `unimportant` first; `all` only when that was not enough. */
  readonly may: 'unimportant' | 'all';
  /** So many facts at the start stay: they may be on their way to the receiver already. */
  readonly keepHead: number;
  /** Stops once so much is freed. */
  readonly need: Room;
  /** The newest fact of all always stays: the witness knows its id. */
  readonly newestId: string;
  /** Makes the fact that stands for `from` to `to`. */
  readonly makeGap: (from: number, to: number, data: GapData) => StoredFact;
}

/** An amount of room in the outbox. */
export interface Room {
  readonly bytes: number;
  readonly facts: number;
}

/** @pure `facts` (neighbours in one stream) with the oldest that may go replaced by gaps, one for each run. */
export function squeeze(facts: readonly StoredFact[], options: SqueezeOptions): readonly StoredFact[] {
  const kept: StoredFact[] = [];
  let run: StoredFact[] = [];
  let freed: Room = { bytes: 0, facts: 0 };
  const endRun = () => {
    kept.push(...(isWorthAGap(run) ? [mergeToGap(run, options.makeGap)] : run));
    run = [];
  };
  for (const [index, fact] of facts.entries()) {
    const enough = freed.bytes >= options.need.bytes && freed.facts >= options.need.facts;
    if (index < options.keepHead || enough || !mayGo(fact, options)) {
      endRun();
      kept.push(fact);
      continue;
    }
    run.push(fact);
    freed = add(freed, { bytes: lineBytes(fact) - (run.length === 1 ? gapBytes : 0), facts: run.length === 1 ? 0 : 1 });
  }
  endRun();
  return kept;
}

/** About the size of a gap on disk. Unit: bytes. */
const gapBytes = 500;

/** A single small fact would make room for nothing but its own gap; a single gap keeps its id, which was perhaps seen. */
function isWorthAGap(run: readonly StoredFact[]): boolean {
  const [first] = run;
  return run.length > 1 || (first !== undefined && first.kind !== gapKind && lineBytes(first) > 2 * gapBytes);
}

/** @pure The size of a fact on disk. Unit: bytes. */
export function lineBytes(fact: StoredFact): number {
  return new TextEncoder().encode(encodeFact(fact)).byteLength;
}

function mayGo(fact: StoredFact, { may, newestId }: SqueezeOptions): boolean {
  if (fact.id === newestId) return false;
  // The first fact of a stream says where the stream before it ended; without it that end could not be checked.
  if (fact.kind === gapKind) return gapDataOf(fact)?.previous === undefined;
  return may === 'all' || isDroppable(fact);
}

function mergeToGap(run: readonly StoredFact[], makeGap: SqueezeOptions['makeGap']): StoredFact {
  const from = run[0]?.from ?? 1;
  const to = run.at(-1)?.seq ?? from;
  const stream = run[0]?.stream ?? '';
  const dropped: Record<string, number> = {};
  for (const fact of run) {
    const counts = fact.kind === gapKind ? (gapDataOf(fact)?.dropped ?? {}) : { [fact.kind]: 1 };
    for (const [kind, count] of Object.entries(counts)) dropped[kind] = (dropped[kind] ?? 0) + count;
  }
  const named = run.flatMap((fact) => gapDataOf(fact)?.missing ?? []);
  const missing = coalesce([{ stream, from, to }, ...named]);
  return makeGap(from, to, { because: 'the outbox was full', missing, dropped });
}

function add(one: Room, other: Room): Room {
  return { bytes: one.bytes + other.bytes, facts: one.facts + other.facts };
}

/** @pure A gap in the place of one fact, which an operator skipped or nobody can read. */
export function gapInPlaceOf(fact: StoredFact, because: string, makeGap: SqueezeOptions['makeGap']): StoredFact {
  const own = gapDataOf(fact);
  const missing = coalesce([{ stream: fact.stream, from: fact.from, to: fact.seq }, ...(own?.missing ?? [])]);
  const dropped = own?.dropped ?? { [fact.kind]: 1 };
  const data: GapData = { because, missing, dropped };
  return makeGap(fact.from, fact.seq, own?.previous === undefined ? data : { ...data, previous: own.previous });
}
