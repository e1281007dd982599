import { dirname } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import type { Fact, StoredFact } from '../../src/upstream/fact.ts';
import { Outbox, type OutboxLimits } from '../../src/upstream/outbox.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

export const paths = { directory: '/state/outbox', witness: '/elsewhere/outbox-witness' };
/** Where another copy of the witness is kept, by those that have one. */
export const twinPath = '/data/member/outbox-witness';

/** An outbox on a disk in memory, with all that it was given. */
export class OutboxMachine {
  readonly random: SeededRandom;
  readonly disk: MemoryDisk;
  readonly clock = new FakeClock();
  readonly limits: Partial<OutboxLimits>;
  readonly hasTwin: boolean;
  outbox: Outbox;

  constructor(seed = 1, limits: Partial<OutboxLimits> = {}, { hasTwin = false } = {}) {
    this.hasTwin = hasTwin;
    this.random = new SeededRandom(seed);
    this.disk = new MemoryDisk(this.random.fork());
    this.limits = limits;
    if (hasTwin) this.disk.ensureDirectory(dirname(twinPath));
    this.outbox = this.open();
  }

  /** A new process on the same disk. */
  open(): Outbox {
    const { disk, clock, random, limits } = this;
    const twin = this.hasTwin ? { twin: { path: twinPath, node: 'n1', disk } } : {};
    this.outbox = new Outbox({ ...paths, ...twin, disk, clock, random, limits, log: silentLog });
    return this.outbox;
  }

  reopenAfter(kind: 'kill' | 'powerLoss'): Outbox {
    this.disk.reboot(kind);
    return this.open();
  }
}

export function fact(number: number, more: Partial<Fact> = {}): Fact {
  const at = '2026-01-01T00:00:00.000Z';
  return { kind: 'test.happened', certainty: 'observed', at, data: { number }, important: false, ...more };
}

/** `stream/seq` with the streams named a, b, … in order of appearance. */
export function places(facts: readonly StoredFact[]): string[] {
  const streams = [...new Set(facts.map((one) => one.stream))];
  return facts.map((one) => {
    const stream = String.fromCharCode(97 + streams.indexOf(one.stream));
    return one.from === one.seq ? `${stream}${one.seq}` : `${stream}${one.from}-${one.seq}`;
  });
}

/** All that waits, page by page, acknowledged as a receiver would. */
export function drain(outbox: Outbox, limit = 100): StoredFact[] {
  const all: StoredFact[] = [];
  for (let page = outbox.page(limit); page.length > 0; page = outbox.page(limit)) {
    all.push(...page);
    const last = page.at(-1);
    if (last !== undefined) outbox.ack(last);
  }
  return all;
}
