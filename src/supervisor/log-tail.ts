import { type FSWatcher, watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { CancelTimer, Clock } from '../base/clock.ts';
import { errnoOf } from '../base/errors.ts';
import type { FreedRange } from './life-dir.ts';
import { LineSplitter, type LogLine } from './line-splitter.ts';

/** What a log is followed with. */
export interface LogTailOptions {
  readonly path: string;
  readonly clock: Clock;
  /** Called for every line, in order, from byte 0. What it throws ends up in `onError`. */
  readonly onLine: (line: LogLine) => void;
  /** The hole in the log, asked for whenever the reader could run into it. */
  readonly freed: () => FreedRange | undefined;
  /** Called after each slice that was read and at each end of the file. Unit: bytes read so far. */
  readonly onSlice?: (offset: number) => void;
  readonly onError: (error: unknown) => void;
  /** The file cannot be read now (somebody removed it, or the disk fails): told once, and tried again by the timer. */
  readonly onUnreadable?: (error: unknown) => void;
  /** The file is looked at this often even if no change is notified. Unit: ms, default 1000. */
  readonly netMs?: number;
}

/** One read. Small enough that the lines of a slice hold the event loop for a few ms only. Unit: bytes. */
const sliceBytes = 64 * 1024;

/** Follows a growing log: told of changes by the kernel, with a slow timer as a net. */
export class LogTail {
  readonly #options: LogTailOptions;
  readonly #splitter: LineSplitter;
  readonly #buffer = Buffer.allocUnsafeSlow(sliceBytes);
  #watcher: FSWatcher | undefined;
  #cancelNet: CancelTimer | undefined;
  #reading: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #toldUnreadable = false;

  constructor(options: LogTailOptions) {
    this.#options = options;
    this.#splitter = new LineSplitter(options.onLine);
  }

  /** All before it was read. Unit: bytes. */
  get offset(): number {
    return this.#splitter.offset;
  }

  start(): void {
    try {
      this.#watcher = watch(this.#options.path, { persistent: false }, () => this.#wake());
      this.#watcher.on('error', () => this.#watcher?.close());
    } catch {
      // No inotify left: the timer alone is slower, not wrong.
    }
    this.#armNet();
    this.#wake();
  }

  /** The life is over: reads all that is left, delivers a torn last line, and stops. */
  async finish(): Promise<void> {
    this.#stopWaking();
    await this.#reading;
    if (this.#closed) return;
    await this.#readToEnd();
    this.#splitter.end();
    this.#closed = true;
  }

  /** Stops at once; no line is delivered afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopWaking();
    await this.#reading;
  }

  #stopWaking(): void {
    this.#watcher?.close();
    this.#cancelNet?.();
    this.#watcher = undefined;
    this.#cancelNet = undefined;
    this.#again = false;
  }

  #armNet(): void {
    this.#cancelNet = this.#options.clock.after(this.#options.netMs ?? 1000, () => {
      this.#armNet();
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#closed) return;
    if (this.#reading !== undefined) {
      this.#again = true;
      return;
    }
    this.#reading = this.#readWhatIsThere()
      .catch(this.#options.onError)
      .finally(() => {
        this.#reading = undefined;
        if (!this.#again) return;
        this.#again = false;
        this.#wake();
      });
  }

  /** A log that cannot be read is no reason to end the agent: etcd runs on, and its end is judged without these lines. */
  async #readWhatIsThere(): Promise<void> {
    try {
      await this.#readToEnd();
    } catch (error) {
      if (!(error instanceof LogUnreadable)) throw error;
      if (!this.#toldUnreadable) this.#options.onUnreadable?.(error.cause);
      this.#toldUnreadable = true;
    }
  }

  async #readToEnd(): Promise<void> {
    const file = await open(this.#options.path, 'r').catch(unreadable);
    try {
      while (!this.#closed && (await this.#readSlice(file))) {
        this.#options.onSlice?.(this.#splitter.offset);
      }
      this.#options.onSlice?.(this.#splitter.offset); // also when nothing was new: what was due before may be done now
    } finally {
      await file.close();
    }
  }

  /** False at the end of the file. Each read is a turn of the event loop, so that others get theirs. */
  async #readSlice(file: FileHandle): Promise<boolean> {
    let offset = this.#splitter.offset;
    const hole = this.#options.freed();
    if (hole !== undefined && offset >= hole.from && offset < hole.to) {
      this.#splitter.freed(hole.to - offset);
      offset = hole.to;
    }
    const upTo = hole !== undefined && offset < hole.from ? Math.min(sliceBytes, hole.from - offset) : sliceBytes;
    const { bytesRead } = await file.read(this.#buffer, 0, upTo, offset).catch(unreadable);
    if (this.#closed || bytesRead === 0) return false;
    // Blocks that were freed during the read may have come back as zeros: read anew, around the hole.
    const now = this.#options.freed();
    if (now !== undefined && now.to > offset && now.from < offset + bytesRead) return true;
    this.#splitter.push(this.#buffer.subarray(0, bytesRead));
    return true;
  }
}

/** Tells a file that cannot be read from a callback that has thrown. */
class LogUnreadable extends Error {}

function unreadable(cause: unknown): never {
  throw new LogUnreadable('the log cannot be read', { cause });
}

/** Reads the log of a life that is over, from its first to its last line; one that somebody removed has none. */
export async function readLog(options: Omit<LogTailOptions, 'netMs' | 'onError'>): Promise<void> {
  const tail = new LogTail({ ...options, onError: () => {} });
  try {
    await tail.finish();
  } catch (error) {
    const cause = error instanceof LogUnreadable ? error.cause : error;
    if (errnoOf(cause) !== 'ENOENT') throw cause;
  }
}
