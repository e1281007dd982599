/** What is in a data directory, read while etcd does not run. Nothing is ever written, locked or repaired. */
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoOf } from '../base/errors.ts';
import type { ClusterId, MemberId } from './member.ts';
import { type LogPosition, type WalSegment, WalSegmentReader } from './wal.ts';

/** What a data directory is. `unreadable` is never `absent`: it is not known what is there. */
export type DataDir =
  | { readonly kind: 'absent' }
  /** No data of etcd. `others` are the names of files that are not etcd's. */
  | { readonly kind: 'empty'; readonly others: readonly string[] }
  /**
   * etcd has begun but has no log: it was ended before its first record, or somebody deleted the log. Without snapshots
   * and without a member id that ever ran this is a start to be repeated; else it is a lost log, which must never be started.
   */
  | { readonly kind: 'noWal'; readonly hasDb: boolean; readonly hasSnapshots: boolean }
  | DataOfMember
  /** etcd will refuse it or lose data with it. The ids are there if they could still be read. */
  | {
      readonly kind: 'broken';
      readonly why: string;
      readonly memberId: MemberId | undefined;
      readonly clusterId: ClusterId | undefined;
    }
  | { readonly kind: 'unreadable'; readonly why: string }
  | { readonly kind: 'notADirectory' };

/** The data of one member. */
export interface DataOfMember {
  readonly kind: 'member';
  readonly memberId: MemberId;
  readonly clusterId: ClusterId;
  /** Where its log ends. After a power cut this may be behind what it had applied. */
  readonly last: LogPosition;
  /** The highest index that it knew as committed. */
  readonly commit: bigint;
  /** The highest term that it knew; may be above that of its last entry. */
  readonly term: bigint;
  /** True if the last record is cut: etcd will drop it and say "repaired WAL". */
  readonly tornTail: boolean;
  readonly hasDb: boolean;
  readonly hasSnapshots: boolean;
  readonly segments: number;
}

/** Looks at the data directory at the absolute path `directory`. Reads the log from its end, as far back as needed. Never throws. */
export async function inspectDataDir(directory: string): Promise<DataDir> {
  try {
    const names = await namesIn(directory);
    if (names === undefined) return { kind: 'absent' };
    if (names.includes('proxy')) return broken('it holds data of the v2 proxy, which etcd no longer has');
    if (!names.includes('member')) return { kind: 'empty', others: names };
    const snapNames = (await namesIn(join(directory, 'member', 'snap'))) ?? [];
    const walNames = (await namesIn(join(directory, 'member', 'wal'))) ?? [];
    const hasDb = snapNames.includes('db');
    const hasSnapshots = snapNames.some((name) => name.endsWith('.snap'));
    const segments = walNames.filter((name) => segmentName.test(name)).sort();
    if (segments.length === 0) return { kind: 'noWal', hasDb, hasSnapshots };
    const gap = gapIn(segments);
    if (gap !== undefined) return broken(`the log has no segment between ${gap}`);
    const log = await readLog(segments.map((name) => join(directory, 'member', 'wal', name)));
    if (log.kind === 'broken') return log;
    if (hasSnapshots && !hasDb) return { ...broken('it has snapshots but no db'), ...idsOf(log) };
    return { ...log, hasDb, hasSnapshots, segments: segments.length };
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') return { kind: 'notADirectory' };
    return { kind: 'unreadable', why: error instanceof Error ? error.message : String(error) };
  }
}

/** True if `directory` is the root of a mounted file system: it cannot be renamed then (EBUSY). A bind mount from the same file system is found too. Throws if it cannot be looked at. */
export async function isMountPoint(directory: string): Promise<boolean> {
  const [own, parent] = await Promise.all([stat(directory), stat(dirname(directory))]);
  if (own.dev !== parent.dev) return true;
  const mounts = await readText('/proc/self/mountinfo');
  return mounts.split('\n').some((line) => unescaped(line.split(' ')[4] ?? '') === directory);
}

/** `SEQUENCE-FIRSTINDEX.wal`, both as 16 hex digits. */
const segmentName = /^([0-9a-f]{16})-([0-9a-f]{16})\.wal$/;

/** How much is read at once: memory stays small although a segment is 64 MB. Unit: bytes. */
const chunkBytes = 256 * 1024;

type LogReading = Omit<DataOfMember, 'hasDb' | 'hasSnapshots' | 'segments'> | (DataDir & { readonly kind: 'broken' });

/** Reads from the newest segment backwards until the last entry is known. Only the newest may be torn. */
async function readLog(paths: readonly string[]): Promise<LogReading> {
  const newest = await readSegment(paths.at(-1) ?? '');
  if (newest.end.kind === 'corrupt') return { ...broken(`its log is damaged: ${newest.end.why}`), ...idsOf(newest) };
  const { memberId, clusterId } = newest;
  if (!memberId || clusterId === undefined) return broken('the newest segment of its log names no member');
  let last = lastPosition(newest, newest.commit);
  for (let index = paths.length - 2; last === undefined && index >= 0; index--) {
    const segment = await readSegment(paths[index] ?? '');
    if (segment.end.kind !== 'clean') return { ...broken('an older segment of its log is damaged'), ...idsOf(newest) };
    last = lastPosition(segment, newest.commit);
  }
  return {
    kind: 'member',
    memberId,
    clusterId,
    last: last ?? { term: 0n, index: 0n },
    commit: newest.commit,
    term: newest.term,
    tornTail: newest.end.kind === 'torn',
  };
}

/** A snapshot that was received counts only once the log knows its index as committed. */
function lastPosition(segment: WalSegment, commit: bigint): LogPosition | undefined {
  const { lastEntry, lastSnapshot } = segment;
  if (lastSnapshot === undefined || lastSnapshot.index === 0n || lastSnapshot.index > commit) return lastEntry;
  return lastEntry !== undefined && lastEntry.index >= lastSnapshot.index ? lastEntry : lastSnapshot;
}

async function readSegment(path: string): Promise<WalSegment> {
  const file = await open(path, 'r');
  try {
    return await feedFrom(file, new WalSegmentReader((await file.stat()).size));
  } finally {
    await file.close();
  }
}

async function feedFrom(file: FileHandle, reader: WalSegmentReader): Promise<WalSegment> {
  const chunk = new Uint8Array(chunkBytes);
  while (!reader.finished) {
    const { bytesRead } = await file.read(chunk, 0, chunkBytes);
    if (bytesRead === 0) break;
    reader.feed(chunk.subarray(0, bytesRead));
  }
  return reader.result();
}

function gapIn(segments: readonly string[]): string | undefined {
  for (const [index, name] of segments.entries()) {
    const next = segments[index + 1];
    if (next !== undefined && sequenceOf(next) !== sequenceOf(name) + 1n) return `${name} and ${next}`;
  }
  return undefined;
}

function sequenceOf(segment: string): bigint {
  return BigInt(`0x${segment.slice(0, 16)}`);
}

function idsOf(from: { readonly memberId: MemberId | undefined; readonly clusterId: ClusterId | undefined }) {
  return { memberId: from.memberId, clusterId: from.clusterId };
}

function broken(why: string): DataDir & { readonly kind: 'broken' } {
  return { kind: 'broken', why, memberId: undefined, clusterId: undefined };
}

async function namesIn(directory: string): Promise<readonly string[] | undefined> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** A file below /proc, whose size reads as 0. */
async function readText(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** mountinfo writes blanks and backslashes in octal. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
