/** @pure file: one segment of etcd's write-ahead log, read without etcd. */

import { crc32c } from './crc32c.ts';
import type { ClusterId, MemberId } from './member.ts';
import { bytesIn, numberIn, readFields } from './protobuf-fields.ts';

/** A place in the raft log: an entry, and the term in which it was made. */
export interface LogPosition {
  readonly term: bigint;
  readonly index: bigint;
}

/** How a segment ends: at the space that etcd allocates ahead, within a record that was cut by a crash, or in damage. */
export type WalEnd =
  | { readonly kind: 'clean' }
  | { readonly kind: 'torn'; readonly offset: number }
  | { readonly kind: 'corrupt'; readonly offset: number; readonly why: string };

/** What one segment says. */
export interface WalSegment {
  /** From its metadata record: whose log this is. Undefined if the record was not reached. */
  readonly memberId: MemberId | undefined;
  readonly clusterId: ClusterId | undefined;
  /** The last entry written. Earlier entries of a higher index are void: raft overwrote them. */
  readonly lastEntry: LogPosition | undefined;
  /** The newest snapshot noted in it; (0, 0) stands at the head of a new log. */
  readonly lastSnapshot: LogPosition | undefined;
  /** The highest index known as committed when it was written; 0 if it says nothing. */
  readonly commit: bigint;
  /** The highest term it knew when it was written; may be above that of the last entry. 0 if it says nothing. */
  readonly term: bigint;
  readonly records: number;
  readonly end: WalEnd;
}

/**
 * Reads a segment from chunks of any size; `fileBytes` is the size of the whole file. Keeps at most one record in memory.
 *
 * A segment is a row of frames: 8 bytes of length (little-endian; if its top bit is set, its top byte holds the number
 * of padding bytes in three bits), a record `{type = 1, crc = 2, data = 3}`, padding to 8 bytes. A length of 0 is space allocated
 * ahead. The crc covers all data so far; a record of type crc, first in each segment, sets it.
 * Source: docs/etcd-facts.md, "write-ahead log".
 */
export class WalSegmentReader {
  readonly #fileBytes: number;
  #pending: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #crc = 0;
  #records = 0;
  #memberId: MemberId | undefined;
  #clusterId: ClusterId | undefined;
  #lastEntry: LogPosition | undefined;
  #lastSnapshot: LogPosition | undefined;
  #commit = 0n;
  #term = 0n;
  #end: WalEnd | undefined;

  constructor(fileBytes: number) {
    this.#fileBytes = fileBytes;
  }

  /** True when nothing that follows can matter: the caller stops reading. */
  get finished(): boolean {
    return this.#end !== undefined;
  }

  /** Takes the next bytes of the file. */
  feed(chunk: Uint8Array): void {
    if (this.#end !== undefined) return;
    const bytes = joined(this.#pending, chunk);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    while (this.#end === undefined && at + 8 <= bytes.length) {
      const length = view.getBigInt64(at, true);
      if (length === 0n) {
        this.#end = { kind: 'clean' };
        break;
      }
      const recordBytes = length & 0xffff_ffff_ffff_ffn;
      const padding = length < 0n ? (length >> 56n) & 7n : 0n;
      if (recordBytes + padding > BigInt(this.#fileBytes - this.#offset - 8)) {
        this.#end = { kind: 'torn', offset: this.#offset };
        break;
      }
      const frameBytes = 8 + Number(recordBytes + padding);
      if (at + frameBytes > bytes.length) break;
      const wrong = this.#frame(bytes.subarray(at + 8, at + 8 + Number(recordBytes)));
      if (wrong !== undefined) {
        this.#broken(wrong, bytes.subarray(at + 8, at + frameBytes));
        break;
      }
      this.#records++;
      this.#offset += frameBytes;
      at += frameBytes;
    }
    // A copy, also of a Buffer, whose slice() is none: the caller may use the chunk again.
    this.#pending = new Uint8Array(bytes.subarray(at));
  }

  /** What was read. Bytes that are left over are a torn frame. */
  result(): WalSegment {
    const torn: WalEnd = this.#pending.length > 0 ? { kind: 'torn', offset: this.#offset } : { kind: 'clean' };
    return {
      memberId: this.#memberId,
      clusterId: this.#clusterId,
      lastEntry: this.#lastEntry,
      lastSnapshot: this.#lastSnapshot,
      commit: this.#commit,
      term: this.#term,
      records: this.#records,
      end: this.#end ?? torn,
    };
  }

  /** Takes one frame; gives what is wrong with it, if anything is. */
  #frame(record: Uint8Array): string | undefined {
    const fields = readFields(record);
    if (fields === undefined) return 'a record does not parse';
    const type = Number(numberIn(fields, 1));
    const crc = Number(numberIn(fields, 2));
    if (type === recordTypes.crc) {
      if (this.#crc !== 0 && crc !== this.#crc) return wrongChecksum;
      this.#crc = crc;
      return undefined;
    }
    const data = bytesIn(fields, 3) ?? new Uint8Array(0);
    this.#crc = crc32c(data, this.#crc);
    return this.#crc === crc ? this.#record(type, data) : wrongChecksum;
  }

  #record(type: number, data: Uint8Array): string | undefined {
    const fields = readFields(data);
    if (fields === undefined) return `the content of a record of type ${type} does not parse`;
    switch (type) {
      case recordTypes.metadata:
        return this.#metadata(numberIn(fields, 1), numberIn(fields, 2));
      case recordTypes.entry:
        this.#lastEntry = { term: numberIn(fields, 2), index: numberIn(fields, 3) };
        return undefined;
      case recordTypes.state:
        this.#term = numberIn(fields, 1);
        this.#commit = numberIn(fields, 3);
        return undefined;
      case recordTypes.snapshot:
        this.#lastSnapshot = { term: numberIn(fields, 2), index: numberIn(fields, 1) };
        return undefined;
      default:
        return `unknown record type ${type}`;
    }
  }

  #metadata(memberId: bigint, clusterId: bigint): string | undefined {
    const differs = this.#memberId !== undefined && (this.#memberId !== memberId || this.#clusterId !== clusterId);
    if (differs) return 'it names two members';
    this.#memberId = memberId;
    this.#clusterId = clusterId;
    return undefined;
  }

  /** A record with a sector of zeros was being written when the machine went down: torn, which etcd repairs. Else it is damage. */
  #broken(why: string, frame: Uint8Array): void {
    this.#end = hasZeroSector(frame, this.#offset + 8)
      ? { kind: 'torn', offset: this.#offset }
      : { kind: 'corrupt', offset: this.#offset, why };
  }
}

/** Kinds of records. Source: etcd's `server/storage/wal/wal.go`. */
const recordTypes = { metadata: 1, entry: 2, state: 3, crc: 4, snapshot: 5 } as const;

const wrongChecksum = 'the checksum of a record is wrong';

/** The unit that a disk writes whole. Unit: bytes. */
const sectorBytes = 512;

/** True if any part of the frame that fills one sector (the first and last parts may be shorter) is all zeros. */
function hasZeroSector(frame: Uint8Array, fileOffset: number): boolean {
  let start = 0;
  while (start < frame.length) {
    const end = Math.min(start + sectorBytes - ((fileOffset + start) % sectorBytes), frame.length);
    if (frame.subarray(start, end).every((byte) => byte === 0)) return true;
    start = end;
  }
  return false;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
