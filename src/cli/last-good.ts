import type { Config } from '../agent/config.ts';
import type { Disk } from '../base/disk.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { parseConfig } from './config-file.ts';
import { freezeConfig } from './config-resolve.ts';
import { readSource } from './config-source.ts';

const recordVersion = 1;
const defaultStateDir = '/var/lib/etcd-node-agent';

/** Where the last good configuration of a node is kept, compiled. */
export function lastGoodPath(stateDir: string): string {
  return `${stateDir}/config.last-good`;
}

/** Keeps `config` for a boot with a broken file. A disk that refuses is no reason not to run. */
export function saveLastGood(disk: Disk, config: Config, log: Log): void {
  try {
    disk.replace(lastGoodPath(config.stateDir), encodeRecord(config, recordVersion));
  } catch (error) {
    log.warn({ error: describeError(error) }, 'the last good configuration could not be written down');
  }
}

/**
 * The configuration that `file` last was when it was good. It lies in the state directory, which a broken file may still
 * name; else the usual one. Undefined, with the reason, if there is none that can be used.
 */
export function readLastGood(
  disk: Disk,
  file: string,
  text: string,
): { readonly config: Config } | { readonly config: undefined; readonly because: string } {
  const path = lastGoodPath(stateDirIn(text) ?? defaultStateDir);
  try {
    const reading = decodeRecord(disk.read(path), recordVersion);
    if (reading.kind === 'absent') return { config: undefined, because: `there is no ${path}` };
    if (reading.kind !== 'ok') return { config: undefined, because: `${path} is ${reading.kind}` };
    const config = completed(reading.value, template()) as Config;
    if (config.file !== file) return { config: undefined, because: `${path} was made from ${config.file}` };
    return { config: freezeConfig(config) };
  } catch (error) {
    return { config: undefined, because: `${path} cannot be used: ${describeError(error)}` };
  }
}

/** `stateDir` of a text that may be no YAML at all. */
function stateDirIn(text: string): string | undefined {
  const { content } = readSource(text);
  const named = typeof content === 'object' && content !== null ? Reflect.get(content, 'stateDir') : undefined;
  const found = typeof named === 'string' ? named : /^stateDir:\s*['"]?(\/[^'"\s#]+)/m.exec(text)?.[1];
  return found?.startsWith('/') ? found : undefined;
}

/** Every default as this version has it: what a record of an older agent does not know yet. */
function template(): Config {
  return parseConfig(
    [
      'node: {id: n}',
      'dataRoot: /d',
      "etcd: {binary: /b, peerUrl: 'http://127.0.0.1:2380', clientUrl: 'http://127.0.0.1:2379'}",
      'role: {file: /r}',
    ].join('\n'),
    'template',
  );
}

/** `stored` with what it lacks taken from `standard`. Throws if something is of another form. */
function completed(stored: unknown, standard: unknown): unknown {
  if (stored === undefined || standard === undefined) return stored ?? standard;
  if (!isSection(standard)) {
    if (typeof stored === typeof standard && Array.isArray(stored) === Array.isArray(standard)) return stored;
    throw new TypeError(`${JSON.stringify(stored)} is not of the form of ${JSON.stringify(standard)}`);
  }
  if (!isSection(stored)) throw new TypeError(`${JSON.stringify(stored)} is no section`);
  const keys = new Set([...Object.keys(standard), ...Object.keys(stored)]);
  return Object.fromEntries([...keys].map((key) => [key, completed(stored[key], standard[key])]));
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
