/** @pure file: what becomes of a batch of a node's reports: taken, known already, behind a hole, or proof of a fork. */

import { type BatchFault, batchRefusal, gapKind, type IncomingReport } from './incoming-report.ts';
import type { CuratorRefusal } from './refusal.ts';

/** What is stored of one stream of one node. It is written with the reports, in one transaction. */
export interface StreamRecord {
  readonly stream: string;
  /** All numbers up to here are stored, or named by a gap that is. 0: none is. */
  readonly high: number;
  /** The id that was stored last under {@link high}; empty with 0. */
  readonly highId: string;
  /** What was stored last, oldest first, at most {@link keptReports}. */
  readonly kept: readonly KeptReport[];
  /** How many reports were stored besides others of the same number. */
  readonly besides: number;
}

/** A stored report, as far as it is needed to tell a repetition from a fork. */
export interface KeptReport {
  readonly seq: number;
  readonly id: string;
}

/**
 * How many stored reports of a stream are remembered by id. A node repeats at most the batch that was under way, and what is stored
 * besides in a fork is one batch as well; that is twice {@link maxBatch}.
 */
export const keptReports = 200;

/** What to do with a batch. */
export type BatchVerdict<Report extends IncomingReport> =
  /** It cannot be read as it stands. Nothing is stored. */
  | { readonly kind: 'refused'; readonly fault: BatchFault; readonly refusal: CuratorRefusal }
  /** The numbers before it never came. Nothing is stored; the node opens a new session and is told from where on to send. */
  | { readonly kind: 'missing'; readonly from: number; readonly to: number; readonly refusal: CuratorRefusal }
  | TakenBatch<Report>;

/** All of it is stored now, or was before. */
export interface TakenBatch<Report extends IncomingReport> {
  readonly kind: 'taken';
  /** What is new, in order. The rest is known, and dropped. */
  readonly reports: readonly TakenReport<Report>[];
  readonly duplicates: number;
  /** All up to this number of the stream are stored. Never more than the batch has: a node takes no other answer. */
  readonly acknowledgedSeq: number;
  /** The numbers under which another report is stored, or one that is too old to be remembered. */
  readonly forkedAt: readonly number[];
  /** Set: this is the answer, once all is stored. The same batch, sent again, is known then and acknowledged. */
  readonly fork: CuratorRefusal | undefined;
  /** What is stored of the stream from now on. */
  readonly record: StreamRecord;
}

/** A report to store. */
export interface TakenReport<Report extends IncomingReport> {
  readonly report: Report;
  /** Another one has this number already: both are kept. */
  readonly besides: boolean;
}

/** @pure Nothing is stored of this stream. */
export function emptyStream(stream: string): StreamRecord {
  return { stream, high: 0, highId: '', kept: [], besides: 0 };
}

/**
 * @pure What becomes of `batch`, which is of the stream of `stored`. The rules are those of docs/reports.md, "removing duplicates":
 *
 * 1. The same number with the same id is known, and dropped.
 * 2. The same number with another id is a fork. Both are kept, and the node is asked once for a new stream. A number whose id is
 *    remembered no more counts as a fork too: a node repeats so much only if its history went back. In doubt nothing is dropped.
 * 3. A gap is never a fork. It is taken if it names a number that is not here, and dropped if it names none.
 * 4. What leaves numbers out behind the stored ones is not taken.
 *
 * `isToday` is false for a stream that the node has left, having opened its session with another one: what is stored besides there
 * needs no new stream any more.
 */
export function judgeBatch<Report extends IncomingReport>(
  stored: StreamRecord,
  batch: readonly Report[],
  { isToday }: { readonly isToday: boolean },
): BatchVerdict<Report> {
  const refused = batchRefusal(batch);
  if (refused !== undefined) return { kind: 'refused', ...refused };
  const first = batch[0]?.fromSeq ?? 0;
  if (first > stored.high + 1) return missing(stored.high + 1, first - 1);
  let record = stored;
  const reports: TakenReport<Report>[] = [];
  const forkedAt: number[] = [];
  for (const report of batch) {
    if (isKnown(record, report)) continue;
    const besides = report.seq <= record.high;
    if (besides) forkedAt.push(report.seq);
    reports.push({ report, besides });
    record = withReport(record, report, besides);
  }
  return {
    kind: 'taken',
    reports,
    duplicates: batch.length - reports.length,
    acknowledgedSeq: batch.at(-1)?.seq ?? 0,
    forkedAt,
    fork: isToday && forkedAt.length > 0 ? fork(stored.stream, forkedAt) : undefined,
    record,
  };
}

function isKnown({ high, kept }: StreamRecord, { seq, id, kind }: IncomingReport): boolean {
  if (seq > high) return false;
  return kind === gapKind || kept.some((one) => one.seq === seq && one.id === id);
}

function withReport(record: StreamRecord, { seq, id }: IncomingReport, besides: boolean): StreamRecord {
  const high = Math.max(record.high, seq);
  return {
    ...record,
    high,
    highId: seq === high ? id : record.highId,
    kept: [...record.kept, { seq, id }].slice(-keptReports),
    besides: record.besides + (besides ? 1 : 0),
  };
}

function missing(from: number, to: number): BatchVerdict<never> {
  const message = `the reports ${from} to ${to} of this stream are not here, and the batch begins behind them`;
  const hint = 'The node opens a new session, and is told from where on to send.';
  return { kind: 'missing', from, to, refusal: { reason: 'reportsMissing', message, hint } };
}

function fork(stream: string, forkedAt: readonly number[]): CuratorRefusal {
  const [first = 0] = forkedAt;
  const more = forkedAt.length > 1 ? ` and ${forkedAt.length - 1} more numbers` : '';
  return {
    reason: 'streamForked',
    message: `another report is stored under number ${first}${more} of stream ${stream}; both are kept`,
    hint: 'The history of the node went back, for example to a snapshot of its machine. It begins a new stream by itself.',
  };
}
