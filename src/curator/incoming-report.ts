/** @pure file: reports as they come in, and whether a batch of them can be read as it stands. */

import type { CuratorRefusal } from './refusal.ts';

/** One report of a batch, as far as its place matters. */
export interface IncomingReport {
  readonly seq: number;
  /** Equal to {@link seq}, except for a gap that stands for several numbers. */
  readonly fromSeq: number;
  readonly id: string;
  readonly kind: string;
  readonly data: unknown;
}

/** The kind of a report that stands for numbers which its node no longer has, and that opens every stream but the first. */
export const gapKind = 'outbox.gap';

/** How many reports a batch may have. Source: docs/reports.md, "on the wire". */
export const maxBatch = 100;
/** A node's ids have 32 characters. */
const maxIdCharacters = 64;

/** What can be wrong with a batch. */
export type BatchFault =
  | 'noReports'
  | 'tooManyReports'
  | 'badNumber'
  | 'badId'
  | 'notAGap'
  | 'notInOrder'
  | 'numbersLeftOut';

/** Why a batch cannot be read: the name of the fault, and the refusal. */
export interface BatchRefusal {
  readonly fault: BatchFault;
  readonly refusal: CuratorRefusal;
}

/** @pure The first thing that is wrong with `batch`; undefined if nothing is. */
export function batchRefusal(batch: readonly IncomingReport[]): BatchRefusal | undefined {
  if (batch.length === 0) return refused('noReports', 'the batch has no report');
  if (batch.length > maxBatch)
    return refused('tooManyReports', `the batch has ${batch.length} reports, and ${maxBatch} may come at once`);
  let before: number | undefined;
  for (const report of batch) {
    const refusal = refusalOfOne(report) ?? (before === undefined ? undefined : refusalAfter(before, report));
    if (refusal !== undefined) return refusal;
    before = report.seq;
  }
  return undefined;
}

function refusalOfOne({ seq, fromSeq, id, kind }: IncomingReport): BatchRefusal | undefined {
  if (!isNumber(seq) || !isNumber(fromSeq) || fromSeq > seq)
    return refused('badNumber', `a report stands for the numbers ${fromSeq} to ${seq}, and they begin at 1`);
  if (id === '' || id.length > maxIdCharacters)
    return refused(
      'badId',
      `report ${seq} has an id of ${id.length} characters, and 1 to ${maxIdCharacters} are allowed`,
    );
  if (fromSeq !== seq && kind !== gapKind)
    return refused('notAGap', `report ${seq} stands for all numbers from ${fromSeq} on, and is no ${gapKind}`);
  return undefined;
}

function refusalAfter(before: number, { fromSeq }: IncomingReport): BatchRefusal | undefined {
  if (fromSeq <= before) return refused('notInOrder', `report ${fromSeq} comes behind report ${before} in the batch`);
  if (fromSeq === before + 1) return undefined;
  return refused('numbersLeftOut', `the batch leaves out the reports between ${before} and ${fromSeq}`);
}

function isNumber(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}

function refused(fault: BatchFault, message: string): BatchRefusal {
  const hint = 'The node and this curator differ in what a batch is: compare their versions.';
  return { fault, refusal: { reason: 'invalidArgument', message, hint } };
}
