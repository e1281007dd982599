import { dirname } from 'node:path';
import { type Clock, timestamp } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { describeError, errnoOf, InvariantError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import {
  encodeFact,
  type Fact,
  type GapData,
  gapData,
  gapKind,
  type Missing,
  type Place,
  type StoredFact,
} from './fact.ts';
import { fitData, jsonBytes } from './fit-data.ts';
import { coalesce, judgeHistory, type Verdict, type Witness } from './history.ts';
import { makeRoom } from './make-room.ts';
import { OutboxPlaceError, OutboxRefusedError, OutboxUnreadableError } from './outbox-errors.ts';
import {
  type OutboxPaths,
  type Parked,
  readFiles,
  segmentPath,
  writePosition,
  writeTwin,
  writeWitness,
} from './outbox-files.ts';
import { planRepairs, type Repair } from './outbox-repair.ts';
import type { Segment } from './segment.ts';
import { DamageFound, SegmentStore } from './segment-store.ts';
import { gapInPlaceOf, lineBytes, type Room, type SqueezeOptions } from './squeeze.ts';

/** The bounds of an outbox. */
export interface OutboxLimits {
  /** All facts together. Unit: bytes, default 64 MiB. */
  readonly bytes: number;
  /** Number of facts, acknowledged ones that are still kept included. Default 100 000. */
  readonly facts: number;
  /** One fact, as a line on disk. A larger one is cut, visibly. Unit: bytes, default 64 KiB, at least 2 KiB. */
  readonly factBytes: number;
  /** One segment file. Unit: bytes, default 1 MiB. What is acknowledged is removed in whole segments. */
  readonly segmentBytes: number;
  /** How long acknowledged facts are kept, counted while the outbox is open. Unit: ms, default 7 days. */
  readonly keepAckedMs: number;
  /** So many facts after the last acknowledged one are never given up, as they may be under way. Default 100, the batch. */
  readonly keepHead: number;
}

/** design.md, "Defaults". */
export const defaultOutboxLimits: OutboxLimits = {
  bytes: 64 * 1024 * 1024,
  facts: 100_000,
  factBytes: 64 * 1024,
  segmentBytes: 1024 * 1024,
  keepAckedMs: 7 * 86_400_000,
  keepHead: 100,
};

/** What an outbox needs. */
export interface OutboxOptions extends OutboxPaths {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits?: Partial<OutboxLimits>;
}

/** The state of an outbox, for status and metrics. */
export interface OutboxStats {
  readonly stream: string;
  /** The last number that was given out; 0 before the first. */
  readonly high: number;
  /** Everything up to here was acknowledged; undefined before the first acknowledgement. */
  readonly acked: Place | undefined;
  /** Numbers that wait for an acknowledgement, over all streams. */
  readonly waiting: number;
  /** When the fact at the head happened; undefined if none waits or it cannot be read. */
  readonly oldestWaitingAt: string | undefined;
  /** On disk, acknowledged facts included. */
  readonly bytes: number;
  readonly facts: number;
  /** Facts that this process had to give up because the outbox was full. */
  readonly dropped: number;
  readonly parked: Parked | undefined;
  /** Why the last fact was refused, or the disk cannot be written; undefined if all is well. */
  readonly refusing: string | undefined;
}

/** The witness remembers so many streams that wait to be sent. There is one, except after damage. */
const maxEarlier = 100;
/** One page is not larger than about this. Unit: bytes. */
const pageBytes = 1024 * 1024;

/**
 * Reports on disk: written before they are sent, kept until acknowledged and a while longer.
 *
 * A fact is *accepted* when {@link append} returns: its line is synced, and so is the witness that knows its number.
 * From then on it is sent until acknowledged, or a gap names its number; no crash, power loss, full disk, damage or
 * old copy of one of the two places loses it in silence (docs/adr/0020-outbox-history.md). If `append` throws, it is not
 * accepted: the caller does not take the step.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #limits: OutboxLimits;
  readonly #store: SegmentStore;
  readonly #openedAtMs: number;
  readonly #listeners = new Set<() => void>();
  /** The stream and number that the next fact follows, and the id of the fact there. */
  #end: Place = { stream: '', seq: 0 };
  #endId = '';
  #acked: Place | undefined;
  /** What the first facts of streams name as missing. The witness knows it too, until they are acknowledged. */
  #losses: readonly Loss[] = [];
  #openMsBefore = 0;
  #ackedAt = new Map<number, number>();
  #parked: Parked | undefined;
  #positionUnsaved = false;
  /** What the last, refused write may have left: a line behind the accepted end, a witness that knows it. */
  #unfinished = { line: false, witness: false };
  #witnessWrites = 0;
  #twinFails = false;
  /** True if a file may not be what we think it is. */
  #stale = false;
  #repairs: Repair[] = [];
  #dropped = 0;
  #refusedBecause: string | undefined;
  #unmaintainedBecause: string | undefined;

  /** Reads what is there and repairs it as far as the disk lets. Throws OutboxNewerError, OutboxUnreadableError. */
  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#limits = { ...defaultOutboxLimits, ...options.limits };
    this.#openedAtMs = options.clock.monotonicMs();
    const pathOf = (ordinal: number, stream: string) => segmentPath(options, ordinal, stream);
    this.#store = new SegmentStore({ disk: options.disk, segmentBytes: this.#limits.segmentBytes, pathOf });
    this.#load();
    this.maintain();
  }

  /** Makes the fact durable and gives it its number. Throws {@link OutboxRefusedError} if the disk refuses. */
  append(fact: Fact): StoredFact {
    if (fact.kind === '' || fact.kind.length > 200) throw new InvariantError(`a fact of kind "${fact.kind}"`);
    const data = plainJson(fact);
    const stored = this.#withWholeFiles(`the report ${fact.kind}`, () => {
      const { numbered, line } = this.#number({ ...fact, data });
      this.#makeRoom({ bytes: Buffer.byteLength(line), facts: 1 });
      this.#write(numbered, line);
      return numbered;
    });
    this.#refusedBecause = undefined;
    this.#wake();
    return stored;
  }

  /** The next facts to send, in order, of one stream, at most `limit`. Empty if none waits. */
  page(limit: number): readonly StoredFact[] {
    return this.#withWholeFiles('a repair', () => {
      const facts: StoredFact[] = [];
      let size = 0;
      for (const { fact, bytes } of this.#store.factsAfter(this.#acked, true)) {
        if (facts.length >= limit || size >= pageBytes || fact.stream !== (facts[0]?.stream ?? fact.stream)) break;
        facts.push(fact);
        size += bytes;
      }
      return facts;
    });
  }

  /**
   * The receiver has everything up to `place`. An older place than the last one is ignored. If this cannot be saved, it
   * only means that facts are sent again after a restart. Throws {@link OutboxPlaceError} for a place never reached.
   */
  ack(place: Place): void {
    const { segments } = this.#store;
    const last = segments.findLast((segment) => segment.stream === place.stream);
    if (last === undefined || place.seq > last.last) {
      throw new OutboxPlaceError(`${place.stream}/${place.seq} was acknowledged, but there is no such report`, {
        hint: 'The receiver confuses nodes, or its own order is broken. Nothing was taken off the outbox.',
      });
    }
    if (!this.isWaiting(place)) return;
    this.#acked = { stream: place.stream, seq: place.seq };
    if (this.#parked !== undefined && !this.isWaiting(this.#parked)) this.#parked = undefined;
    this.#positionUnsaved = true;
    this.maintain();
  }

  /** The head was refused for ever: the reporter sends nothing until it is skipped or tried again with success. */
  park(fact: StoredFact, why: string): void {
    const { stream, seq, id, kind } = fact;
    this.#parked = { stream, seq, id, kind, why, at: timestamp(this.#options.clock) };
    this.#positionUnsaved = true;
    this.maintain();
  }

  /** The fact that blocks the head, or undefined. */
  get parked(): Parked | undefined {
    return this.#parked;
  }

  /** The head shall be tried again. */
  unpark(): void {
    if (this.#parked === undefined) return;
    this.#parked = undefined;
    this.#positionUnsaved = true;
    this.maintain();
    this.#wake();
  }

  /** Puts a gap in the place of the fact at the head, and returns it. Throws {@link OutboxPlaceError} for any other place. */
  skip(place: Place, reason: string): StoredFact {
    const gap = this.#withWholeFiles('the gap for a skipped report', () => {
      const [head] = this.#heads();
      const segment = this.#store.segments[this.#firstWaiting()];
      if (head === undefined || segment === undefined || head.stream !== place.stream || head.seq !== place.seq) {
        const where = head === undefined ? 'no report waits' : `the head is ${head.stream}/${head.seq}`;
        throw new OutboxPlaceError(`${place.stream}/${place.seq} cannot be skipped: ${where}`, {
          hint: 'Only the report at the head can be skipped; `etcd-node-agent events` shows it.',
        });
      }
      const made = gapInPlaceOf(head, `skipped by an operator: ${reason}`, this.#gapMaker(head.stream));
      const facts = this.#store.factsOf(segment);
      this.#rewrite(segment, facts.map((fact) => (fact.id === head.id ? made : fact))); // biome-ignore format: one thought
      if (this.#endId === head.id) this.#endId = made.id;
      return made;
    });
    this.#parked = undefined;
    this.#positionUnsaved = true;
    this.maintain();
    this.#wake();
    return gap;
  }

  /**
   * A receiver that lost something asks for everything from `place` on (that fact included), or for all that is kept.
   * What is gone already gets a gap at the front, which is returned. Throws {@link OutboxPlaceError} for a place that is
   * not here: then the receiver needs a snapshot and all that is kept.
   */
  replayFrom(place?: Place): Missing | undefined {
    const missing = this.#withWholeFiles('the gap before a replay', () => {
      const { segments } = this.#store;
      const segment = segments.find((one) => place === undefined || one.stream === place.stream);
      const last = segments.findLast((one) => one.stream === segment?.stream);
      if (segment === undefined || last === undefined || (place?.seq ?? 0) > last.last + 1) {
        if (place === undefined) return undefined;
        throw new OutboxPlaceError(`${place.stream}/${place.seq} is not in the outbox`, {
          hint: 'Ask for all that is kept.',
        });
      }
      // What waits is sent anyway; a replay goes back, never forward.
      if (place !== undefined && this.isWaiting(place)) return undefined;
      const from = Math.max(1, place?.seq ?? segment.first);
      const gone = from < segment.first ? { stream: segment.stream, from, to: segment.first - 1 } : undefined;
      if (gone !== undefined) this.#putGapBefore(segment.path, gone, 'sent and removed long ago');
      this.#acked = { stream: segment.stream, seq: from - 1 };
      return gone;
    });
    this.#ackedAt.clear();
    this.#parked = undefined;
    this.#positionUnsaved = true;
    this.maintain();
    this.#wake();
    return missing;
  }

  /** Leaves the current stream, for example because the receiver holds another fact under one of its numbers. */
  startNewStream(because: string): StoredFact {
    const gap = this.#withWholeFiles('the start of a new stream', () => {
      const previous = this.#end.seq > 0 ? this.#end : undefined;
      return this.#openStream({ because, missing: [], ...(previous && { previous }) });
    });
    this.#wake();
    return gap;
  }

  /** Facts after a place (from the oldest one kept, if none is given), acknowledged or not; for people. */
  read(options: { readonly after?: Place; readonly limit: number }): readonly StoredFact[] {
    return this.#withWholeFiles('a repair', () => {
      const facts: StoredFact[] = [];
      for (const { fact } of this.#store.factsAfter(options.after)) {
        if (facts.length >= options.limit) break;
        facts.push(fact);
      }
      return facts;
    });
  }

  /** The newest facts, at most `limit`, oldest first; for people. */
  tail(limit: number): readonly StoredFact[] {
    return this.#withWholeFiles('a repair', () => {
      let facts: StoredFact[] = [];
      for (const segment of this.#store.segments.toReversed()) {
        if (facts.length >= limit) break;
        facts = [...this.#store.factsOf(segment), ...facts];
      }
      return facts.slice(Math.max(0, facts.length - limit));
    });
  }

  /** True if the fact of this place is not acknowledged yet. */
  isWaiting(place: Place): boolean {
    if (place.stream === this.#acked?.stream) return place.seq > this.#acked.seq;
    return this.#store.segments.slice(this.#firstWaiting()).some((one) => one.stream === place.stream);
  }

  /** Calls `listener` whenever there is something new to send. Returns a function that ends this. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Repairs what could not be repaired, saves what could not be saved, removes what was kept long enough. Never throws. */
  maintain(): void {
    try {
      this.#makeWhole();
      this.#markAcked();
      if (this.#positionUnsaved) this.#savePosition();
      this.#removeOld();
      this.#unmaintainedBecause = undefined;
    } catch (error) {
      this.#unmaintainedBecause = describeError(error);
      this.#options.log.warn({ err: this.#unmaintainedBecause }, 'the outbox cannot be written; it is tried again');
    }
  }

  stats(): OutboxStats {
    return {
      stream: this.#end.stream,
      high: this.#end.seq,
      acked: this.#acked,
      waiting: this.#waitingNumbers(),
      oldestWaitingAt: this.#oldestWaitingAt(),
      ...this.#store.size,
      dropped: this.#dropped,
      parked: this.#parked,
      refusing: this.#refusedBecause ?? this.#unmaintainedBecause,
    };
  }

  /** Saves how far the receiver got and closes the file. The outbox is not used afterwards. */
  close(): void {
    this.#positionUnsaved = true;
    this.maintain();
    this.#store.closeActive();
    this.#listeners.clear();
  }

  // --- whole files

  #load(): void {
    this.#undoUnfinished();
    const { log } = this.#options;
    const found = readFiles(this.#options.disk, this.#options);
    const { scans, witness } = found.history;
    // Never backwards: a copy that could not be read now may be read the next time.
    if (witness.kind === 'ok') this.#witnessWrites = Math.max(this.#witnessWrites, witness.value.writes);
    const verdict = judgeHistory(found.history);
    const segments = scans.flatMap((scan) => (scan.segment === undefined ? [] : [scan.segment]));
    this.#store.reset(segments, found.lastOrdinal);
    this.#end = verdict.end ?? { stream: this.#options.random.hex(8), seq: 0 };
    this.#losses = scans.flatMap(({ stream, opener }) =>
      opener === undefined ? [] : [{ stream, missing: opener.missing }],
    );
    this.#endId = scans.findLast((scan) => scan.segment !== undefined)?.lastId ?? '';
    if (found.position.kind === 'ok') {
      const { openMs, ackedAt, parked } = found.position.value;
      this.#openMsBefore = openMs - (this.#openMs() - this.#openMsBefore);
      this.#ackedAt = new Map(ackedAt);
      this.#parked = parked ?? undefined;
    } else if (found.position.kind === 'damaged') {
      log.warn({ why: found.position.why }, 'the position of the outbox is damaged; reports may be sent again');
    }
    this.#acked = notBeforeTheStart(segments[0], verdict);
    this.#repairs = planRepairs(found, verdict, {
      ensureDirectories: () => this.#ensureDirectories(),
      settle: () => this.#settle(),
      remove: (path) => this.#options.disk.remove(path),
      setAside: (path) => this.#setAside(path),
      cutTail: (segment) => this.#cutTail(segment),
      openStream: (data) => void this.#openStream(data),
      saveWitness: () => this.#saveWitness(this.#end, this.#endId),
      saveTwin: () => witness.kind === 'ok' && this.#saveTwin(witness.value),
      fillHoles: (path) => this.#fillHoles(path),
      fillBefore: (path, missing) => this.#putGapBefore(path, missing, 'the outbox was damaged'),
    });
    this.#stale = false;
    const { distrust } = verdict;
    if (distrust === undefined) return;
    log.error({ missing: distrust.missing }, `the outbox starts a new stream: ${distrust.because}`);
  }

  /** Throws what the disk throws; what is done already is not done again. */
  #makeWhole(): void {
    if (this.#stale) this.#load();
    for (let next = this.#repairs[0]; next !== undefined; next = this.#repairs[0]) {
      next();
      this.#repairs.shift();
    }
  }

  /** Runs `act` on whole files. If damage shows up under way, the files are looked at anew, once. */
  #withWholeFiles<T>(what: string, act: () => T): T {
    try {
      this.#makeWhole();
      try {
        return act();
      } catch (error) {
        if (!(error instanceof DamageFound)) throw error;
        this.#options.log.error({ err: describeError(error) }, 'the outbox is damaged; it is read anew');
        this.#stale = true;
        this.#makeWhole();
        return act();
      }
    } catch (error) {
      if (error instanceof OutboxPlaceError || error instanceof OutboxUnreadableError) throw error;
      if (error instanceof InvariantError) throw error;
      this.#refusedBecause = describeError(error);
      throw new OutboxRefusedError(what, this.#options.directory, error);
    }
  }

  #ensureDirectories(): void {
    this.#options.disk.ensureDirectory(this.#options.directory);
    this.#options.disk.ensureDirectory(dirname(this.#options.witness));
  }

  #settle(): void {
    const { disk, directory, witness } = this.#options;
    const last = this.#store.segments.at(-1);
    if (last !== undefined) disk.sync(last.path);
    disk.sync(directory);
    if (disk.read(witness) !== undefined) disk.sync(witness);
    disk.sync(dirname(witness));
  }

  #setAside(path: string): void {
    this.#options.log.warn({ path }, 'a file of the outbox has no readable report; it is set aside');
    if (this.#options.disk.read(path) !== undefined) this.#options.disk.rename(path, `${path}.damaged`);
  }

  #cutTail({ path, bytes }: Segment): void {
    this.#options.log.warn({ path, bytes }, 'a torn tail of the outbox is cut off');
    const file = this.#options.disk.openAppend(path);
    try {
      file.truncate(bytes);
    } finally {
      file.close();
    }
  }

  /** Numbers that are gone in the middle of a file get a gap each, so that every stream is complete on the wire. */
  #fillHoles(path: string): void {
    const segment = this.#store.segment(path);
    if (segment === undefined) return;
    const whole: StoredFact[] = [];
    for (const fact of this.#store.readableFactsOf(segment)) {
      const from = (whole.at(-1)?.seq ?? fact.from - 1) + 1;
      const to = fact.from - 1;
      const missing = [{ stream: segment.stream, from, to }];
      if (to >= from)
        whole.push(this.#gapMaker(segment.stream)(from, to, { because: 'the outbox was damaged', missing }));
      whole.push(fact);
    }
    this.#rewrite(segment, whole);
  }

  #putGapBefore(path: string, missing: Missing, because: string): void {
    const segment = this.#store.segment(path);
    if (segment === undefined || missing.to === null) return;
    const gap = this.#gapMaker(segment.stream)(missing.from, missing.to, { because, missing: [missing] });
    this.#rewrite(segment, [gap, ...this.#store.factsOf(segment)]);
  }

  /** The first fact of a stream says why there is a new one, what is missing and where the stream before it ended. */
  #openStream(data: GapData): StoredFact {
    const stream = this.#options.random.hex(8);
    const gap = this.#gapMaker(stream)(1, 1, data);
    this.#losses = [...this.#losses, { stream, missing: data.missing }].slice(-maxEarlier);
    this.#undoUnfinished();
    try {
      this.#store.append(gap, encodeFact(gap), () => this.#saveWitness(gap, gap.id));
    } catch (error) {
      // Not taken back as a refused fact is: the witness of the stream that was left is the only evidence of what is
      // missing. Nobody has seen the new stream, so whatever a fresh look makes of its file is right.
      this.#stale = true;
      throw error;
    }
    this.#accepted(gap);
    return gap;
  }

  // --- writing

  #number(fact: Fact): { readonly numbered: StoredFact; readonly line: string } {
    const { kind, certainty, at, important, cluster, member } = fact;
    const seq = this.#end.seq + 1;
    const place = { stream: this.#end.stream, seq, from: seq, id: this.#options.random.hex(16) };
    const context = { ...(cluster !== undefined && { cluster }), ...(member !== undefined && { member }) };
    const stored: StoredFact = { ...place, kind, certainty, at, important, ...context, data: fact.data };
    const line = encodeFact(stored);
    if (Buffer.byteLength(line) <= this.#limits.factBytes) return { numbered: stored, line };
    const cutFromBytes = jsonBytes(stored.data);
    const overhead = lineBytes({ ...stored, data: {}, cutFromBytes });
    const cut = { ...stored, cutFromBytes, data: fitData(stored.data, this.#limits.factBytes - overhead) };
    return { numbered: cut, line: encodeFact(cut) };
  }

  #write(fact: StoredFact, line: string): void {
    for (;;) {
      try {
        this.#accept(fact, line);
        return;
      } catch (error) {
        // A full disk: acknowledged facts, kept for a receiver that is restored, are given up before a new one is refused.
        if (errnoOf(error) !== 'ENOSPC' || !this.#removeOldestAcked()) throw error;
      }
    }
  }

  /** The fact's line first, then the witness, each synced: only then it has its number. */
  #accept(fact: StoredFact, line: string): void {
    this.#undoUnfinished();
    this.#unfinished.line = true;
    try {
      this.#store.append(fact, line, () => {
        this.#unfinished.witness = true;
        this.#saveWitness(fact, fact.id);
      });
    } catch (error) {
      this.#tryUndo();
      throw error;
    }
    this.#unfinished = { line: false, witness: false };
    this.#accepted(fact);
  }

  #accepted(fact: StoredFact): void {
    this.#end = { stream: fact.stream, seq: fact.seq };
    this.#endId = fact.id;
    this.#unmark(this.#store.segments.at(-1));
  }

  /** Takes back a write that was not accepted, so that nothing follows it on disk. Throws if the disk refuses that too. */
  #undoUnfinished(): void {
    if (this.#unfinished.line) this.#store.cutUnconfirmed();
    this.#unfinished.line = false;
    if (this.#unfinished.witness) this.#saveWitness(this.#end, this.#endId);
    this.#unfinished.witness = false;
  }

  #tryUndo(): void {
    try {
      this.#undoUnfinished();
    } catch (error) {
      this.#options.log.warn({ err: describeError(error) }, 'a refused write could not be taken back yet');
    }
  }

  #saveWitness({ stream, seq }: Place, id: string): void {
    const lost = this.#losses.filter((loss) => this.#isUnconfirmed(loss, stream));
    const last = new Map<string, number>();
    for (const segment of this.#store.segments.slice(this.#firstWaiting())) last.set(segment.stream, segment.last);
    last.delete(stream);
    const earlier = [...last].map(([name, number]) => ({ stream: name, seq: number })).slice(-maxEarlier);
    const witness = {
      stream,
      high: seq,
      id,
      acked: this.#acked ?? null,
      earlier,
      lost: coalesce(lost.flatMap((loss) => loss.missing)),
      writes: ++this.#witnessWrites,
    };
    writeWitness(this.#options.disk, this.#options, witness);
    this.#saveTwin(witness);
  }

  #saveTwin(witness: Witness): void {
    try {
      writeTwin(this.#options, witness);
      this.#twinFails = false;
    } catch (error) {
      if (!this.#twinFails)
        this.#options.log.warn({ err: describeError(error) }, 'the twin of the witness cannot be written');
      this.#twinFails = true;
    }
  }

  /** A loss counts until the first fact of the stream that names it is acknowledged; `opening` may not be on disk yet. */
  #isUnconfirmed(loss: Loss, opening: string): boolean {
    if (this.#acked?.stream === loss.stream) return this.#acked.seq < 1;
    return loss.stream === opening || this.isWaiting({ stream: loss.stream, seq: 1 });
  }

  #savePosition(): void {
    const present = new Set(this.#store.segments.map((segment) => segment.ordinal));
    writePosition(this.#options.disk, this.#options, {
      acked: this.#acked ?? null,
      openMs: this.#openMs(),
      ackedAt: [...this.#ackedAt].filter(([ordinal]) => present.has(ordinal)),
      parked: this.#parked ?? null,
    });
    this.#positionUnsaved = false;
  }

  #rewrite(segment: Segment, facts: readonly StoredFact[]): void {
    this.#undoUnfinished();
    try {
      this.#store.rewrite(segment, facts);
    } catch (error) {
      this.#stale = true;
      throw error;
    }
  }

  #remove(segment: Segment): void {
    try {
      this.#store.remove(segment.path);
    } catch (error) {
      this.#stale = true;
      throw error;
    }
  }

  // --- room

  /** Gives up facts until `need` fits: acknowledged ones, then unimportant ones, then all; oldest first. */
  #makeRoom(need: Room): void {
    const over = (share: number): Room => {
      const { bytes, facts } = this.#store.size;
      return {
        bytes: bytes + need.bytes - Math.floor(this.#limits.bytes * share),
        facts: facts + need.facts - Math.floor(this.#limits.facts * share),
      };
    };
    if (fits(over(1))) return;
    // Some more than needed, so that not every fact to come rewrites a file.
    const lacking = () => over(15 / 16);
    while (!fits(lacking()) && this.#removeOldestAcked()) {}
    for (const may of ['unimportant', 'all'] as const) if (!fits(lacking())) this.#giveUp(may, lacking);
    if (!fits(over(1))) {
      const { bytes, facts } = this.#store.size;
      throw new Error(`the outbox is full (${facts} reports, ${bytes} bytes) and none may be given up`);
    }
  }

  #giveUp(may: SqueezeOptions['may'], lacking: () => Room): void {
    this.#undoUnfinished();
    this.#store.leaveActive();
    const dropped = makeRoom({
      store: this.#store,
      may,
      keepHead: this.#limits.keepHead,
      newestId: this.#endId,
      firstWaiting: this.#firstWaiting(),
      isWaiting: (fact) => this.isWaiting(fact),
      makeGapIn: (stream) => this.#gapMaker(stream),
      lacking,
      rewrite: (segment, facts) => this.#rewrite(segment, facts),
      remove: (segment) => this.#remove(segment),
    });
    this.#dropped += dropped;
    const what = may === 'all' ? 'membership included' : 'none of membership';
    this.#options.log.error({ dropped }, `the outbox is full: reports were given up (${what}); a gap names them`);
  }

  #removeOldestAcked(): boolean {
    const [oldest] = this.#store.segments;
    if (oldest === undefined || this.#store.segments.length < 2 || this.#firstWaiting() === 0) return false;
    this.#saveProofOfAck();
    this.#unmark(oldest);
    this.#remove(oldest);
    return true;
  }

  #removeOld(): void {
    for (let [oldest] = this.#store.segments; oldest !== undefined; [oldest] = this.#store.segments) {
      const since = this.#ackedAt.get(oldest.ordinal);
      if (since === undefined || this.#openMs() - since < this.#limits.keepAckedMs) return;
      if (!this.#removeOldestAcked()) return;
    }
  }

  /** What is removed was acknowledged: both records say so first, so that one of them is enough to tell it from a loss. */
  #saveProofOfAck(): void {
    try {
      this.#savePosition();
      this.#undoUnfinished();
      this.#saveWitness(this.#end, this.#endId);
    } catch (error) {
      // On a full disk the removal itself is what makes room. At worst a later loss of a record is reported as a gap.
      if (errnoOf(error) !== 'ENOSPC') throw error;
    }
  }

  #markAcked(): void {
    const firstWaiting = this.#firstWaiting();
    for (const [index, segment] of this.#store.segments.entries()) {
      if (index >= firstWaiting) this.#unmark(segment);
      else if (!this.#ackedAt.has(segment.ordinal)) {
        this.#ackedAt.set(segment.ordinal, this.#openMs());
        this.#positionUnsaved = true;
      }
    }
  }

  #unmark(segment: Segment | undefined): void {
    if (segment !== undefined && this.#ackedAt.delete(segment.ordinal)) this.#positionUnsaved = true;
  }

  // --- looking

  #firstWaiting(): number {
    return this.#store.indexAfter(this.#acked);
  }

  *#heads(): Generator<StoredFact> {
    for (const { fact } of this.#store.factsAfter(this.#acked)) yield fact;
  }

  #gapMaker(stream: string): (from: number, to: number, data: GapData) => StoredFact {
    return (from, to, data) => ({
      stream,
      seq: to,
      from,
      id: this.#options.random.hex(16),
      kind: gapKind,
      certainty: 'observed',
      at: timestamp(this.#options.clock),
      important: true,
      data: gapData(data),
    });
  }

  #waitingNumbers(): number {
    let waiting = 0;
    for (const segment of this.#store.segments.slice(this.#firstWaiting())) {
      const acked = segment.stream === this.#acked?.stream ? this.#acked.seq : 0;
      waiting += segment.last - Math.max(segment.first - 1, acked);
    }
    return waiting;
  }

  #oldestWaitingAt(): string | undefined {
    try {
      const [head] = this.#heads();
      return head?.at;
    } catch (error) {
      if (error instanceof DamageFound || error instanceof OutboxUnreadableError) return undefined;
      throw error;
    }
  }

  #openMs(): number {
    return this.#openMsBefore + (this.#options.clock.monotonicMs() - this.#openedAtMs);
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }
}

interface Loss {
  /** The stream whose first fact names it. */
  readonly stream: string;
  readonly missing: readonly Missing[];
}

function fits(over: Room): boolean {
  return over.bytes <= 0 && over.facts <= 0;
}

/** What was pruned was acknowledged, whatever an old record says. What is missing at the start was not. */
function notBeforeTheStart(first: Segment | undefined, { acked, missingBefore }: Verdict): Place | undefined {
  if (first === undefined) return acked;
  const start = missingBefore.get(first.path)?.from ?? first.first;
  if (start === 1 || (acked !== undefined && (acked.stream !== first.stream || acked.seq >= start))) return acked;
  return { stream: first.stream, seq: start - 1 };
}

/** The data as JSON makes it. A value that JSON does not know is a mistake of ours, found before anything is written. */
function plainJson(fact: Fact): Fact['data'] {
  try {
    return JSON.parse(JSON.stringify(fact.data));
  } catch (error) {
    throw new InvariantError(`the data of a fact of kind ${fact.kind} is not JSON`, { cause: error });
  }
}
