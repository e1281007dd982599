/** @pure file: reports that stand for reports which are gone (docs/reports.md, "the outbox itself"). */

import * as z from 'zod';
import { gapKind, type IncomingReport } from './incoming-report.ts';
import type { StreamRecord } from './intake.ts';

/** Numbers that will not come. `to` is null where nobody knows how far they went. */
export interface MissingReports {
  readonly stream: string;
  readonly from: number;
  readonly to: number | null;
}

/** How a stream began, compared with what is stored of the other streams of its node. */
export interface StreamOpening {
  /** In the node's words; empty if it gave none. */
  readonly because: string;
  /** Where the stream before it ended, as the node says. Undefined: this is its first, as far as it knows. */
  readonly previous: { readonly stream: string; readonly seq: number } | undefined;
  /**
   * The end of the stream before it is not here: the node has lost it and names it as missing, or this curator has lost it. If it is
   * missing from number 1 on, so is what it said of the streams before it.
   */
  readonly notHere: MissingReports | undefined;
  /** More of the stream before it is here than the node knows of: the node's history went back. */
  readonly wentBack: boolean;
  /**
   * It does not tell what came before it: the node has lost all that it knew, or the start of the stream. Then reports of older streams
   * may be missing that nobody can name.
   */
  readonly unexplained: boolean;
}

const number = z.int().min(1);
const gapSchema = z.object({
  because: z.string(),
  missing: z.array(z.object({ stream: z.string(), from: number, to: number.nullable() })),
  previous: z.object({ stream: z.string(), seq: z.int().min(0) }).optional(),
});

/** @pure What a gap names as gone; empty if it is no gap, or one that changed the stream without a loss. */
export function missingIn(report: IncomingReport): readonly MissingReports[] {
  return gapOf(report)?.missing ?? [];
}

/**
 * @pure How the stream begins whose first report is `first`: the one that stands for number 1. `others` are the streams of the same
 * node of which something is stored. The stream is taken in any case: a node that lost everything begins anew, and what it says is true.
 */
export function openingOf(first: IncomingReport, others: readonly StreamRecord[]): StreamOpening {
  const gap = gapOf(first);
  const previous = gap?.previous;
  const high = others.find((one) => one.stream === previous?.stream)?.high ?? 0;
  const isHere = previous === undefined || high >= previous.seq;
  return {
    because: gap?.because ?? '',
    previous,
    notHere: isHere ? undefined : { stream: previous.stream, from: high + 1, to: previous.seq },
    wentBack: previous !== undefined && high > previous.seq,
    unexplained: previous === undefined && (others.length > 0 || first.kind === gapKind),
  };
}

function gapOf(report: IncomingReport): z.infer<typeof gapSchema> | undefined {
  const parsed = report.kind === gapKind ? gapSchema.safeParse(report.data) : undefined;
  return parsed?.success === true ? parsed.data : undefined;
}
