import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '../src/base/log.ts';
import { systemClock } from '../src/base/system-clock.ts';
import { EtcdClient } from '../src/etcd/client.ts';

/**
 * Between an acknowledged write and the next; the gap is measured no finer. More writes keep etcd's disk so busy that a removed
 * leader hears of its removal from the others first, and the panic is seen less often. Unit: ms.
 */
const restMs = 50;
/** Before a failed write is tried at the next endpoint. Unit: ms. */
const retryMs = 5;
/** How long one member may take before the next is asked. Unit: ms. */
const patienceMs = 1_000;
/** Where it writes. */
const prefix = 'demo/';

/**
 * A client as any other: it writes one key after the other, goes to the next endpoint when one does not answer, and
 * measures for how long it got no acknowledgement.
 */
export class SteadyWriter {
  readonly #clients: readonly EtcdClient[];
  readonly #writing: Promise<void>;
  readonly #acknowledged: string[] = [];
  #stopped = false;
  #lastAckMs = performance.now();
  #longestGapMs = 0;

  constructor(endpoints: readonly string[]) {
    this.#clients = endpoints.map((endpoint) => new EtcdClient({ endpoint, clock: systemClock, log: silentLog }));
    this.#writing = this.#write();
  }

  /** How many writes were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged.length;
  }

  /** The longest time without an acknowledgement since the last call; one that lasts across a call counts in both. Unit: ms. */
  takeLongestGap(): number {
    const longest = Math.max(this.#longestGapMs, performance.now() - this.#lastAckMs);
    this.#longestGapMs = 0;
    return longest;
  }

  /** Acknowledged writes that the cluster no longer has, by a linearizable read through the first endpoint that answers. */
  async lost(): Promise<number> {
    for (const client of this.#clients) {
      try {
        const keys = new Set((await client.keys.list(prefix)).map(({ key }) => key));
        return this.#acknowledged.filter((key) => !keys.has(key)).length;
      } catch {
        // The next one.
      }
    }
    throw new Error('no endpoint of the writer answers a read');
  }

  /** Ends writing, and with it the connections. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#writing;
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  async #write(): Promise<void> {
    let at = 0;
    for (let number = 1; !this.#stopped; number++) {
      const key = `${prefix}${String(number).padStart(8, '0')}`;
      while (!this.#stopped) {
        try {
          await this.#clients[at % this.#clients.length]?.keys.put(key, String(number), { deadlineMs: patienceMs });
          break;
        } catch {
          at++;
          await sleep(retryMs);
        }
      }
      if (this.#stopped) return;
      this.#acknowledged.push(key);
      const now = performance.now();
      this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#lastAckMs);
      this.#lastAckMs = now;
      await sleep(restMs);
    }
  }
}
