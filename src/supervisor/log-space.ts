import { statSync, truncateSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { FreedRange, LifeDir } from './life-dir.ts';
import type { runCommand } from './run.ts';

/** How much of a log stays. Unit: bytes, multiples of 1 MiB except `headBytes` (of 64 KiB). */
export interface LogLimits {
  /** The first part, never freed. Default 256 KiB. */
  readonly headBytes: number;
  /** The last part, never freed. Default 50 MiB. */
  readonly tailBytes: number;
  /** Freed in steps of this. Default 16 MiB. */
  readonly stepBytes: number;
  /** Unread text is kept up to this; beyond it the oldest is freed unread, and said so. Default 256 MiB. */
  readonly unreadBytes: number;
  /** Blocks held ready behind the end, so that last words fit on a full disk. Default 1 MiB. */
  readonly reserveBytes: number;
}

const mebibyte = 1024 * 1024;

/** The cause of an end stands at the head or the tail of a log. Source: design, "log per life". */
export const defaultLogLimits: LogLimits = {
  headBytes: 256 * 1024,
  tailBytes: 50 * mebibyte,
  stepBytes: 16 * mebibyte,
  unreadBytes: 256 * mebibyte,
  reserveBytes: mebibyte,
};

/** What a log's space is kept with. */
export interface LogSpaceOptions {
  readonly dir: LifeDir;
  readonly clock: Clock;
  readonly log: Log;
  readonly run: typeof runCommand;
  readonly limits: LogLimits;
}

/**
 * Keeps a log that is being written within bounds without ever truncating it: frees its middle by punching holes, and
 * holds a few blocks ready behind its end. Both by `fallocate` of util-linux; where the file system refuses, it says so
 * once and the log simply grows.
 */
export class LogSpace {
  readonly #options: LogSpaceOptions;
  #freed: FreedRange | undefined;
  #working: Promise<void> | undefined;
  #reservedTo = 0;
  #reservedAtMs = Number.NEGATIVE_INFINITY;
  #refused = new Set<string>();

  constructor(options: LogSpaceOptions) {
    this.#options = options;
    this.#freed = options.dir.freed();
  }

  get freed(): FreedRange | undefined {
    return this.#freed;
  }

  /** To be called whenever the log was read on, with how far it was read. Starts what is needed, one thing at a time. */
  grown(readTo: number): void {
    if (this.#working !== undefined) return;
    const size = statSync(this.#options.dir.log, { throwIfNoEntry: false })?.size ?? 0;
    const work = this.#punchIfDue(size, readTo) ?? this.#reserveIfDue(size);
    this.#working = work
      ?.catch((error: unknown) => this.#refuse('log space', describeError(error)))
      .finally(() => {
        this.#working = undefined;
      });
  }

  /** The life is over: gives the blocks behind the end back. */
  async finish(): Promise<void> {
    await this.#working;
    trimReserve(this.#options.dir);
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.#working;
  }

  #punchIfDue(size: number, readTo: number): Promise<void> | undefined {
    const { headBytes, tailBytes, stepBytes, unreadBytes } = this.#options.limits;
    const from = this.#freed?.to ?? headBytes;
    const unreadFrom = Math.max(readTo, size - tailBytes - unreadBytes);
    const to = alignDown(Math.min(size - tailBytes, unreadFrom));
    if (to - from < stepBytes || this.#refused.has('punch')) return undefined;
    if (to > readTo) this.#options.log.warn({ bytes: to - readTo }, 'the log grows faster than it can be read');
    return this.#punch({ from, to });
  }

  async #punch({ from, to }: FreedRange): Promise<void> {
    const whole = { from: this.#options.limits.headBytes, to };
    await this.#options.dir.recordFreed(whole);
    this.#freed = whole;
    await this.#fallocate('punch', ['--punch-hole', '--offset', `${from}`, '--length', `${to - from}`]);
  }

  #reserveIfDue(size: number): Promise<void> | undefined {
    const { reserveBytes } = this.#options.limits;
    const now = this.#options.clock.monotonicMs();
    if (this.#reservedTo - size > reserveBytes / 2 || now - this.#reservedAtMs < 1000) return undefined;
    if (reserveBytes === 0 || this.#refused.has('reserve')) return undefined;
    this.#reservedAtMs = now;
    this.#reservedTo = size + reserveBytes;
    return this.#fallocate('reserve', ['--keep-size', '--offset', `${size}`, '--length', `${reserveBytes}`]);
  }

  async #fallocate(what: string, args: readonly string[]): Promise<void> {
    const { dir, run } = this.#options;
    const result = await run('fallocate', [...args, dir.log], { timeoutMs: 30_000 });
    if (result.code === 0) return;
    const why = result.problem ?? result.stderr.trim();
    // A full disk is no refusal of the file system: the next try may succeed.
    if (/no space/i.test(why)) this.#reservedTo = 0;
    else this.#refuse(what, why);
  }

  #refuse(what: string, why: string): void {
    if (this.#refused.has(what)) return;
    this.#refused.add(what);
    this.#options.log.warn({ what, why, path: this.#options.dir.log }, 'this log cannot be kept within its bounds');
  }
}

/** Gives back blocks behind the end of a log that nobody writes any more. */
export function trimReserve(dir: LifeDir): void {
  const size = statSync(dir.log, { throwIfNoEntry: false })?.size;
  if (size !== undefined) truncateSync(dir.log, size);
}

/** No file system in use has blocks larger than this. */
function alignDown(bytes: number): number {
  return Math.floor(bytes / mebibyte) * mebibyte;
}
