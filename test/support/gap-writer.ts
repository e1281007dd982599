import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdClient } from '../../src/etcd/client.ts';
import { eventually } from './eventually.ts';

/** Writes to one member, one write after the other, and remembers the longest time between two that were answered. */
export class GapWriter {
  readonly #client: EtcdClient;
  readonly #writing: Promise<void>;
  #written = 0;
  #lastMs = performance.now();
  #longestMs = 0;
  #ended = false;

  constructor(endpoint: string) {
    this.#client = new EtcdClient({ endpoint, clock: systemClock, log: silentLog });
    this.#writing = this.#write();
  }

  /** Resolves once so many more writes were answered. */
  async atLeast(count: number): Promise<void> {
    const wanted = this.#written + count;
    await eventually(() => this.#written >= wanted, { withinMs: 60_000, what: `${count} more writes` });
  }

  /** Stops, and gives the longest gap. Unit: ms. */
  async end(): Promise<number> {
    this.#ended = true;
    await this.#writing;
    this.#client.close();
    return Math.round(this.#longestMs);
  }

  async #write(): Promise<void> {
    while (!this.#ended) {
      try {
        await this.#client.keys.put('gap', String(this.#written), { deadlineMs: 1_000 });
        const now = performance.now();
        if (this.#written > 0) this.#longestMs = Math.max(this.#longestMs, now - this.#lastMs);
        this.#lastMs = now;
        this.#written++;
      } catch {
        // Nobody leads at the moment: that is what is measured.
      }
      await sleep(5);
    }
  }
}
