// Goal: what a part may not do by itself is found by its text, with file and line.
// Method: the real script on a small tree that breaks one rule, and on one that breaks none.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

test.each([
  ['the time of this machine', 'export const now = new Date();'],
  ['the time of this machine as a text', 'export const now = Date();'],
  ['the time of this machine in ms', 'export const now = Date.now();'],
  ['a clock of the process', 'export const now = process.hrtime.bigint();'],
  ['chance', 'export const dice = Math.random();'],
])('%s is refused outside of its one place', (_what, line) => {
  const answer = checkLayers(`// a part\n${line}\n`);
  expect(answer).toContain('src/etcd/part.ts:2:');
  expect(answer).toContain('broken line');
});

test('a time that was given is made into a date anywhere', () => {
  expect(checkLayers('export const text = (ms: number) => new Date(ms).toISOString(); // new Date()\n')).toContain(
    'no broken line',
  );
});

function checkLayers(content: string): string {
  const root = mkdtempSync(join(tmpdir(), 'layers-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'src/etcd'), { recursive: true });
  writeFileSync(join(root, 'src/etcd/part.ts'), content);
  const script = join(import.meta.dirname, '../../scripts/check-layers.ts');
  try {
    return execFileSync(process.execPath, [script, root], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    return String((error as { readonly stderr: string }).stderr);
  }
}
