import { type Clock, delay } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { LifeDir, StopRecord } from './life-dir.ts';

/** A record that takes longer (a disk that hangs) is no longer waited for. Unit: ms. */
const patienceMs = 5000;

/** Keeps who asked for the end of one life, and the signals sent, on disk before each signal. */
export class StopRecorder {
  readonly #dir: LifeDir;
  readonly #clock: Clock;
  readonly #log: Log;
  #record: StopRecord | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(dir: LifeDir, clock: Clock, log: Log) {
    this.#dir = dir;
    this.#clock = clock;
    this.#log = log;
    this.#record = dir.stop(); // an earlier agent may have asked already
  }

  get record(): StopRecord | undefined {
    return this.#record;
  }

  /**
   * Resolves when the signal is on record. Where that fails or hangs it resolves all the same and says so: an order to
   * stop weighs more than its record. Signals of an earlier agent stay; the newest reason counts.
   */
  async note(name: NodeJS.Signals, asked: { readonly by: string; readonly reason: string }): Promise<void> {
    const atMs = this.#clock.wallMs();
    const before = this.#record ?? { askedAtMs: atMs, signals: [] };
    if (before.signals.at(-1)?.name === name) return; // a KILL that is repeated
    const record = { ...before, ...asked, signals: [...before.signals, { name, atMs }].slice(-8) };
    this.#record = record;
    // One after the other: two writes at once would take the same slot.
    this.#writing = this.#writing
      .then(() => this.#dir.recordStop(record))
      .catch((error: unknown) => {
        this.#log.error({ life: this.#dir.number, why: describeError(error) }, 'the stop is not recorded');
      });
    await this.#atMost(this.#writing);
  }

  async #atMost(writing: Promise<void>): Promise<void> {
    const patience = new AbortController();
    const tooLong = delay(this.#clock, patienceMs, patience.signal).then(
      () => this.#log.error({ life: this.#dir.number }, 'the record of the stop hangs; the signal is sent without'),
      () => {},
    );
    await Promise.race([writing, tooLong]);
    patience.abort(new Error('recorded'));
  }
}
