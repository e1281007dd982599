/** Writes segments of a write-ahead log as etcd does, for tests. */
import { crc32c } from '../../src/etcd/crc32c.ts';

/** One record: its type (1 metadata, 2 entry, 3 state, 4 crc, 5 snapshot) and the numbers in its fields 1, 2, 3. */
export interface WalRecord {
  readonly type: number;
  readonly numbers: readonly bigint[];
  /** Extra bytes in field 4, as the data of an entry. */
  readonly payload?: Uint8Array;
}

export const metadata = (memberId: bigint, clusterId: bigint): WalRecord => ({
  type: 1,
  numbers: [memberId, clusterId],
});
export const entry = (term: bigint, index: bigint, payload?: Uint8Array): WalRecord => {
  return { type: 2, numbers: [0n, term, index], ...(payload === undefined ? {} : { payload }) };
};
export const state = (term: bigint, commit: bigint): WalRecord => ({ type: 3, numbers: [term, 0n, commit] });
export const snapshot = (term: bigint, index: bigint): WalRecord => ({ type: 5, numbers: [index, term] });

/** A segment that begins with the checksum `crc` and has `spare` zero bytes at its end; also gives the checksum after it. */
export function segment(
  records: readonly WalRecord[],
  spare = 4096,
  crc = 0,
): { readonly bytes: Uint8Array; readonly crc: number } {
  const frames = [frame(4, crc, undefined)];
  let running = crc;
  for (const record of records) {
    const data = content(record);
    running = crc32c(data, running);
    frames.push(frame(record.type, running, data));
  }
  return { bytes: new Uint8Array(Buffer.concat([...frames, new Uint8Array(spare)])), crc: running };
}

function content({ numbers, payload }: WalRecord): Uint8Array {
  const fields = numbers.map((value, index) => field(index + 1, value));
  const bytes = payload === undefined ? [] : [varint(BigInt((4 << 3) | 2)), varint(BigInt(payload.length)), payload];
  return Buffer.concat([...fields, ...bytes]);
}

function frame(type: number, crc: number, data: Uint8Array | undefined): Uint8Array {
  const dataField = data === undefined ? [] : [varint(BigInt((3 << 3) | 2)), varint(BigInt(data.length)), data];
  const record = Buffer.concat([field(1, BigInt(type)), field(2, BigInt(crc)), ...dataField]);
  const padding = (8 - (record.length % 8)) % 8;
  const length = Buffer.alloc(8);
  const marked = padding === 0 ? 0n : BigInt(0x80 | padding) << 56n;
  length.writeBigUInt64LE(BigInt(record.length) | marked);
  return Buffer.concat([length, record, new Uint8Array(padding)]);
}

function field(number: number, value: bigint): Uint8Array {
  return Buffer.concat([varint(BigInt(number << 3)), varint(value)]);
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return Uint8Array.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}
