import type { CancelTimer, Clock } from '../../../src/base/clock.ts';

/** What is due later, on one timer of the clock however much waits: a clock's own timers are a list that is searched. */
export class EventQueue {
  readonly #clock: Clock;
  readonly #heap: Waiting[] = [];
  #made = 0;
  #armedAtMs = Number.POSITIVE_INFINITY;
  #disarm: CancelTimer = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Monotonic, ms. */
  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  /** Calls `fire` after `delayMs`, in the order of due time, then of making; unless the returned function is called first. */
  after(delayMs: number, fire: () => void): CancelTimer {
    const waiting: Waiting = { atMs: this.nowMs() + delayMs, order: this.#made++, fire };
    this.#push(waiting);
    this.#arm();
    return () => {
      waiting.fire = undefined;
    };
  }

  #arm(): void {
    const [first] = this.#heap;
    if (first === undefined || first.atMs >= this.#armedAtMs) return;
    this.#disarm();
    this.#armedAtMs = first.atMs;
    this.#disarm = this.#clock.after(first.atMs - this.nowMs(), () => this.#fireDue());
  }

  #fireDue(): void {
    this.#armedAtMs = Number.POSITIVE_INFINITY;
    const now = this.nowMs();
    for (let [first] = this.#heap; first !== undefined && first.atMs <= now; [first] = this.#heap) {
      this.#pop();
      first.fire?.();
    }
    this.#arm();
  }

  #push(waiting: Waiting): void {
    const heap = this.#heap;
    heap.push(waiting);
    for (let at = heap.length - 1; at > 0; ) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(waiting, parent)) return;
      heap[at] = parent;
      heap[above] = waiting;
      at = above;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        const candidate = heap[child];
        const best = heap[least];
        if (candidate !== undefined && best !== undefined && isBefore(candidate, best)) least = child;
      }
      const smaller = heap[least];
      if (least === at || smaller === undefined) return;
      heap[least] = last;
      heap[at] = smaller;
      at = least;
    }
  }
}

interface Waiting {
  readonly atMs: number;
  readonly order: number;
  /** Undefined: it was cancelled. */
  fire: (() => void) | undefined;
}

function isBefore(a: Waiting, b: Waiting): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
