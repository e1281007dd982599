/** @pure file: how the flags of an etcd that runs differ from those that this agent would start it with. */

import { canonicalName } from '../etcd/operator-flags.ts';

/** Where data and log lie and how a member without a log begins: an adoption settles these itself. */
const settled: ReadonlySet<string> = new Set([
  'data-dir',
  'initial-cluster',
  'initial-cluster-state',
  'initial-cluster-token',
  'logger',
  'log-outputs',
  'log-level',
  'log-format',
]);

/**
 * @pure One sentence for each flag of `theirs` (the running process, its binary first) that `ours` lacks or gives another
 * value. Flags that only we set are etcd's defaults written out, or follow from the configuration.
 */
export function flagDrift(theirs: readonly string[], ours: readonly string[]): readonly string[] {
  const running = flagsOf(theirs);
  const wanted = flagsOf(ours);
  const file = running.get('config-file');
  if (file !== undefined) return [`its flags stand in ${file}, which is not compared`];
  return [...running].flatMap(([name, value]) => {
    const own = wanted.get(name);
    if (settled.has(name) || own === value) return [];
    return own === undefined
      ? [`it runs with --${name}=${value}, which is not in etcd.flags`]
      : [`it runs with --${name}=${value}, and would be started with --${name}=${own}`];
  });
}

/**
 * @pure One sentence for each flag that differs between what we started (`running`) and what we would start now (`next`). Where
 * the data lies and how a member begins does not count: etcd reads that once.
 */
export function flagChanges(running: readonly string[], next: readonly string[]): readonly string[] {
  const [before, after] = [flagsOf(running), flagsOf(next)];
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [was, will] = [before.get(name), after.get(name)];
    if (was === will || bootstrap.has(name)) return [];
    return [`--${name} is ${was ?? 'not set'} and becomes ${will ?? 'not set'}`];
  });
}

/** Read by etcd only while it has no log. */
const bootstrap: ReadonlySet<string> = new Set(['initial-cluster', 'initial-cluster-state', 'initial-cluster-token']);

/** `--a=b`, `--a b`, `-a=b` and `--a`, by name; a flag that stands twice counts as etcd takes it: the last. */
function flagsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (const [index, word] of words.entries()) {
    const [, name, value] = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) continue;
    const next = words[index + 1];
    flags.set(canonicalName(name), value ?? (next === undefined || next.startsWith('-') ? 'true' : next));
  }
  return flags;
}
