/** @pure file: durable records, one line each. */

import { crc32Hex } from './crc32.ts';

/**
 * One durable record: a line of `CHECKSUM VERSION JSON`. The checksum covers version and JSON, the version says how the
 * JSON is meant. A reader tells four cases apart, because unreadable is never the same as absent.
 */
export type RecordReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'newer'; readonly version: number }
  | { readonly kind: 'damaged'; readonly why: string };

/** @pure The line for `value`, with its newline. */
export function encodeRecord(value: unknown, version: number): string {
  const body = `${version} ${JSON.stringify(value)}`;
  return `${crc32Hex(new TextEncoder().encode(body))} ${body}\n`;
}

/** @pure Reads one line (with or without its newline) that is of `version` or older. */
export function decodeRecord(content: Uint8Array | string | undefined, version: number): RecordReading {
  if (content === undefined) return { kind: 'absent' };
  const text = (typeof content === 'string' ? content : new TextDecoder().decode(content)).replace(/\n$/, '');
  const match = /^([0-9a-f]{8}) ((\d+) ([^\n]*))$/.exec(text);
  if (match === null) return { kind: 'damaged', why: text === '' ? 'it is empty' : 'it is not a record' };
  const [, checksum, body = '', found, json = ''] = match;
  if (crc32Hex(new TextEncoder().encode(body)) !== checksum) return { kind: 'damaged', why: 'its checksum is wrong' };
  if (Number(found) > version) return { kind: 'newer', version: Number(found) };
  try {
    return { kind: 'ok', value: JSON.parse(json) };
  } catch {
    return { kind: 'damaged', why: 'its JSON does not parse' };
  }
}
