/** Lines of etcd's log as a real etcd of that version wrote them, with this run's ids, addresses and times put in. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAtLeast, type Version } from './refusals.ts';

const directory = join(import.meta.dirname, '../../fixtures/etcd-logs');

/** What is put into a line; a field that the version does not print is left out. */
export type LineFields = Readonly<Record<string, unknown>>;

/** The recorded lines by version. Reading them takes some 10 ms: runs of the simulator share one book. */
export class LogBook {
  readonly #pages = new Map<string, Page>();

  /** The line that begins with `like`, with `message` as its text if that names ids. Throws if no such line was recorded. */
  line(version: Version, wallMs: number, like: string, fields: LineFields, message?: string): string {
    const sample = this.#sample(version, like);
    if (sample === undefined) throw new Error(`no recorded line of etcd ${version.join('.')} says "${like}"`);
    const line: Record<string, unknown> = { ...sample, ts: new Date(wallMs).toISOString() };
    if (message !== undefined) line['msg'] = message;
    for (const [name, value] of Object.entries(fields)) if (name in sample) line[name] = value;
    return JSON.stringify(line);
  }

  /** The text that Go prints after a panic: `panic: …` and the goroutine, for a panic in `frame`. */
  trace(version: Version, frame: string): readonly string[] {
    const trace = this.#page(recordedFor(version)).traces.find((lines) => lines.some((line) => line.includes(frame)));
    if (trace === undefined) throw new Error(`no recorded panic of etcd ${version.join('.')} has ${frame}`);
    return trace;
  }

  /** A line that was not recorded for a version is taken from another: the texts are the same. */
  #sample(version: Version, like: string): Readonly<Record<string, unknown>> | undefined {
    for (const recorded of [recordedFor(version), ...recordedVersions]) {
      const sample = this.#page(recorded).lines.get(like);
      if (sample !== undefined) return sample;
    }
    return undefined;
  }

  #page(recorded: string): Page {
    const known = this.#pages.get(recorded);
    if (known !== undefined) return known;
    const page = readPage(recorded);
    this.#pages.set(recorded, page);
    return page;
  }
}

interface Page {
  readonly lines: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  readonly traces: readonly (readonly string[])[];
}

const recordedVersions = ['3.5.30', '3.5.16', '3.4.23'];

/** Later lines were compared by their texts: docs/etcd-facts.md, "message stability". */
function recordedFor(version: Version): string {
  if (!isAtLeast(version, [3, 5, 0])) return '3.4.23';
  return isAtLeast(version, [3, 5, 20]) ? '3.5.30' : '3.5.16';
}

function readPage(version: string): Page {
  const lines = new Map<string, Readonly<Record<string, unknown>>>();
  const traces: (readonly string[])[] = [];
  for (const file of readdirSync(directory).sort()) {
    if (!file.startsWith(`${version}-`)) continue;
    const raw = readFileSync(join(directory, file), 'utf8').trimEnd().split('\n');
    for (const line of raw) {
      const parsed = parse(line);
      if (parsed === undefined) continue;
      const key = keyOf(parsed);
      if (!lines.has(key)) lines.set(key, parsed);
    }
    const begins = raw.findIndex((line) => line.startsWith('panic: '));
    if (begins >= 0) traces.push(raw.slice(begins).filter((line) => !line.startsWith('{')));
  }
  return { lines, traces };
}

/** The message without what differs from line to line; with the error where that tells what happened. */
function keyOf(line: Readonly<Record<string, unknown>>): string {
  const message = String(line['msg']);
  const raft = /^raft\.node: \S+ (elected leader|changed leader|lost leader)/.exec(message)?.[1];
  if (raft !== undefined) return raft;
  if (message.startsWith('tocommit(')) return 'tocommit';
  const error = typeof line['error'] === 'string' ? line['error'] : '';
  if (message.startsWith('peer became inactive'))
    return error.includes('permanently removed') ? 'peer says removed' : message;
  if (message === 'listener failed')
    return error.includes('server is stopping') ? 'listener failed: stopping' : message;
  return message;
}

function parse(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
