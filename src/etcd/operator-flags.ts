/** @pure file: the flags that an operator sets, checked and spelled for one version of etcd. */

import { type FlagValueKind, managedFlags, type OperatorFlag, operatorFlags } from './flag-table.ts';
import { compareVersions, type EtcdVersion, formatVersion, parseVersion, sinceOneOf } from './known-versions.ts';

/** `etcd.flags` of the configuration: name, with or without `--` and `experimental-`, to value. */
export type OperatorFlagValues = Readonly<Record<string, string | number | boolean>>;

/** Why a flag cannot be used. */
export interface FlagProblem {
  /** As the operator wrote it. */
  readonly flag: string;
  readonly kind: 'managed' | 'unknown' | 'notInThisVersion' | 'badValue' | 'twice' | 'conflict';
  /** One sentence, which says what to do. */
  readonly message: string;
}

export interface OperatorFlagsReading {
  /** Spelled for the version; empty if there are problems. */
  readonly args: readonly string[];
  readonly problems: readonly FlagProblem[];
}

/** etcd's own defaults, which the agent writes out so that they stand in the recorded command line. Unit: ms. */
export const defaultHeartbeatMs = 100;
export const defaultElectionMs = 1_000;

/** @pure Checks all flags and spells them for `version`. */
export function readOperatorFlags(values: OperatorFlagValues, version: EtcdVersion): OperatorFlagsReading {
  const problems: FlagProblem[] = [];
  const plainArgs: string[] = [];
  const gates: string[] = [];
  const seen = new Set<string>();
  for (const [flag, value] of Object.entries(values)) {
    const name = canonicalName(flag);
    const problem = seen.has(name)
      ? { flag, kind: 'twice' as const, message: `${name} is set twice` }
      : problemOf(flag, name, value, version);
    seen.add(name);
    if (problem !== undefined) {
      problems.push(problem);
      continue;
    }
    const spelled = spell(name, value, version);
    if (spelled.gate !== undefined) gates.push(spelled.gate);
    else plainArgs.push(spelled.arg);
  }
  problems.push(...conflicts(values, gates));
  const args = gates.length === 0 ? plainArgs : [...plainArgs, `--feature-gates=${gates.join(',')}`];
  return problems.length === 0 ? { args, problems } : { args: [], problems };
}

/** @pure How an operator flag is written for `version`: `--name`, `--experimental-name`, a feature gate, or undefined if the version lacks it. */
export function spellingOf(name: string, version: EtcdVersion): string | undefined {
  const known = Object.hasOwn(operatorFlags, name) ? operatorFlags[name] : undefined;
  if (known === undefined) return undefined;
  if (known.gate !== undefined && sinceOneOf(version, ['3.6.0'])) return `--feature-gates=${known.gate}`;
  if (sinceOneOf(version, known.plainSince)) return `--${name}`;
  return sinceOneOf(version, known.experimentalSince) ? `--experimental-${name}` : undefined;
}

/** @pure The name in the table: without dashes in front and without `experimental-`. */
export function canonicalName(flag: string): string {
  return flag.replace(/^--?/, '').replace(/^experimental-/, '');
}

function problemOf(
  flag: string,
  name: string,
  value: string | number | boolean,
  version: EtcdVersion,
): FlagProblem | undefined {
  if (Object.hasOwn(managedFlags, name)) {
    return { flag, kind: 'managed', message: `${flag} is not for etcd.flags: ${managedFlags[name]}` };
  }
  const known = Object.hasOwn(operatorFlags, name) ? operatorFlags[name] : undefined;
  if (known === undefined) return { flag, kind: 'unknown', message: unknownMessage(flag, name) };
  if (spellingOf(name, version) === undefined) {
    const message = `etcd ${formatVersion(version)} has no flag ${name}; it came with ${firstVersion(known)}`;
    return { flag, kind: 'notInThisVersion', message };
  }
  const wanted = wrongValue(known.takes, value);
  return wanted === undefined ? undefined : { flag, kind: 'badValue', message: `${flag}: ${wanted}, not ${value}` };
}

function spell(
  name: string,
  value: string | number | boolean,
  version: EtcdVersion,
): { readonly arg: string; readonly gate?: string } {
  const spelling = spellingOf(name, version) ?? `--${name}`;
  if (spelling.startsWith('--feature-gates=')) {
    return { arg: '', gate: `${spelling.slice('--feature-gates='.length)}=${value}` };
  }
  return name === 'feature-gates' ? { arg: '', gate: String(value) } : { arg: `${spelling}=${value}` };
}

/** What a value should have been, or undefined if it is right. */
function wrongValue(takes: FlagValueKind, value: string | number | boolean): string | undefined {
  const text = String(value);
  if (/[\0\n\r]/.test(text)) return 'a value stands on one line';
  if (typeof takes === 'object') return takes.oneOf.includes(text) ? undefined : `one of ${takes.oneOf.join(', ')}`;
  switch (takes) {
    case 'count':
      return isCount(text) ? undefined : 'a whole number from 0 is wanted';
    case 'switch':
      return text === 'true' || text === 'false' ? undefined : 'true or false is wanted';
    case 'duration':
      return isDuration(text) ? undefined : 'a duration with its unit, such as 10m or 500ms, is wanted';
    case 'retention':
      return isCount(text) || isDuration(text) ? undefined : 'a number or a duration such as 1h is wanted';
    case 'gates':
      return /^\w+=(?:true|false)(?:,\w+=(?:true|false))*$/.test(text) ? undefined : 'Name=true,Other=false is wanted';
    case 'text':
      return typeof value === 'string' ? undefined : 'a text is wanted';
  }
}

/** Rules between flags, which etcd would refuse at its start. */
function conflicts(values: OperatorFlagValues, gates: readonly string[]): readonly FlagProblem[] {
  const found: FlagProblem[] = [];
  const heartbeat = numberOf(values, 'heartbeat-interval') ?? defaultHeartbeatMs;
  const election = numberOf(values, 'election-timeout') ?? defaultElectionMs;
  if (heartbeat < 1 || election < 5 * heartbeat || election > 50_000) {
    const message = `election-timeout (${election} ms) must be at least five times heartbeat-interval (${heartbeat} ms), which is at least 1 ms, and at most 50000 ms`;
    found.push({ flag: 'election-timeout', kind: 'conflict', message });
  }
  const retention = textOf(values, 'auto-compaction-retention');
  if (textOf(values, 'auto-compaction-mode') === 'revision' && retention !== undefined && !isCount(retention)) {
    const message = `auto-compaction-retention counts revisions in the mode "revision"; ${retention} is a duration`;
    found.push({ flag: 'auto-compaction-retention', kind: 'conflict', message });
  }
  const names = gates.flatMap((gate) => gate.split(',').map((item) => item.split('=')[0] ?? ''));
  const double = names.find((name, index) => names.indexOf(name) !== index);
  if (double !== undefined) {
    found.push({ flag: 'feature-gates', kind: 'conflict', message: `the feature gate ${double} is set twice` });
  }
  return found;
}

function textOf(values: OperatorFlagValues, name: string): string | undefined {
  const found = Object.entries(values).find(([flag]) => canonicalName(flag) === name);
  return found === undefined ? undefined : String(found[1]);
}

function numberOf(values: OperatorFlagValues, name: string): number | undefined {
  const text = textOf(values, name);
  return text !== undefined && isCount(text) ? Number(text) : undefined;
}

function isCount(text: string): boolean {
  return /^\d+$/.test(text) && Number.isSafeInteger(Number(text));
}

function isDuration(text: string): boolean {
  return /^(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|ms|s|m|h))+)$/.test(text);
}

function firstVersion(flag: OperatorFlag): string {
  const all = [...flag.plainSince, ...flag.experimentalSince, ...(flag.gate === undefined ? [] : ['3.6.0'])];
  const parsed = all.flatMap((text) => parseVersion(text) ?? []).sort(compareVersions);
  return parsed[0] === undefined ? 'no version' : formatVersion(parsed[0]);
}

function unknownMessage(flag: string, name: string): string {
  const names = Object.keys(operatorFlags);
  const nearest = names.map((other) => ({ other, steps: distance(name, other) })).sort((a, b) => a.steps - b.steps)[0];
  const hint =
    nearest !== undefined && nearest.steps <= Math.max(2, name.length / 4) ? `; ${nearest.other} is meant?` : '';
  return `${flag} is no flag of etcd that this agent knows${hint}`;
}

/** How many letters must be added, dropped or changed to turn one word into the other. */
function distance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const change = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, change));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
