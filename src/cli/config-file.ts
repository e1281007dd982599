import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import type * as z from 'zod';
import type { Config } from '../agent/config.ts';
import { describeError, errnoOf } from '../base/errors.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { resolveConfig } from './config-resolve.ts';
import { type CheckFlags, rulesBrokenBy } from './config-rules.ts';
import { fileSchema } from './config-schema.ts';
import { type Issue, readSource, type Source } from './config-source.ts';
import { hintForUnknownKey } from './config-suggest.ts';
import { printable } from './printable.ts';

/** What reading a configuration may be given beside the file. */
export interface ConfigOptions {
  /** Judges `etcd.flags`; the table of etcd's flags provides it. Without it only what never works is refused. */
  readonly checkFlags?: CheckFlags;
}

/**
 * Reads one YAML file. The same file gives the same Config, whatever the machine looks like: what must be seen on the
 * machine is checked by config-machine.ts. Throws ConfigError, which names everything that is wrong at once.
 */
export function loadConfig(file: string, options: ConfigOptions = {}): Config {
  const absolute = resolve(file);
  return parseConfig(readText(absolute), absolute, options);
}

/** The text of a file that may be wrong; empty if it cannot be read. */
export function readTextOrNothing(file: string): string {
  try {
    return readText(resolve(file));
  } catch (error) {
    if (error instanceof ConfigError) return '';
    throw error;
  }
}

/** {@link loadConfig} for a text that is already here. `file` is only named. */
export function parseConfig(text: string, file: string, options: ConfigOptions = {}): Config {
  if (text.length > maxFileBytes) throw unreadable(file, tooLong);
  const source = readSource(text);
  if (source.problems.length > 0) {
    throw new ConfigError(
      source.problems.map(({ line, column, message }) => ({
        file,
        line,
        column,
        path: '',
        message: printable(message, 400),
      })),
    );
  }
  const parsed = fileSchema.safeParse(source.content ?? {});
  const issues = [...(parsed.error?.issues ?? []).flatMap(issuesOf), ...rulesBrokenBy(source.content)];
  if (parsed.success && issues.length === 0) {
    const config = resolveConfig(file, parsed.data);
    const { flags, version } = config.etcd;
    for (const { flag, problem } of options.checkFlags?.(flags, version) ?? []) {
      issues.push({ path: ['etcd', 'flags', flag], message: problem, atKey: true });
    }
    if (issues.length === 0) return config;
  }
  throw new ConfigError(problemsOf(issues, source, file));
}

/**
 * `runDir` of a configuration that may be wrong elsewhere; undefined if the file leaves it out. Throws ConfigError if the file
 * cannot be read, or is so broken that it does not say: the agent that runs may be on any socket then.
 */
export function readRunDir(file: string): string | undefined {
  const text = readText(resolve(file));
  const { content, problems } = readSource(text);
  const named: unknown = typeof content === 'object' && content !== null ? Reflect.get(content, 'runDir') : undefined;
  const runDir = named ?? /^runDir:\s*['"]?(\/[^'"\s#]+)/m.exec(text)?.[1];
  if (typeof runDir === 'string' && runDir.startsWith('/')) return runDir;
  if (runDir === undefined && problems.length === 0) return undefined;
  const broken = problems.map((one) => ({ file, ...one, path: '', message: printable(one.message, 400) }));
  const notAPath = { file, line: 1, column: 1, path: 'runDir', message: 'is no absolute path' };
  throw new ConfigError(broken.length > 0 ? broken : [notAPath], socketHint);
}

const socketHint =
  'It does not say on which socket its agent runs. Name that with --socket PATH, or ETCD_NODE_AGENT_SOCKET; the default one may be of another agent.';

/** No configuration is longer; an endless file is not read to its end, and hostile YAML of this size parses in about a second. Unit: bytes. */
const maxFileBytes = 64 * 1024;

function readText(file: string): string {
  try {
    const bytes = readAtMost(file, maxFileBytes + 1);
    if (bytes.length > maxFileBytes) throw new Error(tooLong);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8' : explain(error);
    throw unreadable(file, why);
  }
}

const tooLong = `it is longer than ${maxFileBytes / 1024} KiB`;

function unreadable(file: string, why: string): ConfigError {
  return new ConfigError([{ file, line: 0, column: 0, path: '', message: `cannot be read: ${why}` }]);
}

function explain(error: unknown): string {
  if (errnoOf(error) === 'ENOENT') return 'there is no such file';
  if (errnoOf(error) === 'EACCES') return 'permission denied';
  return describeError(error);
}

function readAtMost(file: string, limit: number): Buffer {
  const fd = openSync(file, 'r');
  try {
    if (!fstatSync(fd).isFile()) throw new Error('it is no file');
    const buffer = Buffer.alloc(limit);
    let length = 0;
    for (let read = -1; read !== 0 && length < limit; length += read)
      read = readSync(fd, buffer, length, limit - length, null);
    return buffer.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

/** zod reports unknown keys at the mapping that has them, all in one; an operator wants each where it stands. */
function issuesOf(issue: z.core.$ZodIssue): readonly Issue[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: [...issue.path, key],
      message: `is no key of this file; ${hintForUnknownKey(issue.path, key)}`,
      atKey: true,
    }));
  }
  if (issue.code === 'invalid_key') {
    return [{ path: issue.path, message: issue.issues[0]?.message ?? issue.message, atKey: true }];
  }
  return [{ path: issue.path, message: issue.message }];
}

/** In the order of the file; the first word on each field is enough. */
function problemsOf(issues: readonly Issue[], source: Source, file: string): readonly ConfigProblem[] {
  const seen = new Set<string>();
  const problems: ConfigProblem[] = [];
  for (const issue of issues) {
    const path = printable(issue.path.map(String).join('.'), 200);
    if (seen.has(path)) continue;
    seen.add(path);
    problems.push({ file, ...source.locate(issue.path, issue.atKey), path, message: issue.message });
  }
  return problems.sort((one, other) => one.line - other.line || one.column - other.column);
}
