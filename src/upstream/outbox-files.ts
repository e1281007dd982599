import { dirname } from 'node:path';
import type { Disk } from '../base/disk.ts';
import { decodeRecord, encodeRecord, type RecordReading } from '../base/record.ts';
import { isObject, isPlace, outboxVersion, type Place } from './fact.ts';
import { type HistoryFound, type Known, newerWitness, readWitness, type Witness } from './history.ts';
import { OutboxNewerError, OutboxUnreadableError } from './outbox-errors.ts';
import { type SegmentScan, scanSegment } from './segment.ts';

/** Where the outbox keeps its files. Absolute paths. */
export interface OutboxPaths {
  /** Belongs to the outbox alone. */
  readonly directory: string;
  /** The witness: outside {@link directory}, best where another backup or another file system would take it. */
  readonly witness: string;
  /** Another copy of the witness, on another file system. Left out: there is none. */
  readonly twin?: WitnessTwin;
}

/**
 * A second witness, for the case that outbox and witness are put back together from an old copy. It is written where its
 * directory exists, and whatever becomes of it costs no report.
 */
export interface WitnessTwin {
  readonly path: string;
  /** Whose it is: on a disk that came from another node it says nothing of us. */
  readonly node: string;
  readonly disk: Disk;
}

/** How far the receiver got, and since when it has been so. */
export interface Position {
  readonly acked: Place | null;
  /** How long this outbox has been open in all. Ages are measured in it: a wall clock may jump. Unit: ms. */
  readonly openMs: number;
  /** Segments that are acknowledged throughout: ordinal → {@link openMs} at that moment. */
  readonly ackedAt: readonly (readonly [ordinal: number, openMs: number])[];
  readonly parked: Parked | null;
}

/** A fact that the receiver refused for ever. It stays at the head until it is skipped, or accepted after all. */
export interface Parked extends Place {
  readonly id: string;
  readonly kind: string;
  /** What the receiver said. */
  readonly why: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** All that the files of an outbox show. */
export interface FilesFound {
  readonly history: HistoryFound;
  /** Which copy of the witness is not as new as the other; undefined if they are the same. */
  readonly oldWitness: 'own' | 'twin' | undefined;
  readonly position: Known<Position>;
  /** Files that a crash left behind and that hold nothing of their own. */
  readonly leftovers: readonly string[];
  /** The highest ordinal that any file has; 0 if there is none. */
  readonly lastOrdinal: number;
}

/** Reads everything once, one segment after the other. Throws {@link OutboxNewerError} and {@link OutboxUnreadableError}. */
export function readFiles(disk: Disk, paths: OutboxPaths): FilesFound {
  const position = readPosition(readRecord(disk, positionPath(paths)));
  const witness = readWitness(readRecord(disk, paths.witness));
  if (position.kind === 'newer') throw new OutboxNewerError(positionPath(paths), position.version);
  if (witness.kind === 'newer') throw new OutboxNewerError(paths.witness, witness.version);
  const twin = readTwin(paths);
  const names = attempt(paths.directory, () => disk.list(paths.directory)) ?? [];
  const files = names.map((name) => segmentFile(paths, name)).filter((file) => file !== undefined);
  const scans: SegmentScan[] = [];
  const leftovers: string[] = [];
  const left = new Set<string>();
  const read = (path: string) => attempt(path, () => disk.read(path)) ?? new Uint8Array();
  for (const file of files) {
    const content = read(file.path);
    if (content.byteLength === 0) {
      leftovers.push(file.path);
      continue;
    }
    const current = scans.findLast((scan) => scan.segment !== undefined)?.stream;
    if (current !== undefined && current !== file.stream) left.add(current);
    // A stream that was left is never written to again: what claims to belong to it was copied here by somebody.
    const scan = scanSegment(file, content, left.has(file.stream) ? 0 : undefined);
    if (scan.newerVersion !== undefined) throw new OutboxNewerError(file.path, scan.newerVersion);
    for (let before = scans.at(-1); before !== undefined && swallows(scan, before); before = scans.at(-1)) {
      leftovers.push(before.path);
      scans.pop();
    }
    cutOverlap(scans, scan, read);
    scans.push(scan);
  }
  const acked: Known<Place | null> = position.kind === 'ok' ? { kind: 'ok', value: position.value.acked } : position;
  const newer = newerWitness(witness, twin);
  return {
    history: { scans, witness: newer.witness, acked },
    oldWitness: newer.old,
    position,
    leftovers,
    lastOrdinal: files.at(-1)?.ordinal ?? 0,
  };
}

/** Path of the segment of that ordinal and stream. */
export function segmentPath(paths: OutboxPaths, ordinal: number, stream: string): string {
  return `${paths.directory}/${String(ordinal).padStart(10, '0')}-${stream}.jsonl`;
}

/** Path of the record that says how far the receiver got. */
export function positionPath(paths: OutboxPaths): string {
  return `${paths.directory}/position`;
}

/** Writes {@link Position} as a whole. */
export function writePosition(disk: Disk, paths: OutboxPaths, position: Position): void {
  disk.replace(positionPath(paths), encodeRecord(position, outboxVersion));
}

/** Writes {@link Witness} as a whole. */
export function writeWitness(disk: Disk, paths: OutboxPaths, witness: Witness): void {
  disk.replace(paths.witness, encodeRecord(witness, outboxVersion));
}

/** Writes the twin, if there is one and its directory exists. Throws what its disk throws. */
export function writeTwin({ twin }: OutboxPaths, witness: Witness): void {
  if (twin === undefined || twin.disk.list(dirname(twin.path)) === undefined) return;
  twin.disk.replace(twin.path, encodeRecord({ ...witness, node: twin.node }, outboxVersion));
}

/** A twin that cannot be read is as good as none. Throws {@link OutboxNewerError}. */
function readTwin({ twin }: OutboxPaths): Known<Witness> {
  if (twin === undefined) return { kind: 'absent' };
  let content: Uint8Array | undefined;
  try {
    content = twin.disk.read(twin.path);
  } catch {
    return { kind: 'absent' };
  }
  const record = decodeRecord(content, outboxVersion);
  if (record.kind === 'ok' && isObject(record.value) && record.value['node'] !== twin.node) return { kind: 'absent' };
  const reading = readWitness(record);
  if (reading.kind === 'newer') throw new OutboxNewerError(twin.path, reading.version);
  return reading;
}

interface SegmentFile {
  readonly path: string;
  readonly ordinal: number;
  readonly stream: string;
}

function segmentFile(paths: OutboxPaths, name: string): SegmentFile | undefined {
  const match = /^(\d{10})-([0-9a-f]{16})\.jsonl$/.exec(name);
  const [, ordinal, stream] = match ?? [];
  if (ordinal === undefined || stream === undefined) return undefined;
  return { path: `${paths.directory}/${name}`, ordinal: Number(ordinal), stream };
}

/** A refused fact that could not be taken back may stand at the end of a file, and its number in the next one. */
function cutOverlap(scans: SegmentScan[], next: SegmentScan, read: (path: string) => Uint8Array): void {
  const { segment } = next;
  if (segment === undefined) return;
  for (const [index, scan] of scans.entries()) {
    if (scan.segment === undefined || scan.stream !== segment.stream || scan.segment.last < segment.first) continue;
    scans[index] = scanSegment(scan, read(scan.path), segment.first);
  }
}

/** True if the gap at the start of `scan` stands for all of `before`: a crash came between writing the one and removing the other. */
function swallows(scan: SegmentScan, before: SegmentScan): boolean {
  if (scan.segment === undefined || before.segment === undefined || !scan.firstIsGap) return false;
  if (scan.stream !== before.stream) return false;
  return scan.segment.first <= before.segment.first && scan.firstTo >= before.segment.last;
}

function readPosition(reading: RecordReading): Known<Position> | { readonly kind: 'newer'; readonly version: number } {
  if (reading.kind !== 'ok') return reading;
  const { value } = reading;
  const damaged = { kind: 'damaged' as const, why: 'it is no position record' };
  if (!isObject(value) || typeof value['openMs'] !== 'number' || !Array.isArray(value['ackedAt'])) return damaged;
  const { acked, openMs, ackedAt, parked } = value;
  if (acked !== null && !isPlace(acked)) return damaged;
  return {
    kind: 'ok',
    value: { acked, openMs, ackedAt: ackedAt.filter(isAge), parked: isParked(parked) ? parked : null },
  };
}

function isAge(value: unknown): value is readonly [number, number] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'number');
}

function isParked(value: unknown): value is Parked {
  if (!isObject(value) || !isPlace({ stream: value['stream'], seq: value['seq'] })) return false;
  return ['id', 'kind', 'why', 'at'].every((name) => typeof value[name] === 'string');
}

function readRecord(disk: Disk, path: string): RecordReading {
  return decodeRecord(
    attempt(path, () => disk.read(path)),
    outboxVersion,
  );
}

function attempt<T>(path: string, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw new OutboxUnreadableError(path, error);
  }
}
