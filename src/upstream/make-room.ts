import { gapKind, type StoredFact } from './fact.ts';
import type { Segment } from './segment.ts';
import type { SegmentStore } from './segment-store.ts';
import { type Room, type SqueezeOptions, squeeze } from './squeeze.ts';

/** What a squeeze of the whole outbox needs. */
export interface MakeRoomOptions {
  readonly store: SegmentStore;
  /** See {@link SqueezeOptions}. */
  readonly may: SqueezeOptions['may'];
  /** How many waiting facts at the head stay. */
  readonly keepHead: number;
  readonly newestId: string;
  /** The index of the first segment with a waiting fact. */
  readonly firstWaiting: number;
  readonly isWaiting: (fact: StoredFact) => boolean;
  readonly makeGapIn: (stream: string) => SqueezeOptions['makeGap'];
  /** What is still lacking; nothing more is given up when both figures are 0 or less. */
  readonly lacking: () => Room;
  /** Replaces a segment; throws if the disk refuses. */
  readonly rewrite: (segment: Segment, facts: readonly StoredFact[]) => void;
  readonly remove: (segment: Segment) => void;
}

/**
 * Gives up waiting facts, oldest first, segment by segment, and returns how many facts went. A segment that is one gap and
 * nothing else is taken into the next one, so that a long outage does not leave a file for each hour.
 */
export function makeRoom(options: MakeRoomOptions): number {
  const { store, may, lacking } = options;
  let keepHead = options.keepHead;
  let carried: Carried | undefined;
  let dropped = 0;
  for (const { path } of store.segments.slice(options.firstWaiting)) {
    const segment = store.segment(path);
    if (segment === undefined) continue;
    const need = lacking();
    if (need.bytes <= 0 && need.facts <= 0) break;
    const carry = carried?.segment.stream === segment.stream ? carried : undefined;
    carried = undefined;
    if (keepHead === 0 && carry === undefined && may === 'unimportant' && segment.droppable === 0) continue;
    const waiting = store.factsOf(segment).filter(options.isWaiting);
    const before = carry === undefined ? waiting : [carry.gap, ...waiting];
    const makeGap = options.makeGapIn(segment.stream);
    const after = squeeze(before, { may, keepHead, need, newestId: options.newestId, makeGap });
    if (after.length !== segment.facts || after.some((fact, index) => fact.id !== waiting[index]?.id)) {
      options.rewrite(segment, after);
      // First the file that now stands for both, then the other goes: a crash between them is seen and finished.
      if (carry !== undefined) options.remove(carry.segment);
      dropped += countDropped(waiting, after);
    }
    keepHead = Math.max(0, keepHead - before.length);
    const gap = keepHead === 0 ? gapAlone(after) : undefined;
    if (gap !== undefined) carried = { segment, gap };
  }
  return dropped;
}

interface Carried {
  readonly segment: Segment;
  readonly gap: StoredFact;
}

function gapAlone(facts: readonly StoredFact[]): StoredFact | undefined {
  const [only] = facts;
  return facts.length === 1 && only?.kind === gapKind && only.from < only.seq ? only : undefined;
}

function countDropped(before: readonly StoredFact[], after: readonly StoredFact[]): number {
  const kept = new Set(after.map((fact) => fact.id));
  return before.filter((fact) => fact.kind !== gapKind && !kept.has(fact.id)).length;
}
