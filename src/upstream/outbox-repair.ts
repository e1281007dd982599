/** @pure file: in which order a damaged outbox is made whole (docs/adr/0020-outbox-history.md says why in this order). */

import type { GapData, Missing } from './fact.ts';
import type { Verdict } from './history.ts';
import type { FilesFound } from './outbox-files.ts';
import type { Segment } from './segment.ts';

/** One act on the disk. It may throw and is then done again; done twice it does no harm. */
export type Repair = () => void;

/** What a repair can do. */
export interface RepairActs {
  readonly ensureDirectories: () => void;
  /** Makes durable what the life before may have left unsynced: it is about to be built upon and sent. */
  readonly settle: () => void;
  readonly remove: (path: string) => void;
  readonly setAside: (path: string) => void;
  readonly cutTail: (segment: Segment) => void;
  readonly openStream: (data: GapData) => void;
  readonly saveWitness: () => void;
  /** Never throws: nothing waits for the twin. */
  readonly saveTwin: () => void;
  readonly fillHoles: (path: string) => void;
  readonly fillBefore: (path: string, missing: Missing) => void;
}

/**
 * @pure The repairs, in order. The new stream comes before the holes are filled: if a crash comes between the two, the
 * damage is still seen and named once more; the other way round it would be forgotten.
 */
export function planRepairs(found: FilesFound, verdict: Verdict, acts: RepairActs): Repair[] {
  const { scans } = found.history;
  const { distrust, missingBefore } = verdict;
  const lastGood = scans.findLastIndex((scan) => scan.segment !== undefined);
  const repairs: Repair[] = [acts.ensureDirectories, acts.settle];
  for (const path of found.leftovers) repairs.push(() => acts.remove(path));
  for (const [index, { path, segment, badTail, damagedWithin }] of scans.entries()) {
    if (segment === undefined) repairs.push(() => (index > lastGood ? acts.remove(path) : acts.setAside(path)));
    else if (badTail && !damagedWithin) repairs.push(() => acts.cutTail(segment));
  }
  if (distrust !== undefined) {
    const { because, missing, previous } = distrust;
    repairs.push(() => acts.openStream({ because, missing, ...(previous === undefined ? {} : { previous }) }));
  } else if (verdict.witnessBehind || found.oldWitness === 'own') {
    repairs.push(acts.saveWitness);
  } else if (found.oldWitness === 'twin') {
    repairs.push(acts.saveTwin);
  }
  for (const { path, segment, damagedWithin } of scans) {
    const missing = missingBefore.get(path);
    if (segment !== undefined && damagedWithin) repairs.push(() => acts.fillHoles(path));
    if (segment !== undefined && missing !== undefined) repairs.push(() => acts.fillBefore(path, missing));
  }
  return repairs;
}
