/** @pure file: what a node is told when it opens its session: from where on it sends. */

import type { StreamRecord } from './intake.ts';
import type { CuratorRefusal } from './refusal.ts';

/** A stream that a node still has reports of. */
export interface NodeStream {
  readonly stream: string;
  /** The last number that the node gave out in it; 0: none. */
  readonly lastSeq: number;
  /** The id of the report under that number; empty with 0. */
  readonly lastId: string;
}

/** What the node is told. */
export type SessionAnswer =
  /**
   * All up to this number of the stream, and all of the node's older streams, are stored. The node sends from the next one on, also if
   * it was told a higher number before. It must compare the id with its own under that number first: if they differ, its history went
   * back, and what it has there was never sent.
   */
  | {
      readonly kind: 'goOn';
      readonly stream: string;
      readonly acknowledgedSeq: number;
      readonly acknowledgedId: string;
    }
  /** What is stored ends with another report than the node's, or behind it: the node's history went back. */
  | { readonly kind: 'forked'; readonly refusal: CuratorRefusal };

/**
 * @pure The answer for a node that has these streams, oldest first; the last is the one that it counts in today. A curator that was
 * restored from an older copy has lower numbers, or none, and so asks again for what it has lost, older streams first.
 *
 * A gap that took the place of the node's last report while the answer to that one was lost looks like a fork. That costs the node a new
 * stream, and no report.
 */
export function answerSession(streams: readonly NodeStream[], stored: readonly StreamRecord[]): SessionAnswer {
  const recordOf = ({ stream }: NodeStream) => stored.find((one) => one.stream === stream);
  const today = streams.at(-1);
  if (today === undefined) return { kind: 'goOn', stream: '', acknowledgedSeq: 0, acknowledgedId: '' };
  const forked = forkOf(today, recordOf(today));
  if (forked !== undefined) return { kind: 'forked', refusal: forked };
  const next = streams.find((one) => (recordOf(one)?.high ?? 0) < one.lastSeq) ?? today;
  const record = recordOf(next);
  return {
    kind: 'goOn',
    stream: next.stream,
    acknowledgedSeq: record?.high ?? 0,
    acknowledgedId: record?.highId ?? '',
  };
}

function forkOf({ stream, lastSeq, lastId }: NodeStream, record: StreamRecord | undefined): CuratorRefusal | undefined {
  if (record === undefined || record.high < lastSeq) return undefined;
  if (record.high === lastSeq && (lastSeq === 0 || record.kept.some(({ seq, id }) => seq === lastSeq && id === lastId)))
    return undefined;
  return {
    reason: 'streamForked',
    message:
      record.high > lastSeq
        ? `${record.high} reports of stream ${stream} are stored, and the node says that its last one is number ${lastSeq}`
        : `report ${lastSeq} of stream ${stream} is stored with another id than the node's`,
    hint: 'The history of the node went back, for example to a snapshot of its machine. It begins a new stream by itself.',
  };
}
