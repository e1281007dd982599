/** @pure file: can the local history be trusted? What is missing from it? (docs/adr/0020-outbox-history.md) */

import type { RecordReading } from '../base/record.ts';
import { isMissing, isObject, isPlace, type Missing, type Place } from './fact.ts';
import type { SegmentScan } from './segment.ts';

/**
 * A small record, kept elsewhere than the outbox, of how far the history went. It is written after the fact is on disk
 * and before the fact counts as accepted. So the history ends where the witness says, or one fact later.
 */
export interface Witness {
  readonly stream: string;
  /** The last number that was accepted; 0 before the first. */
  readonly high: number;
  /** Id of the fact of that number; empty before the first. */
  readonly id: string;
  /** How far everything was acknowledged when this was written; null if nothing was. */
  readonly acked: Place | null;
  /** Older streams of which something was not acknowledged, with their last numbers; oldest first. */
  readonly earlier: readonly Place[];
  /** How often it has been written: of two copies the one with more is the newer. */
  readonly writes: number;
  /** What was lost in earlier accidents and named by a fact that is not acknowledged: if that is lost too, it is named again. */
  readonly lost: readonly Missing[];
}

/** What is known of a record that ought to be there. */
export type Known<T> =
  | { readonly kind: 'absent' }
  | { readonly kind: 'damaged'; readonly why: string }
  | { readonly kind: 'ok'; readonly value: T };

/** What the files of an outbox show, in the order of the segments. */
export interface HistoryFound {
  readonly scans: readonly SegmentScan[];
  readonly witness: Known<Witness>;
  /** How far the receiver acknowledged, from the outbox's own record. */
  readonly acked: Known<Place | null>;
}

export interface Verdict {
  /** Undefined if the history can be trusted; else why not, and what is missing. */
  readonly distrust: Distrust | undefined;
  /** The stream and number that the next fact follows; undefined if there is none yet. Only meaningful with trust. */
  readonly end: Place | undefined;
  /** Where sending goes on; undefined: at the very beginning. */
  readonly acked: Place | undefined;
  /** True if the witness has to be brought up to the end of the history before anything is sent. */
  readonly witnessBehind: boolean;
  /** Numbers for which a gap must be put before the first fact of a segment, by path. */
  readonly missingBefore: ReadonlyMap<string, Missing>;
}

export interface Distrust {
  readonly because: string;
  readonly missing: readonly Missing[];
  /** The last stream that is still here, for the first fact of the new one. */
  readonly previous: Place | undefined;
}

/** @pure Reads a witness record. */
export function readWitness(
  reading: RecordReading,
): Known<Witness> | { readonly kind: 'newer'; readonly version: number } {
  if (reading.kind !== 'ok') return reading;
  const { value } = reading;
  const damaged = { kind: 'damaged' as const, why: 'it is no witness record' };
  if (!isObject(value)) return damaged;
  const { stream, high, id, acked, earlier, lost, writes } = value;
  const end = { stream, seq: high };
  if (!Array.isArray(lost) || !lost.every(isMissing)) return damaged;
  if (!isPlace(end) || typeof id !== 'string' || !Array.isArray(earlier) || !earlier.every(isPlace)) return damaged;
  if (acked !== null && !isPlace(acked)) return damaged;
  return {
    kind: 'ok',
    value: { stream: end.stream, high: end.seq, id, acked, earlier, lost, writes: Number(writes ?? 0) },
  };
}

/** @pure Compares the witness with its twin: an old copy may have been put back. `old` names the one to be written anew. */
export function newerWitness(
  own: Known<Witness>,
  twin: Known<Witness>,
): { readonly witness: Known<Witness>; readonly old: 'own' | 'twin' | undefined } {
  const [ownWrites, twinWrites] = [own, twin].map((one) => (one.kind === 'ok' ? one.value.writes : -1));
  if (ownWrites === twinWrites) return { witness: own, old: undefined };
  return (ownWrites ?? 0) > (twinWrites ?? 0) ? { witness: own, old: 'twin' } : { witness: twin, old: 'own' };
}

/** @pure Decides from what was found. */
export function judgeHistory(found: HistoryFound): Verdict {
  const streams = groupByStream(found.scans);
  const acked = latestAcked(streams, found);
  const problems: Problem[] = [];
  const missingBefore = new Map<string, Missing>();
  for (const [index, stream] of streams.entries()) {
    problems.push(...damageWithin(stream));
    problems.push(...startOfStream(stream, streams[index - 1], acked, found, missingBefore));
    problems.push(...betweenSegments(stream, missingBefore));
  }
  const last = streams.at(-1);
  const end = last === undefined ? endOfNothing(found, problems) : endOfHistory(streams, last, found.witness, problems);
  const previous = last && { stream: last.stream, seq: last.last };
  return {
    distrust:
      problems.length === 0
        ? undefined
        : {
            because: [...new Set(problems.map((problem) => problem.because))].join('; '),
            missing: coalesce([...lostBefore(found.witness), ...problems.flatMap((problem) => problem.missing)]),
            previous,
          },
    end: end.place,
    acked: placeInLog(streams, sentUpTo(found)),
    witnessBehind: end.witnessBehind,
    missingBefore,
  };
}

/** More ranges than this are named by their hull, one for each stream: a gap must fit into one fact. */
const maxRanges = 200;

/** @pure The same numbers in as few ranges as possible, in order of their streams' first mention. */
export function coalesce(missing: readonly Missing[]): readonly Missing[] {
  const exact = mergeRanges(missing, 1);
  return exact.length <= maxRanges ? exact : mergeRanges(missing, Number.POSITIVE_INFINITY);
}

function mergeRanges(missing: readonly Missing[], within: number): readonly Missing[] {
  const byStream = new Map<string, Missing[]>();
  for (const range of missing) {
    const ranges = byStream.get(range.stream) ?? [];
    ranges.push(range);
    byStream.set(range.stream, ranges);
  }
  return [...byStream.values()].flatMap((ranges) => {
    const result: Missing[] = [];
    for (const range of ranges.sort((a, b) => a.from - b.from)) {
      const before = result.at(-1);
      if (before !== undefined && (before.to === null || range.from <= before.to + within)) {
        const to = before.to === null || range.to === null ? null : Math.max(before.to, range.to);
        result[result.length - 1] = { ...before, to };
      } else {
        result.push(range);
      }
    }
    return result;
  });
}

function lostBefore(witness: Known<Witness>): readonly Missing[] {
  return witness.kind === 'ok' ? witness.value.lost : [];
}

interface Problem {
  readonly because: string;
  readonly missing: readonly Missing[];
}

/** All segments of one stream, of which there is at least one. */
interface Stream {
  readonly stream: string;
  readonly scans: SegmentScan[];
  readonly first: number;
  last: number;
}

function groupByStream(scans: readonly SegmentScan[]): Stream[] {
  const streams: Stream[] = [];
  for (const scan of scans) {
    if (scan.segment === undefined) continue;
    const { stream, first, last } = scan.segment;
    const current = streams.at(-1);
    if (current?.stream === stream) {
      current.scans.push(scan);
      current.last = Math.max(current.last, last);
    } else {
      streams.push({ stream, scans: [scan], first, last });
    }
  }
  return streams;
}

/** The furthest that anything proves to have been acknowledged: what lies before may have been pruned. */
function latestAcked(streams: readonly Stream[], found: HistoryFound): Place | undefined {
  const claims = [
    found.acked,
    found.witness.kind === 'ok' ? { kind: 'ok' as const, value: found.witness.value.acked } : undefined,
  ];
  let latest: Place | undefined;
  const rank = (place: Place) => streams.findIndex((stream) => stream.stream === place.stream);
  for (const claim of claims) {
    const place = claim?.kind === 'ok' ? claim.value : null;
    if (place === null) continue;
    const newer = latest === undefined || rank(place) > rank(latest);
    if (newer || (place.stream === latest?.stream && place.seq > latest.seq)) latest = place;
  }
  return latest;
}

/** Where sending goes on. The outbox's own record may lie before the witness's: a receiver asked for a replay. */
function sentUpTo({ acked, witness }: HistoryFound): Place | undefined {
  const place = acked.kind === 'ok' ? acked.value : witness.kind === 'ok' ? witness.value.acked : null;
  return place ?? undefined;
}

function placeInLog(streams: readonly Stream[], acked: Place | undefined): Place | undefined {
  const stream = streams.find((one) => one.stream === acked?.stream);
  return acked === undefined || stream === undefined ? undefined : { ...acked, seq: Math.min(acked.seq, stream.last) };
}

/** Rubbish behind the last good line is a torn tail or a refused fact; if it was more, the numbers that follow tell. */
function damageWithin(stream: Stream): Problem[] {
  return stream.scans
    .filter((scan) => scan.damagedWithin)
    .map((scan) => ({ because: `the outbox is damaged (${fileName(scan.path)})`, missing: scan.holes }));
}

function startOfStream(
  stream: Stream,
  before: Stream | undefined,
  acked: Place | undefined,
  found: HistoryFound,
  missingBefore: Map<string, Missing>,
): Problem[] {
  const path = stream.scans[0]?.path ?? '';
  const previous = stream.first === 1 ? stream.scans[0]?.opener?.previous : undefined;
  if (before !== undefined) {
    const missing: Missing[] = [];
    if (stream.first > 1) {
      missing.push({ stream: stream.stream, from: 1, to: stream.first - 1 });
      missingBefore.set(path, { stream: stream.stream, from: 1, to: stream.first - 1 });
    }
    if (previous?.stream === before.stream) {
      if (previous.seq > before.last) missing.push({ stream: before.stream, from: before.last + 1, to: previous.seq });
    } else {
      missing.push({ stream: before.stream, from: before.last + 1, to: null });
      if (previous !== undefined) missing.push({ stream: previous.stream, from: 1, to: previous.seq });
    }
    return missing.length === 0 ? [] : [{ because: 'a part of the outbox is gone', missing }];
  }
  return startOfHistory(stream, previous, acked, found, missingBefore, path);
}

/** The oldest stream that is here may have been pruned at its start, but only as far as it was acknowledged. */
function startOfHistory(
  stream: Stream,
  previous: Place | undefined,
  acked: Place | undefined,
  found: HistoryFound,
  missingBefore: Map<string, Missing>,
  path: string,
): Problem[] {
  const because = 'a part of the outbox is gone';
  // Acknowledged in a later stream: all of this one was.
  const ackedLater =
    acked !== undefined &&
    acked.stream !== stream.stream &&
    found.scans.some((scan) => scan.segment?.stream === acked.stream);
  if (ackedLater) return [];
  const ackedHere = acked?.stream === stream.stream ? acked.seq : 0;
  if (stream.first > ackedHere + 1) {
    const missing = { stream: stream.stream, from: ackedHere + 1, to: stream.first - 1 };
    missingBefore.set(path, missing);
    return [{ because, missing: [missing] }];
  }
  if (previous === undefined || ackedHere > 0) return [];
  const ackedBefore = acked?.stream === previous.stream ? acked.seq : 0;
  if (ackedBefore >= previous.seq) return [];
  return [{ because, missing: [{ stream: previous.stream, from: ackedBefore + 1, to: previous.seq }] }];
}

function betweenSegments(stream: Stream, missingBefore: Map<string, Missing>): Problem[] {
  const problems: Problem[] = [];
  let last: number | undefined;
  for (const scan of stream.scans) {
    if (scan.segment === undefined) continue;
    if (last !== undefined && scan.segment.first > last + 1) {
      const missing = { stream: stream.stream, from: last + 1, to: scan.segment.first - 1 };
      missingBefore.set(scan.path, missing);
      problems.push({ because: 'a part of the outbox is gone', missing: [missing] });
    }
    last = scan.segment.last;
  }
  return problems;
}

interface EndFound {
  readonly place: Place | undefined;
  readonly witnessBehind: boolean;
}

/** Compares the end of the history with the witness; adds to `problems`. */
function endOfHistory(
  streams: readonly Stream[],
  last: Stream,
  witness: Known<Witness>,
  problems: Problem[],
): EndFound {
  const place = { stream: last.stream, seq: last.last };
  const unknownRest = { stream: last.stream, from: last.last + 1, to: null };
  const distrust = (because: string, missing: readonly Missing[]): EndFound => {
    problems.push({ because, missing });
    return { place, witnessBehind: true };
  };
  if (witness.kind !== 'ok') {
    const why = witness.kind === 'absent' ? 'is gone' : `is damaged (${witness.why})`;
    return distrust(`the witness of the outbox ${why}, so nobody knows how far the history went`, [unknownRest]);
  }
  const { stream, high, id } = witness.value;
  if (stream !== last.stream) {
    const before = streams.findLast((one) => one.stream === stream);
    // A crash between the first fact of a new stream and its witness: nothing else can have been written to it.
    const justOpened = before !== undefined && last.last === 1 && last.scans[0]?.opener?.previous?.stream === stream;
    const known = justOpened || witness.value.earlier.some((place) => place.stream === last.stream);
    return distrust('the witness knows another stream than the outbox: one of them is an old copy', [
      ...unacknowledged(witness.value, streams),
      ...(known ? [] : [unknownRest]),
    ]);
  }
  const differ = `the outbox ends at ${last.last} and its witness at ${high}`;
  if (high > last.last) return distrust(`${differ}: the outbox is an old copy or lost its end`, beyond(last, high));
  if (high < last.last - 1) return distrust(`${differ}: the witness is an old copy`, [unknownRest]);
  if (high > 0 && forked(last, high, id)) {
    return distrust(`number ${high} is another fact than the one that the witness saw: the outbox is an old copy`, [
      { stream, from: high, to: null },
    ]);
  }
  return { place, witnessBehind: high < last.last };
}

function endOfNothing({ witness, acked }: HistoryFound, problems: Problem[]): EndFound {
  if (witness.kind === 'ok') {
    const { stream, high, earlier } = witness.value;
    if (high > 0 || earlier.length > 0)
      problems.push({ because: 'the outbox is gone', missing: unacknowledged(witness.value, []) });
    return { place: { stream, seq: 0 }, witnessBehind: false };
  }
  const known = acked.kind === 'ok' ? acked.value : null;
  if (witness.kind === 'damaged' || acked.kind !== 'absent') {
    const missing = known === null ? [] : [{ stream: known.stream, from: known.seq + 1, to: null }];
    problems.push({ because: `the outbox is gone and its witness is ${witness.kind}`, missing });
  }
  return { place: undefined, witnessBehind: true };
}

function beyond({ stream, last }: Stream, high: number): readonly Missing[] {
  return high > last ? [{ stream, from: last + 1, to: high }] : [];
}

/** What the witness knows of and is neither acknowledged nor here. */
function unacknowledged({ stream, high, acked, earlier }: Witness, streams: readonly Stream[]): readonly Missing[] {
  return [...earlier, { stream, seq: high }].flatMap((place) => {
    const here = streams.findLast((one) => one.stream === place.stream);
    if (here !== undefined) return beyond(here, place.seq);
    const from = acked?.stream === place.stream ? acked.seq + 1 : 1;
    return from > place.seq ? [] : [{ stream: place.stream, from, to: place.seq }];
  });
}

function forked(last: Stream, high: number, id: string): boolean {
  const scan = last.scans.at(-1);
  if (high === last.last) return scan?.lastIsGap === false && scan.lastId !== id;
  const before = scan?.beforeLast;
  return before?.seq === high && !before.isGap && before.id !== id;
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
