import type { CancelTimer, Clock } from '../../src/base/clock.ts';

/**
 * Time that moves only when the test says so. Timers fire in order of their due time, then of their making; what they
 * start (promises included) runs on before the next one fires.
 */
export class FakeClock implements Clock {
  #monotonicMs = 0;
  #wallMs: number;
  #timers: Timer[] = [];
  #made = 0;

  constructor(wallMs: number = Date.parse('2026-01-01T00:00:00.000Z')) {
    this.#wallMs = wallMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, fire: () => void): CancelTimer {
    const timer: Timer = { dueMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#made++, fire };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Lets `ms` pass: fires what falls due, and lets the work that this wakes settle before and after each timer. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await settled();
    for (let timer = this.#takeDue(untilMs); timer !== undefined; timer = this.#takeDue(untilMs)) {
      this.#moveTo(timer.dueMs);
      timer.fire();
      await settled();
    }
    this.#moveTo(untilMs);
    await settled();
  }

  /** The same without waiting for promises, for code that is synchronous throughout. */
  advanceSync(ms: number): void {
    const untilMs = this.#monotonicMs + ms;
    for (let timer = this.#takeDue(untilMs); timer !== undefined; timer = this.#takeDue(untilMs)) {
      this.#moveTo(timer.dueMs);
      timer.fire();
    }
    this.#moveTo(untilMs);
  }

  /** All at once so much later, as for a machine that did nothing meanwhile; what fell due fires at the next {@link advance}. Unit: ms. */
  leap(ms: number): void {
    this.#moveTo(this.#monotonicMs + ms);
  }

  /** Sets the wall clock forward or back (negative); no timer moves. Unit: ms. */
  jumpWall(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** How many timers wait: 0 means that nothing was left behind. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** Time until the next timer fires, or undefined if none waits. Unit: ms. */
  get nextTimerInMs(): number | undefined {
    const next = this.#first();
    return next === undefined ? undefined : next.dueMs - this.#monotonicMs;
  }

  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
      )
        first = timer;
    }
    return first;
  }

  #takeDue(untilMs: number): Timer | undefined {
    const first = this.#first();
    if (first === undefined || first.dueMs > untilMs) return undefined;
    this.#timers = this.#timers.filter((other) => other !== first);
    return first;
  }

  #moveTo(monotonicMs: number): void {
    if (monotonicMs <= this.#monotonicMs) return;
    this.#wallMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }
}

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly fire: () => void;
}

/** Resolves when the promise jobs that are ready now, and those they make, have run. Real I/O is not waited for. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
