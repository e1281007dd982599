/** @pure file: the fields of a log line, made safe. */

import { AgentError } from '../base/errors.ts';
import type { LogFields } from '../base/log.ts';

/**
 * @pure The same facts without secrets and of bounded size: texts longer than 8 KiB are cut, lists end after 100 items,
 * nothing is nested deeper than 6. Bigints become decimal text, errors their messages. Names that the line itself uses are
 * moved aside, so that no field can pretend to be the level, the time or the message.
 */
export function cleanFields(fields: LogFields): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    const name = reserved.has(key) ? `${key}_` : key;
    define(clean, name, isSecretName(key) ? redacted : cleanValue(value, 0));
  }
  return clean;
}

const reserved: ReadonlySet<string> = new Set(['level', 'time', 'msg']);
const redacted = '[redacted]';
const maxTextLength = 8192;
const maxItems = 100;
const maxDepth = 6;

function cleanValue(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return cleanText(value);
    case 'bigint':
      return String(value);
    case 'function':
    case 'symbol':
      return undefined;
    case 'object':
      return value === null ? null : depth >= maxDepth ? '[deeper]' : cleanObject(value, depth + 1);
    default:
      return value;
  }
}

function cleanObject(value: object, depth: number): unknown {
  if (value instanceof Error) return cleanError(value, depth);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString();
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  if (Array.isArray(value)) {
    const items = value.slice(0, maxItems).map((item) => cleanValue(item, depth));
    return value.length > maxItems ? [...items, `${value.length - maxItems} more`] : items;
  }
  const clean: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value).slice(0, maxItems)) {
    define(clean, key, isSecretName(key) ? redacted : cleanValue(inner, depth));
  }
  return clean;
}

function cleanError(error: Error, depth: number): unknown {
  return {
    name: cleanText(error.name),
    message: cleanText(error.message),
    ...('code' in error ? { code: cleanValue(error.code, depth) } : {}),
    // An expected failure says all in its message; only what nobody expected needs the place in the code.
    ...(error instanceof AgentError || error.stack === undefined ? {} : { stack: cleanText(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: cleanValue(error.cause, depth) }),
  };
}

/** A plain assignment to `__proto__` would vanish. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Names under which secrets travel. `key` alone is one; `keys` and `keyPath` are not. */
function isSecretName(name: string): boolean {
  return /^(?:key|private_?key|pem)$|password|passwd|secret|token$|authorization|cookie|credential/i.test(name);
}

/** Secrets that are known by their form, wherever they stand. Each expression is linear: a log line must not take seconds. */
function cleanText(text: string): string {
  const open = text
    .slice(0, 4 * maxTextLength)
    .replace(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, redacted)
    .replace(/\b(Bearer|Basic) {1,8}[\w.~+/=-]{6,}/gi, `$1 ${redacted}`)
    .replace(/:\/\/[^/@:\s]{0,256}:[^/@\s]{0,1024}@/g, `://${redacted}@`);
  if (text.length <= maxTextLength) return open;
  return `${open.slice(0, maxTextLength)}… (${text.length} characters)`;
}
