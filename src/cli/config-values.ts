import * as z from 'zod';
import { isForbiddenHost, isWildcard, parseEndpoint, parseListenAddress } from './endpoint.ts';
import { printable } from './printable.ts';
import { parseDuration, parseSize } from './units.ts';

/** How a value of the file reads in an error: cut, escaped, and without the credentials of a URL. */
export function shown(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = printable(String(value).replace(/\/\/[^/@\s]*@/g, '//…@'), 80);
  return typeof value === 'string' ? `'${text}'` : text;
}

/** The error of a field of which `want` is wanted: says what stands there, or that nothing does. */
export function wants(want: string): { error: (issue: { input?: unknown }) => string } {
  return {
    error: ({ input }) => (input === undefined ? `is missing; want ${want}` : `is ${shown(input)}; want ${want}`),
  };
}

/** A text of one form. A number is refused even where its digits would fit: YAML reads 3.10 as 3.1. */
export function textOf(pattern: RegExp, want: string) {
  return z.string(wants(want)).regex(pattern, wants(want));
}

/** A name that is safe as a part of a path and of a DNS name. */
export const label = () =>
  textOf(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'a name of 1 to 63 lower-case letters, digits and -, such as n1');

/**
 * An absolute path in its plain form. `..`, `.`, doubled slashes and control characters are refused and not tidied up:
 * what is checked must be what is used. A space may stand in it.
 */
export function absolutePath(example: string) {
  const want = `an absolute path without .., . and doubled slashes, such as ${example}`;
  return z
    .string(wants(want))
    .regex(/^\/[^/]/, wants(want))
    .max(1024, wants(want))
    .refine(isPlainPath, wants(want));
}

/** A time between two bounds, as text; in ms afterwards. */
export function duration(standard: string, least: string, most: string) {
  const want = `a duration such as ${standard}, from ${least} to ${most}`;
  return quantity(want, /^\d{1,12}(?:ms|s|m|h|d)$/, parseDuration, [least, most]).prefault(standard);
}

/** A size between two bounds, as text; in bytes afterwards. */
export function size(standard: string, least: string, most: string) {
  const want = `a size such as ${standard}, from ${least} to ${most}`;
  return quantity(want, /^\d{1,12}(?:B|KiB|MiB|GiB)$/, parseSize, [least, most]).prefault(standard);
}

/** A whole number between two bounds. */
export function whole(standard: number, least: number, most: number) {
  const want = `a whole number from ${least} to ${most}`;
  return z.int(wants(want)).min(least, wants(want)).max(most, wants(want)).default(standard);
}

/** The URL of a member, as others dial it. */
export function dialledUrl(example: string) {
  const want = `http:// or https:// with a lower-case host and a port and nothing else, such as ${example}`;
  return z
    .string(wants(want))
    .refine((text) => parseEndpoint(text) !== undefined, { ...wants(want), abort: true })
    .refine((text) => !isWildcard(parseEndpoint(text)?.host ?? ''), {
      ...wants('an address that others can dial, not one that means all addresses'),
    })
    .refine((text) => !isForbiddenHost(parseEndpoint(text)?.host ?? ''), {
      ...wants('an address of this node: link-local and multicast addresses are refused'),
    });
}

/** A URL that etcd listens on: an address or localhost, since etcd binds no names. */
export function listenUrl(example: string) {
  const want = `http:// or https:// with an address (no name) and a port and nothing else, such as ${example}`;
  return z.string(wants(want)).refine((text) => canListen(text), wants(want));
}

/** True if etcd can bind this URL. */
export function canListen(text: string): boolean {
  const endpoint = parseEndpoint(text);
  return (
    endpoint !== undefined && (endpoint.isAddress || endpoint.host === 'localhost') && !isForbiddenHost(endpoint.host)
  );
}

/** `127.0.0.1:9100`, read. */
export function listenAddress() {
  const want = 'an address and a port such as 127.0.0.1:9100 or [::1]:9100';
  return z
    .string(wants(want))
    .refine((text) => parseListenAddress(text) !== undefined, wants(want))
    .transform((text) => parseListenAddress(text) ?? { host: '', port: 0 });
}

/** Where reports are posted: http or https, a path is welcome, credentials and fragments are not. */
export function webhookUrl() {
  const want =
    'an http:// or https:// URL without user name, password and fragment, such as https://hooks.example.com/etcd';
  return z.string(wants(want)).refine(isWebhookUrl, wants(want));
}

function isWebhookUrl(text: string): boolean {
  const match = /^(https?:\/\/)([^/?#@\\\s]+)((?:\/[\x21-\x7e]*)?)$/.exec(text);
  if (match === null || text.includes('#') || text.length > 2048) return false;
  const [, scheme = '', authority = ''] = match;
  const withPort = /:\d+$/.test(authority) ? authority : `${authority}:${scheme === 'https://' ? 443 : 80}`;
  const endpoint = parseEndpoint(`${scheme}${withPort}`);
  return endpoint !== undefined && !isForbiddenHost(endpoint.host) && !isWildcard(endpoint.host);
}

function isPlainPath(path: string): boolean {
  const parts = path.split('/').slice(1);
  return (
    printable(path) === path &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..' && part.length <= 255)
  );
}

function quantity(
  want: string,
  pattern: RegExp,
  parse: (text: string) => number | undefined,
  bounds: readonly [least: string, most: string],
) {
  const [least = 0, most = 0] = bounds.map((bound) => parse(bound) ?? 0);
  return z
    .string(wants(want))
    .regex(pattern, wants(want))
    .refine((text) => inside(parse(text), least, most), wants(want))
    .transform((text) => parse(text) ?? least);
}

function inside(value: number | undefined, least: number, most: number): boolean {
  return value !== undefined && value >= least && value <= most;
}
