import { backoffMs } from '../base/backoff.ts';
import { type Clock, timestamp } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { Place, StoredFact } from './fact.ts';
import type { Outbox } from './outbox.ts';

/** What became of a batch. A transport turns everything it meets into one of these. */
export type SendResult =
  /** The receiver has everything up to this fact of the batch, durably. */
  | { readonly kind: 'acked'; readonly upTo: Place }
  /** Perhaps it has it, perhaps not: the same batch again, later. `afterMs` is what the receiver asked for. */
  | { readonly kind: 'retry'; readonly why: string; readonly afterMs?: number }
  /** The receiver will never take this batch as it is. */
  | { readonly kind: 'refused'; readonly why: string }
  /** The receiver holds another fact under a number of this batch: the local history was rolled back. */
  | { readonly kind: 'forked'; readonly why: string }
  /** The receiver lost something and asks for everything from `from` on, or for all that is kept. */
  | { readonly kind: 'resync'; readonly from?: Place; readonly why: string };

/** A way to the receiver. */
export interface ReportTransport {
  /** For messages, without secrets. */
  readonly name: string;
  /** Sends one batch, in order. Settles soon after `signal` aborts. May reject: that is a retry. */
  send(batch: readonly StoredFact[], signal: AbortSignal): Promise<SendResult>;
}

/** What a reporter needs. */
export interface ReporterOptions {
  readonly outbox: Outbox;
  readonly transport: ReportTransport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly timing?: Partial<ReporterTiming>;
}

/** Sizes and times of a reporter. */
export interface ReporterTiming {
  /** Facts in one batch. Default 100; not more than the outbox's `keepHead`. */
  readonly batch: number;
  /** For one batch, answer included. Unit: ms, default 30 000. */
  readonly sendDeadlineMs: number;
  /** Pause after a failure, doubled up to {@link backoffMaxMs}, ± 20 %. Unit: ms, default 1 000. */
  readonly backoffFirstMs: number;
  /** Unit: ms, default 60 000. */
  readonly backoffMaxMs: number;
  /** A receiver may ask for a longer pause, but not for a longer one than this. Unit: ms, default 3 600 000. */
  readonly retryAfterMaxMs: number;
  /** A parked fact is tried again so often, in case the receiver was mended. Unit: ms, default 600 000. */
  readonly parkedRetryMs: number;
  /** While nothing is to be sent the outbox is tidied so often. Unit: ms, default 600 000. */
  readonly tidyMs: number;
}

export const defaultReporterTiming: ReporterTiming = {
  batch: 100,
  sendDeadlineMs: 30_000,
  backoffFirstMs: 1_000,
  backoffMaxMs: 60_000,
  retryAfterMaxMs: 3_600_000,
  parkedRetryMs: 600_000,
  tidyMs: 600_000,
};

/** What a reporter is doing, for status and metrics. */
export interface ReporterStatus {
  readonly state: 'idle' | 'sending' | 'waiting' | 'parked' | 'stopped';
  /** The last failure; undefined after a success. */
  readonly problem: string | undefined;
  /** Failures in a row. */
  readonly failures: number;
  /** When the receiver last confirmed something. ISO 8601, UTC. */
  readonly lastAckedAt: string | undefined;
  /** Facts that were confirmed since this process started, repetitions not counted. */
  readonly acked: number;
}

/**
 * Sends the outbox: one batch at a time, in order, at least once. A batch that is refused for ever is halved until the one
 * fact is found that the receiver does not take; that one is parked at the head, and nothing overtakes it.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #timing: ReporterTiming;
  #status: ReporterStatus = { state: 'idle', problem: undefined, failures: 0, lastAckedAt: undefined, acked: 0 };
  /** How many facts the next batch may have: halved by refusals, doubled by successes. */
  #size: number;
  #changes = 0;
  #parkedTriedAtMs: number;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#timing = { ...defaultReporterTiming, ...options.timing };
    this.#size = this.#timing.batch;
    this.#parkedTriedAtMs = options.clock.monotonicMs();
  }

  get status(): ReporterStatus {
    return this.#status;
  }

  /** Runs until the signal aborts; then it resolves. Never rejects. */
  async run(): Promise<void> {
    const { outbox, signal } = this.#options;
    const stopListening = outbox.onChange(() => this.#changes++);
    try {
      while (!signal.aborted) await this.#turn();
    } finally {
      stopListening();
      this.#set({ state: 'stopped' });
    }
  }

  async #turn(): Promise<void> {
    const { outbox, log } = this.#options;
    const changesBefore = this.#changes;
    let batch: readonly StoredFact[];
    try {
      batch = outbox.page(outbox.parked === undefined ? this.#size : 1);
    } catch (error) {
      return this.#failed(`the outbox: ${describeError(error)}`, undefined);
    }
    const [head] = batch;
    if (head === undefined) {
      this.#set({ state: 'idle' });
      if (await this.#changedWithin(this.#timing.tidyMs, changesBefore)) return;
      return outbox.maintain();
    }
    if (outbox.parked !== undefined) {
      // Somebody may have mended the receiver: the parked fact is tried again, alone, now and then.
      this.#set({ state: 'parked' });
      const waitedMs = this.#options.clock.monotonicMs() - this.#parkedTriedAtMs;
      const waitMs = this.#timing.parkedRetryMs - waitedMs;
      if (waitMs > 0 && (await this.#changedWithin(waitMs, changesBefore))) return;
      if (this.#options.signal.aborted) return;
      this.#parkedTriedAtMs = this.#options.clock.monotonicMs();
      log.info({ seq: head.seq, kind: head.kind }, 'the parked report is tried again');
    }
    await this.#send(batch);
  }

  async #send(batch: readonly StoredFact[]): Promise<void> {
    this.#set({ state: 'sending' });
    const result = await this.#sendWithDeadline(batch);
    if (this.#options.signal.aborted && result.kind !== 'acked') return;
    switch (result.kind) {
      case 'acked':
        return this.#acked(batch, result.upTo);
      case 'retry':
        return this.#failed(result.why, result.afterMs);
      case 'refused':
        return this.#refused(batch, result.why);
      case 'forked':
        return this.#changeHistory(result.why, () => this.#options.outbox.startNewStream(result.why));
      case 'resync':
        return this.#changeHistory(result.why, () => this.#options.outbox.replayFrom(result.from));
    }
  }

  /** The deadline holds also for a transport that does not listen to its signal. */
  #sendWithDeadline(batch: readonly StoredFact[]): Promise<SendResult> {
    const { transport, clock, signal } = this.#options;
    const abort = new AbortController();
    return new Promise((resolve) => {
      const settle = (result: SendResult) => {
        cancel();
        signal.removeEventListener('abort', onStop);
        resolve(result);
      };
      const giveUp = (why: string) => {
        settle({ kind: 'retry', why });
        abort.abort(new Error(why));
      };
      const onStop = () => giveUp('the agent stops');
      const cancel = clock.after(this.#timing.sendDeadlineMs, () =>
        giveUp(`${transport.name} has not answered within ${this.#timing.sendDeadlineMs} ms`),
      );
      signal.addEventListener('abort', onStop, { once: true });
      if (signal.aborted) return onStop();
      // A transport that throws at once is treated like one that rejects.
      Promise.resolve()
        .then(() => transport.send(batch, abort.signal))
        .then(settle, (error: unknown) => settle({ kind: 'retry', why: `${transport.name}: ${describeError(error)}` }));
    });
  }

  /** Only a prefix of the batch can be acknowledged. */
  async #acked(batch: readonly StoredFact[], upTo: Place): Promise<void> {
    const { outbox, transport, clock } = this.#options;
    const count = batch.findIndex((fact) => fact.stream === upTo.stream && fact.seq === upTo.seq) + 1;
    if (count === 0)
      return this.#failed(
        `${transport.name} acknowledged ${upTo.stream}/${upTo.seq}, which it was not sent`,
        undefined,
      );
    outbox.ack(upTo);
    this.#size = Math.min(this.#timing.batch, this.#size * 2);
    this.#set({ problem: undefined, failures: 0, lastAckedAt: timestamp(clock), acked: this.#status.acked + count });
  }

  async #refused(batch: readonly StoredFact[], why: string): Promise<void> {
    const { outbox, transport, log } = this.#options;
    const [head] = batch;
    if (batch.length > 1) {
      this.#size = Math.floor(batch.length / 2);
      log.debug({ facts: batch.length, why }, 'a batch was refused; a smaller one shows which report it is');
      return;
    }
    if (head === undefined) return;
    this.#size = 1;
    this.#set({ problem: why, failures: this.#status.failures + 1 });
    this.#parkedTriedAtMs = this.#options.clock.monotonicMs();
    if (outbox.parked?.id === head.id) return;
    outbox.park(head, why);
    const { seq, kind, id } = head;
    log.error(
      { seq, kind, id, why },
      `${transport.name} refuses a report for ever: it is parked and blocks the ones behind it`,
    );
  }

  async #changeHistory(why: string, change: () => unknown): Promise<void> {
    this.#options.log.warn({ why }, 'the receiver asks for another history');
    try {
      change();
    } catch (error) {
      return this.#failed(describeError(error), undefined);
    }
    // A receiver that asks for this again and again must not be a busy loop.
    return this.#failed(why, undefined);
  }

  async #failed(why: string, afterMs: number | undefined): Promise<void> {
    const { log, random } = this.#options;
    const { backoffFirstMs, backoffMaxMs, retryAfterMaxMs } = this.#timing;
    const failures = this.#status.failures + 1;
    const own = backoffMs(failures, { firstMs: backoffFirstMs, maxMs: backoffMaxMs }, random.fraction());
    const waitMs = Math.max(own, Math.min(afterMs ?? 0, retryAfterMaxMs));
    if (failures === 1) log.warn({ why, waitMs }, 'reports wait: the receiver did not take them');
    else log.debug({ why, waitMs, failures }, 'reports still wait');
    this.#set({ state: 'waiting', problem: why, failures });
    await this.#pause(waitMs);
  }

  /** Waits, in time that only grows: a jump of the wall clock neither shortens nor lengthens it. */
  #pause(ms: number): Promise<void> {
    const { clock, signal } = this.#options;
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const cancel = clock.after(ms, end);
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted) end();
    });
  }

  /** True as soon as the outbox has changed since `changesBefore`; false after `ms`, or when the agent stops. */
  #changedWithin(ms: number, changesBefore: number): Promise<boolean> {
    const { clock, signal, outbox } = this.#options;
    if (this.#changes !== changesBefore) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (changed: boolean) => {
        cancel();
        stopListening();
        signal.removeEventListener('abort', onStop);
        resolve(changed);
      };
      const onStop = () => end(false);
      const cancel = clock.after(ms, () => end(false));
      const stopListening = outbox.onChange(() => end(true));
      signal.addEventListener('abort', onStop, { once: true });
      if (signal.aborted) onStop();
    });
  }

  #set(change: Partial<ReporterStatus>): void {
    this.#status = { ...this.#status, ...change };
  }
}
