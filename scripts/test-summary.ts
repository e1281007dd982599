/**
 * Sums up the results of several test runs: how many tests ran on which etcd version, which did not run and why, which
 * failed with the start of what they said, and the one line `N passed, N failed, N skipped`. Ends with 1 if no test ran or
 * one failed.
 *
 *   scripts/node scripts/test-summary.ts RESULTS.json…
 */
import { existsSync, readFileSync } from 'node:fs';

interface Assertion {
  readonly fullName: string;
  readonly status: 'passed' | 'failed' | 'skipped' | 'pending' | 'todo' | 'disabled';
  readonly failureMessages?: readonly string[] | null;
}

/** So much of what a failed test said is repeated at the end, where a reader of a long log looks first. */
const FAILURE_LINES = 30;

interface Results {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly Assertion[];
  }[];
}

let passed = 0;
let failed = 0;
const skipped: string[] = [];
const failures: string[] = [];
const byVersion = new Map<string, number>();
const faults = new Set<string>();

for (const path of process.argv.slice(2)) {
  if (!existsSync(path)) continue;
  const results = JSON.parse(readFileSync(path, 'utf8')) as Results;
  for (const file of results.testResults) {
    // A file that fails before its first test (an import error, say) has no assertion, and is a failure all the same.
    if (file.assertionResults.length === 0 && file.status === 'failed') fail(file.name, [file.message ?? '']);
    for (const test of file.assertionResults) count(test);
  }
}

for (const [version, tests] of [...byVersion].sort()) console.log(`on etcd ${version}: ${tests} tests`);
console.log(`faults of the catalogue named in passing tests: ${faults.size} (${[...faults].sort().join(' ')})`);
for (const name of skipped) console.log(`not run: ${name}`);
for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

function count(test: Assertion): void {
  if (test.status === 'passed') passed++;
  else if (test.status === 'failed') fail(test.fullName, test.failureMessages ?? []);
  else skipped.push(test.fullName);
  if (test.status !== 'passed') return;
  const version = /\b(3\.\d+\.\d+)\b/.exec(test.fullName)?.[1];
  if (version !== undefined) byVersion.set(version, (byVersion.get(version) ?? 0) + 1);
  for (const match of test.fullName.matchAll(/\b([ACKNRX]\d{2})\b/g)) faults.add(match[1] ?? '');
}

function fail(name: string, messages: readonly string[]): void {
  failed++;
  const lines = messages.flatMap((message) => message.split('\n')).slice(0, FAILURE_LINES);
  failures.push([`failed: ${name}`, ...lines.map((line) => `  ${line.slice(0, 400)}`)].join('\n'));
}
