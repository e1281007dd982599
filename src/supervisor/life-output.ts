import type { Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Evidence } from './evidence.ts';
import type { LifeDir } from './life-dir.ts';
import type { LogLine } from './line-splitter.ts';
import { type LogLimits, LogSpace } from './log-space.ts';
import { LogTail } from './log-tail.ts';
import { runCommand } from './run.ts';

/** What the output of one life is followed with. */
export interface LifeOutputOptions {
  readonly dir: LifeDir;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: LogLimits;
  readonly isDecisive: (line: string) => boolean;
  readonly onLine: (line: LogLine) => void;
  /** What a callback threw: a bug of the caller, who decides what becomes of it. */
  readonly onError: (error: unknown) => void;
}

/** All that a child writes, while it lives: lines to the caller, decisive ones to the evidence, the log within bounds. */
export class LifeOutput {
  readonly #options: LifeOutputOptions;
  readonly #tail: LogTail;
  readonly #space: LogSpace;
  #evidence: Evidence | undefined;
  #unsynced = false;

  constructor(options: LifeOutputOptions) {
    const { dir, clock, log } = options;
    this.#options = options;
    this.#space = new LogSpace({ dir, clock, log, run: runCommand, limits: options.limits });
    this.#evidence = this.#tryEvidence(() => new Evidence(dir.evidence));
    this.#tail = new LogTail({
      path: dir.log,
      clock,
      onLine: (line) => this.#line(line),
      freed: () => this.#space.freed,
      onSlice: (offset) => this.#slice(offset),
      onError: options.onError,
      onUnreadable: (error) =>
        log.error({ path: dir.log, why: describeError(error) }, "etcd's log cannot be read: what it says is not seen"),
    });
  }

  start(): void {
    this.#tail.start();
  }

  /** The life is over: delivers all that is left. `keepSpace`: something may still write. Never throws. */
  async finish(keepSpace: boolean): Promise<void> {
    try {
      await this.#tail.finish();
    } catch (error) {
      this.#options.log.error({ path: this.#options.dir.log, why: describeError(error) }, 'the end of the log is lost');
    }
    this.#closeEvidence();
    await (keepSpace ? this.#space.close() : this.#space.finish()).catch((error: unknown) => {
      this.#options.log.warn({ path: this.#options.dir.log, why: describeError(error) }, 'the log keeps spare blocks');
    });
  }

  /** Stops following; no line is delivered afterwards. */
  async close(): Promise<void> {
    await this.#tail.close();
    this.#closeEvidence();
    await this.#space.close();
  }

  #line(line: LogLine): void {
    if (line.freedBytes === undefined && this.#options.isDecisive(line.text)) {
      this.#tryEvidence(() => this.#evidence?.keep(line.offset, line.text));
      this.#unsynced = true;
    }
    this.#options.onLine(line);
  }

  #slice(offset: number): void {
    this.#space.grown(offset);
    if (!this.#unsynced) return;
    this.#unsynced = false;
    this.#evidence?.sync().catch((error: unknown) => this.#complain(error));
  }

  #closeEvidence(): void {
    const evidence = this.#evidence;
    this.#evidence = undefined;
    if (evidence === undefined) return;
    evidence
      .sync()
      .catch((error: unknown) => this.#complain(error))
      .finally(() => evidence.close());
  }

  #tryEvidence<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      this.#complain(error);
      return undefined;
    }
  }

  #complain(error: unknown): void {
    this.#options.log.warn({ path: this.#options.dir.evidence, why: describeError(error) }, 'no evidence is kept');
  }
}
