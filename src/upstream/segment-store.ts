import type { AppendFile, Disk } from '../base/disk.ts';
import { InvariantError } from '../base/errors.ts';
import { encodeFact, type Place, type StoredFact } from './fact.ts';
import { OutboxUnreadableError } from './outbox-errors.ts';
import { isDroppable, linesOf, type Segment } from './segment.ts';
import type { Room } from './squeeze.ts';

/** The files are not what they were when they were last looked at. */
export class DamageFound extends Error {}

/** A fact with its size on disk. */
export interface SizedFact {
  readonly fact: StoredFact;
  /** Unit: bytes. */
  readonly bytes: number;
}

/** The segment files of an outbox: reading them page by page, and the few ways in which they change. Knows no meaning. */
export class SegmentStore {
  readonly #disk: Disk;
  readonly #segmentBytes: number;
  readonly #pathOf: (ordinal: number, stream: string) => string;
  #segments: Segment[] = [];
  #lastOrdinal = 0;
  #active: Active | undefined;
  /** Where in a file reading goes on: the start and the end of the last page. */
  #cursors: readonly Cursor[] = [];

  constructor(options: {
    readonly disk: Disk;
    /** A file that is larger is left for a new one. Unit: bytes. */
    readonly segmentBytes: number;
    readonly pathOf: (ordinal: number, stream: string) => string;
  }) {
    this.#disk = options.disk;
    this.#segmentBytes = options.segmentBytes;
    this.#pathOf = options.pathOf;
  }

  /** All segments, in order. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  /** What is on disk in accepted facts. */
  get size(): Room {
    let bytes = 0;
    let facts = 0;
    for (const segment of this.#segments) {
      bytes += segment.bytes;
      facts += segment.facts;
    }
    return { bytes, facts };
  }

  /** Forgets what was known and takes this instead. */
  reset(segments: readonly Segment[], lastOrdinal: number): void {
    this.closeActive();
    this.#segments = [...segments];
    this.#lastOrdinal = Math.max(lastOrdinal, this.#lastOrdinal);
    this.#cursors = [];
  }

  // --- writing

  /**
   * Writes one fact behind the others; it counts only when `confirm` has returned as well. If anything throws, the caller
   * calls {@link cutUnconfirmed} before it writes again.
   */
  append(fact: StoredFact, line: string, confirm: () => void): void {
    const bytes = Buffer.byteLength(line);
    const active = this.#activeFor(fact.stream, bytes);
    active.file.append(line);
    confirm();
    active.bytes += bytes;
    const last = this.#segments.at(-1);
    const droppable = isDroppable(fact) ? 1 : 0;
    if (last?.path === active.path) {
      this.#segments[this.#segments.length - 1] = {
        ...last,
        last: fact.seq,
        bytes: active.bytes,
        facts: last.facts + 1,
        droppable: last.droppable + droppable,
      };
    } else {
      const { path, ordinal } = active;
      const { stream, from, seq } = fact;
      this.#segments.push({ path, ordinal, stream, first: from, last: seq, bytes, facts: 1, droppable });
    }
  }

  /** Cuts what {@link append} may have left behind the accepted end. Throws if the disk refuses that as well. */
  cutUnconfirmed(): void {
    if (this.#active !== undefined) this.#active.file.truncate(this.#active.bytes);
  }

  /** The next fact goes to a new file, so that all present ones may be rewritten. */
  leaveActive(): void {
    this.closeActive();
    this.#lastOrdinal++;
  }

  closeActive(): void {
    this.#active?.file.close();
    this.#active = undefined;
  }

  /** Replaces a whole file, atomically. When it throws, nobody knows which content is there: look anew. */
  rewrite(segment: Segment, facts: readonly StoredFact[]): void {
    const { path, ordinal, stream } = segment;
    const index = this.#segments.findIndex((one) => one.path === path);
    const [first] = facts;
    const last = facts.at(-1);
    if (index === -1 || first === undefined || last === undefined)
      throw new InvariantError(`${path} rewritten with nothing`);
    if (this.#active?.path === path) this.closeActive();
    this.#cursors = [];
    const content = facts.map(encodeFact).join('');
    this.#disk.replace(path, content);
    this.#segments[index] = {
      path,
      ordinal,
      stream,
      first: first.from,
      last: last.seq,
      bytes: Buffer.byteLength(content),
      facts: facts.length,
      droppable: facts.filter(isDroppable).length,
    };
  }

  /** Removes a file and all its facts. When it throws, nobody knows whether the file is there: look anew. */
  remove(path: string): void {
    if (this.#active?.path === path) this.closeActive();
    this.#disk.remove(path);
    this.#segments = this.#segments.filter((one) => one.path !== path);
  }

  // --- reading

  segment(path: string): Segment | undefined {
    return this.#segments.find((one) => one.path === path);
  }

  /** Index of the first segment that holds a fact after `place`; undefined is before everything. */
  indexAfter(place: Place | undefined): number {
    if (place === undefined) return 0;
    const within = this.#segments.findIndex((one) => one.stream === place.stream && one.last > place.seq);
    if (within !== -1) return within;
    return this.#segments.findLastIndex((one) => one.stream === place.stream) + 1;
  }

  /** Facts after `place`, one file in memory at a time. `remember`: the next page will go on where this one ends. */
  *factsAfter(place: Place | undefined, remember = false): Generator<SizedFact> {
    let previous = place;
    let start: Cursor | undefined;
    for (const segment of this.#segments.slice(this.indexAfter(place))) {
      if (segment.stream !== previous?.stream) previous = undefined;
      let offset = this.#offsetAfter(segment, previous);
      for (const line of linesOf(this.#contentOf(segment), offset)) {
        if (line.kind !== 'fact') throw new DamageFound(`a line of ${segment.path} is damaged`);
        const { fact } = line;
        const bytes = line.end - offset;
        const before: Cursor = { path: segment.path, seq: previous?.seq, offset };
        offset = line.end;
        if (previous !== undefined && fact.seq <= previous.seq) continue;
        if (previous !== undefined && fact.from > previous.seq + 1) {
          throw new DamageFound(`${segment.path} goes on with ${fact.from} after ${previous.seq}`);
        }
        previous = { stream: fact.stream, seq: fact.seq };
        start ??= before;
        if (remember) this.#cursors = [start, { path: segment.path, seq: fact.seq, offset: line.end }];
        yield { fact, bytes };
      }
    }
  }

  /** All facts of one segment. */
  factsOf(segment: Segment): StoredFact[] {
    return [...linesOf(this.#contentOf(segment))].map((line) => {
      if (line.kind !== 'fact') throw new DamageFound(`a line of ${segment.path} is damaged`);
      return line.fact;
    });
  }

  /** The facts of a damaged segment that can still be read. */
  readableFactsOf(segment: Segment): StoredFact[] {
    const facts: StoredFact[] = [];
    for (const line of linesOf(this.#contentOf(segment))) {
      if (line.kind !== 'fact' || line.fact.stream !== segment.stream) continue;
      if (line.fact.seq > (facts.at(-1)?.seq ?? segment.first - 1)) facts.push(line.fact);
    }
    return facts;
  }

  /** What was accepted of a file; a write that was refused may stand behind it. */
  #contentOf(segment: Segment): Uint8Array {
    const content = readOrExplain(this.#disk, segment.path);
    if (content === undefined || content.byteLength < segment.bytes) {
      throw new DamageFound(`${segment.path} became shorter`);
    }
    return content.subarray(0, segment.bytes);
  }

  #offsetAfter(segment: Segment, previous: Place | undefined): number {
    const known = this.#cursors.find((cursor) => cursor.path === segment.path && cursor.seq === previous?.seq);
    return previous === undefined ? 0 : (known?.offset ?? 0);
  }

  #activeFor(stream: string, bytes: number): Active {
    const active = this.#active;
    if (active?.stream === stream && (active.bytes === 0 || active.bytes + bytes <= this.#segmentBytes)) return active;
    this.closeActive();
    const last = this.#segments.at(-1);
    const goesOn =
      last?.stream === stream && last.bytes + bytes <= this.#segmentBytes && last.ordinal === this.#lastOrdinal;
    this.#active = goesOn ? this.#reopen(last) : this.#open(stream);
    return this.#active;
  }

  #open(stream: string): Active {
    // The number is used up even if this fails: a file of it may be there.
    const ordinal = ++this.#lastOrdinal;
    const path = this.#pathOf(ordinal, stream);
    return { path, ordinal, stream, file: this.#disk.openAppend(path), bytes: 0 };
  }

  #reopen({ path, ordinal, stream, bytes }: Segment): Active {
    const file = this.#disk.openAppend(path);
    try {
      if (file.size !== bytes) file.truncate(bytes);
    } catch (error) {
      file.close();
      throw error;
    }
    return { path, ordinal, stream, file, bytes };
  }
}

interface Active {
  readonly path: string;
  readonly ordinal: number;
  readonly stream: string;
  readonly file: AppendFile;
  /** Accepted bytes. */
  bytes: number;
}

interface Cursor {
  readonly path: string;
  /** The fact before; undefined at the start of a stream. */
  readonly seq: number | undefined;
  readonly offset: number;
}

function readOrExplain(disk: Disk, path: string): Uint8Array | undefined {
  try {
    return disk.read(path);
  } catch (error) {
    throw new OutboxUnreadableError(path, error);
  }
}
