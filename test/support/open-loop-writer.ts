import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdClient } from '../../src/etcd/client.ts';

/** Every so often a write begins, whether or not the last one has returned. Unit: ms. */
const everyMs = 5;
const deadlineMs = 1_000;
/** A write that failed is tried once more, after this, on another member. Unit: ms. */
const retryAfterMs = 100;

/** What was seen between two moments. Times in ms. */
export interface Gap {
  /** The longest time between two writes that were acknowledged. */
  readonly longestMs: number;
  /** Writes that failed twice. */
  readonly failed: number;
  readonly written: number;
}

/** An open-loop client of some members, as a busy cluster has many of: it shows what a change costs those who write. */
export class OpenLoopWriter {
  static #made = 0;
  readonly #name = `${process.pid}-${++OpenLoopWriter.#made}`;
  readonly #clients: readonly EtcdClient[];
  readonly #acknowledged: string[] = [];
  readonly #flying = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #count = 0;
  #lastMs = performance.now();
  #longestMs = 0;
  #failed = 0;
  #writtenBefore = 0;

  constructor(endpoints: readonly string[]) {
    this.#clients = endpoints.map((endpoint) => new EtcdClient({ endpoint, clock: systemClock, log: silentLog }));
    this.#timer = setInterval(() => this.#begin(), everyMs);
  }

  /** Forgets what was measured so far. */
  reset(): void {
    this.#lastMs = performance.now();
    this.#longestMs = 0;
    this.#failed = 0;
    this.#writtenBefore = this.#acknowledged.length;
  }

  get seen(): Gap {
    return {
      longestMs: Math.round(Math.max(this.#longestMs, performance.now() - this.#lastMs)),
      failed: this.#failed,
      written: this.#acknowledged.length - this.#writtenBefore,
    };
  }

  /** Ends writing; returns what was seen last. */
  async end(): Promise<Gap> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    // The gap ends here; whether the writes that are still on their way fail is told by them.
    const { seen } = this;
    await Promise.all(this.#flying);
    return { ...seen, failed: this.#failed };
  }

  /** Acknowledged writes that the cluster no longer has, by a linearizable read of the first member that answers. */
  async lost(): Promise<readonly string[]> {
    for (const client of this.#clients) {
      const keys = await client.keys.list(`load/${this.#name}-`, { deadlineMs: 10_000 }).catch(() => undefined);
      if (keys === undefined) continue;
      const there = new Set(keys.map(({ key }) => key));
      return this.#acknowledged.filter((key) => !there.has(key));
    }
    throw new Error('no member answers a read');
  }

  close(): void {
    clearInterval(this.#timer);
    for (const client of this.#clients) client.close();
  }

  #begin(): void {
    const write = this.#write(++this.#count).finally(() => this.#flying.delete(write));
    this.#flying.add(write);
  }

  async #write(number: number): Promise<void> {
    const key = `load/${this.#name}-${String(number).padStart(8, '0')}`;
    if (!(await this.#put(number, key))) {
      await sleep(retryAfterMs);
      if (!(await this.#put(number + 1, key))) {
        this.#failed++;
        return;
      }
    }
    this.#acknowledged.push(key);
    const now = performance.now();
    this.#longestMs = Math.max(this.#longestMs, now - this.#lastMs);
    this.#lastMs = now;
  }

  async #put(at: number, key: string): Promise<boolean> {
    try {
      await this.#clients[at % this.#clients.length]?.keys.put(key, '1', { deadlineMs });
      return true;
    } catch {
      return false;
    }
  }
}
