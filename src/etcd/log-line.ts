/** @pure file: one line of etcd's log, of any version. */

/** How bad a line is. `none` where the line does not say. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'none';

/**
 * What kind of line it is. `zap`: JSON, of 3.5 and later and of 3.4 with `--logger=zap`. `capnslog`: the old text, which 3.4 prints
 * before its logger exists. `grpc`: the library's own. `torn`: JSON that was cut or damaged. `text`: all else: traces, usage, binary.
 */
export type LogFormat = 'zap' | 'capnslog' | 'grpc' | 'torn' | 'text';

/** One line. None is lost: what cannot be read is `torn` or `text`, with all of it in `raw`. */
export interface LogLine {
  readonly format: LogFormat;
  readonly level: LogLevel;
  /** etcd's own word for the level: it prints `panic` for a panic that may yet be recovered, and `fatal` only when it ends. */
  readonly etcdLevel: string;
  readonly message: string;
  /** As it stands in the line; empty if it has none. etcd's clock, not ours. */
  readonly at: string;
  /** Source file (zap) or package (capnslog); empty if it has none. */
  readonly source: string;
  /** The other fields of a JSON line. Numbers above 2^53 are rounded: identifiers are text in etcd's log. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly raw: string;
}

/** @pure Reads one line, with or without its line end. Bytes that are no UTF-8 become U+FFFD; leading NULs (a hole in the file) are dropped. */
export function parseLogLine(line: string | Uint8Array): LogLine {
  const decoded = typeof line === 'string' ? line : new TextDecoder().decode(line);
  const raw = decoded.replace(/\r?\n$/, '').replace(/^\0+/, '');
  return zapLine(raw) ?? capnslogLine(raw) ?? grpcLine(raw) ?? tornLine(raw) ?? textLine(raw);
}

/** @pure The text in field `name`, or undefined if there is none or it is no text. */
export function textField(line: LogLine, name: string): string | undefined {
  const value = Object.hasOwn(line.fields, name) ? line.fields[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** @pure The texts in field `name`; empty if it is no list. */
export function listField(line: LogLine, name: string): readonly string[] {
  const value = Object.hasOwn(line.fields, name) ? line.fields[name] : undefined;
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function zapLine(raw: string): LogLine | undefined {
  if (!raw.startsWith('{') || !raw.endsWith('}')) return undefined;
  const parsed = parseObject(raw);
  if (parsed === undefined || typeof parsed['level'] !== 'string') return undefined;
  const { level, ts, caller, msg, ...fields } = parsed;
  const message = typeof msg === 'string' ? msg : '';
  const at = typeof ts === 'string' || typeof ts === 'number' ? String(ts) : '';
  const source = typeof caller === 'string' ? caller : '';
  const etcdLevel = String(level).toLowerCase();
  return { format: 'zap', level: zapLevels[etcdLevel] ?? 'none', etcdLevel, message, at, source, fields, raw };
}

/** `2026-12-01 04:19:37.809306 E | etcdmain: error verifying flags, …` */
function capnslogLine(raw: string): LogLine | undefined {
  const match = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) ([CEWNIDT]) \| (?:([^:\s]+): )?([\s\S]*)$/.exec(raw);
  if (match === null) return undefined;
  const [, at = '', letter = '', source = '', message = ''] = match;
  const level = capnslogLevels[letter] ?? 'none';
  return { format: 'capnslog', level, etcdLevel: letter, message, at, source, fields: {}, raw };
}

/** `WARNING: 2026/12/01 04:25:35 [core] grpc: …`, and etcd 3.4's `[WARNING] Deprecated …`. */
function grpcLine(raw: string): LogLine | undefined {
  const match = /^(?:(INFO|WARNING|ERROR|FATAL): (\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d)|\[(WARNING)\]) ([\s\S]*)$/.exec(
    raw,
  );
  if (match === null) return undefined;
  const [, word, at = '', bracketed, message = ''] = match;
  const etcdLevel = word ?? bracketed ?? '';
  const level = grpcLevels[etcdLevel] ?? 'none';
  return {
    format: 'grpc',
    level,
    etcdLevel,
    message,
    at,
    source: bracketed === undefined ? 'grpc' : '',
    fields: {},
    raw,
  };
}

/** A JSON line of which only a part is there: what can be read of it is read. Its head may be missing as well. */
function tornLine(raw: string): LogLine | undefined {
  if (!/^\{\s*"level"\s*:/.test(raw) && !/"caller":"[^"]*","msg":"/.test(raw)) return undefined;
  const etcdLevel = quoted(raw, 'level') ?? '';
  const fields: Record<string, unknown> = {};
  for (const name of ['error', 'local-member-id', 'cluster-id']) {
    const value = quoted(raw, name);
    if (value !== undefined) fields[name] = value;
  }
  return {
    format: 'torn',
    level: zapLevels[etcdLevel] ?? 'none',
    etcdLevel,
    message: quoted(raw, 'msg') ?? '',
    at: quoted(raw, 'ts') ?? '',
    source: quoted(raw, 'caller') ?? '',
    fields,
    raw,
  };
}

function textLine(raw: string): LogLine {
  return { format: 'text', level: 'none', etcdLevel: '', message: raw, at: '', source: '', fields: {}, raw };
}

/** The whole text of one field in damaged JSON; undefined if it is not all there. */
function quoted(raw: string, name: string): string | undefined {
  const match = new RegExp(`"${name}":("(?:[^"\\\\]|\\\\.)*")`).exec(raw);
  if (match?.[1] === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(match[1]);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

function parseObject(raw: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(raw);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** `dpanic` panics only in etcd's development builds. */
const zapLevels: Readonly<Record<string, LogLevel>> = {
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  error: 'error',
  dpanic: 'error',
  panic: 'fatal',
  fatal: 'fatal',
};

const capnslogLevels: Readonly<Record<string, LogLevel>> = {
  T: 'debug',
  D: 'debug',
  I: 'info',
  N: 'info',
  W: 'warn',
  E: 'error',
  C: 'fatal',
};

const grpcLevels: Readonly<Record<string, LogLevel>> = {
  INFO: 'info',
  WARNING: 'warn',
  ERROR: 'error',
  FATAL: 'fatal',
};
