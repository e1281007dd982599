import type { CancelTimer, Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';

/** A repeated question with a verdict. */
export interface ProbeOptions {
  /** Asks once. Resolves when the answer is good, rejects (with the reason) when it is not. Should heed `signal`. */
  readonly ask: (signal: AbortSignal) => Promise<void>;
  /** From one question to the next. Unit: ms. */
  readonly intervalMs: number;
  /** An answer that takes longer is a miss. Unit: ms. */
  readonly deadlineMs: number;
  /** So many misses in a row make the verdict bad; one good answer makes it good. 1 or more. */
  readonly misses: number;
}

/** What is known of the probed: `unknown` until the first verdict. */
export type ProbeVerdict = 'unknown' | 'good' | 'bad';

/** Where the probe runs and whom it tells. */
export interface ProbeContext {
  readonly clock: Clock;
  /** Ends the probe. */
  readonly signal: AbortSignal;
  /** Called on changes of the verdict only. `because` is the last miss, in words; empty when good. */
  readonly onVerdict: (verdict: ProbeVerdict, because: string) => void;
}

/** Starts asking, at once. Never two questions at a time: one that does not end counts as a miss each interval. */
export function startProbe(options: ProbeOptions, context: ProbeContext): void {
  if (!context.signal.aborted) new Probe(options, context).tick();
}

class Probe {
  readonly #options: ProbeOptions;
  readonly #context: ProbeContext;
  #verdict: ProbeVerdict = 'unknown';
  #missesInRow = 0;
  #asking = false;
  #cancelTick: CancelTimer | undefined;

  constructor(options: ProbeOptions, context: ProbeContext) {
    this.#options = options;
    this.#context = context;
    context.signal.addEventListener('abort', () => this.#cancelTick?.(), { once: true });
  }

  tick(): void {
    this.#cancelTick = this.#context.clock.after(this.#options.intervalMs, () => this.tick());
    if (this.#asking) this.#miss('the former question has not ended yet');
    else this.#ask();
  }

  #ask(): void {
    const { clock, signal } = this.#context;
    const aborter = new AbortController();
    const onAbort = () => aborter.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let settled = false; // the verdict of this question is given; what comes later is ignored
    const settle = (give: () => void) => {
      if (settled || signal.aborted) return;
      settled = true;
      cancelDeadline();
      give();
    };
    const cancelDeadline = clock.after(this.#options.deadlineMs, () => {
      settle(() => this.#miss(`no answer within ${this.#options.deadlineMs} ms`));
      aborter.abort(new Error('the deadline of the probe'));
    });
    this.#asking = true;
    this.#askSafely(aborter.signal)
      .then(
        () => settle(() => this.#good()),
        (error: unknown) => settle(() => this.#miss(describeError(error))),
      )
      .finally(() => {
        this.#asking = false;
        cancelDeadline();
        signal.removeEventListener('abort', onAbort);
      });
  }

  async #askSafely(signal: AbortSignal): Promise<void> {
    await this.#options.ask(signal);
  }

  #good(): void {
    this.#missesInRow = 0;
    this.#give('good', '');
  }

  #miss(because: string): void {
    this.#missesInRow += 1;
    if (this.#missesInRow >= this.#options.misses) this.#give('bad', because);
  }

  #give(verdict: ProbeVerdict, because: string): void {
    if (verdict === this.#verdict) return;
    this.#verdict = verdict;
    this.#context.onVerdict(verdict, because);
  }
}
