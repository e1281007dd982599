import { type Clock, timestamp } from '../base/clock.ts';
import type { AppendFile, Disk } from '../base/disk.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { StateNotWrittenError } from './state/durable-value.ts';

/** One act of the agent: what it was about to do, and how that ended. */
export interface JournalEntry {
  /** Random; joins the intent with its end. */
  readonly operation: string;
  readonly at: string;
  readonly what: string;
  readonly because: string;
  /** `intended` is on disk before the act; an act without an end was interrupted, and is resolved by looking again. */
  readonly state: 'intended' | 'done' | 'failed';
  readonly detail: string;
}

/** The journal was written by a newer agent; it is not written over. */
export class JournalNewerError extends AgentError {
  readonly code = 'JOURNAL_NEWER';
  constructor(version: number) {
    super(`the journal is of version ${version}, which this agent does not know`, {
      hint: 'Run the newer agent again; its records are never overwritten.',
    });
  }
}

/** A journal beyond this size is rewritten with its newest entries. Unit: bytes. */
const rewriteAboveBytes = 256 * 1024;
/** How many entries a rewrite keeps. */
const keptEntries = 200;

/** The intent, on disk before the act. Everything is passed in: a simulator runs it on a disk that loses writes. */
export class Journal {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #random: Random;
  #entries: JournalEntry[] = [];
  #file: AppendFile | undefined;

  /**
   * Opens the journal; a torn tail is cut, damaged lines are passed over (an interrupted act is resolved by looking). One
   * that cannot be opened is opened at the next act: until then acts that need it are refused.
   */
  constructor(options: { readonly path: string; readonly disk: Disk; readonly clock: Clock; readonly random: Random }) {
    this.#path = options.path;
    this.#disk = options.disk;
    this.#clock = options.clock;
    this.#random = options.random;
    this.look();
  }

  /** Why the journal cannot be opened, in words; undefined if all is well. Tries again each time. */
  look(): string | undefined {
    if (this.#file !== undefined) return undefined;
    try {
      this.#open();
      return undefined;
    } catch (error) {
      return `${this.#path} cannot be used: ${describeError(error)}`;
    }
  }

  /** Acts whose end is not known, oldest first: the agent was interrupted in them. */
  interrupted(): readonly JournalEntry[] {
    const ended = new Set(this.#entries.filter((entry) => entry.state !== 'intended').map((entry) => entry.operation));
    return this.#entries.filter((entry) => entry.state === 'intended' && !ended.has(entry.operation));
  }

  /** The newest entries, oldest first. */
  latest(count: number): readonly JournalEntry[] {
    return this.#entries.slice(-count);
  }

  /** Writes the intent. Throws {@link StateNotWrittenError}: then the act must not be done. */
  begin(what: string, because: string): JournalEntry {
    const entry: JournalEntry = {
      operation: this.#random.hex(8),
      at: timestamp(this.#clock),
      what,
      because,
      state: 'intended',
      detail: '',
    };
    this.#append(entry);
    return entry;
  }

  /** Writes how it ended. Throws {@link StateNotWrittenError}. */
  end(begun: JournalEntry, state: 'done' | 'failed', detail: string): void {
    this.#append({ ...begun, at: timestamp(this.#clock), state, detail });
  }

  close(): void {
    this.#file?.close();
  }

  #append(entry: JournalEntry): void {
    let sizeBefore: number | undefined;
    try {
      const file = this.#open();
      sizeBefore = file.size;
      file.append(encodeRecord(entry, 1));
      this.#entries.push(entry);
    } catch (error) {
      if (sizeBefore !== undefined) this.#cutBack(sizeBefore);
      throw new StateNotWrittenError(this.#path, error);
    }
  }

  /** The open file, not larger than its bound. Whatever a crash left behind, it is made whole before anything is added. */
  #open(): AppendFile {
    if (this.#file === undefined) this.#entries = readEntries(this.#disk.read(this.#path));
    else if (this.#file.size <= rewriteAboveBytes) return this.#file;
    this.#file?.close();
    this.#file = undefined;
    this.#entries = this.#entries.slice(-keptEntries);
    this.#disk.replace(this.#path, this.#entries.map((entry) => encodeRecord(entry, 1)).join(''));
    this.#file = this.#disk.openAppend(this.#path);
    return this.#file;
  }

  #cutBack(size: number): void {
    try {
      if (this.#file !== undefined && this.#file.size >= size) this.#file.truncate(size);
    } catch {
      // The torn line that may stay is passed over when it is read.
    }
  }
}

function readEntries(content: Uint8Array | undefined): JournalEntry[] {
  if (content === undefined) return [];
  const entries: JournalEntry[] = [];
  for (const line of new TextDecoder().decode(content).split('\n')) {
    const reading = decodeRecord(line, 1);
    if (reading.kind === 'newer') throw new JournalNewerError(reading.version);
    if (reading.kind === 'ok') entries.push(reading.value as JournalEntry);
  }
  return entries;
}
