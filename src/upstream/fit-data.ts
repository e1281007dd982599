/** @pure file: data that is too large for one fact is cut where it is longest, and says so. */

import type { JsonObject } from './fact.ts';

/**
 * @pure The same data in at most `maxBytes` of JSON: long texts and long lists are shortened, the longest first, and each
 * place that was cut says how much is gone. If that does not help, the head of the JSON text is kept as `cutJson`.
 */
export function fitData(data: JsonObject, maxBytes: number): JsonObject {
  if (jsonBytes(data) <= maxBytes) return data;
  for (let keep = 16_384; keep >= 16; keep = keep / 2) {
    const shorter = shorten(data, keep);
    if (isObject(shorter) && jsonBytes(shorter) <= maxBytes) return shorter;
  }
  const text = JSON.stringify(data);
  // A character takes up to six bytes once it is escaped in JSON, and then a quote of its own.
  for (let keep = maxBytes; keep > 0; keep = Math.floor(keep / 2)) {
    const head = { cutJson: head16(text, keep), cutCharacters: text.length };
    if (jsonBytes(head) <= maxBytes) return head;
  }
  return {};
}

/** @pure The size of a value as JSON in UTF-8. Unit: bytes. */
export function jsonBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).byteLength;
}

function shorten(value: unknown, keep: number): unknown {
  if (typeof value === 'string') {
    return value.length <= keep ? value : `${head16(value, keep)}… (cut: ${value.length} characters)`;
  }
  if (Array.isArray(value)) {
    // The head and the tail of a list of log lines both matter; the tail more.
    if (value.length <= keep) return value.map((item) => shorten(item, keep));
    const tail = Math.ceil(keep / 2);
    return [
      ...value.slice(0, keep - tail).map((item) => shorten(item, keep)),
      `… (cut: ${value.length - keep} of ${value.length} items)`,
      ...value.slice(value.length - tail).map((item) => shorten(item, keep)),
    ];
  }
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shorten(item, keep)]));
  return value;
}

/** The first `length` UTF-16 units, without half a surrogate pair at the end. */
function head16(text: string, length: number): string {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
