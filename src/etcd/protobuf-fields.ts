/** @pure file: the few lines of protobuf that etcd's write-ahead log needs. */

/** One field as it stands on the wire. */
export type WireField =
  | { readonly number: number; readonly kind: 'varint'; readonly value: bigint }
  | { readonly number: number; readonly kind: 'bytes'; readonly value: Uint8Array };

/** @pure The fields of one message in their order, or undefined if the bytes are no whole message. Fixed-size fields are skipped. */
export function readFields(bytes: Uint8Array): readonly WireField[] | undefined {
  const fields: WireField[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const tag = readVarint(bytes, offset);
    if (tag === undefined) return undefined;
    offset = tag.next;
    const number = Number(tag.value >> 3n);
    const wireType = Number(tag.value & 7n);
    if (number === 0) return undefined;
    if (wireType === 0) {
      const varint = readVarint(bytes, offset);
      if (varint === undefined) return undefined;
      fields.push({ number, kind: 'varint', value: varint.value });
      offset = varint.next;
    } else if (wireType === 2) {
      const length = readVarint(bytes, offset);
      if (length === undefined || length.value > BigInt(bytes.length - length.next)) return undefined;
      const end = length.next + Number(length.value);
      fields.push({ number, kind: 'bytes', value: bytes.subarray(length.next, end) });
      offset = end;
    } else if (wireType === 1 || wireType === 5) {
      offset += wireType === 1 ? 8 : 4;
      if (offset > bytes.length) return undefined;
    } else {
      return undefined;
    }
  }
  return fields;
}

/** @pure The last number in field `number`, or 0: an absent number is 0 in every message that we read. */
export function numberIn(fields: readonly WireField[], number: number): bigint {
  let found = 0n;
  for (const field of fields) if (field.number === number && field.kind === 'varint') found = field.value;
  return found;
}

/** @pure The last bytes in field `number`, or undefined if there are none. */
export function bytesIn(fields: readonly WireField[], number: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (const field of fields) if (field.number === number && field.kind === 'bytes') found = field.value;
  return found;
}

function readVarint(bytes: Uint8Array, start: number): { readonly value: bigint; readonly next: number } | undefined {
  let value = 0n;
  for (let index = 0; index < 10; index++) {
    const byte = bytes[start + index];
    if (byte === undefined) return undefined;
    value |= BigInt(byte & 0x7f) << BigInt(7 * index);
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), next: start + index + 1 };
  }
  return undefined;
}
