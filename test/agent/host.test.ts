// Goal: C26 a file that cannot be looked at is a problem to be named, never the end of the agent.
// Method: the real host on paths that answer with errors which are not "absent".
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { realHost } from '../../src/agent/host.ts';

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'host-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test('a file and its successor differ, and what is not there is absent', () => {
  const path = join(directory(), 'file');
  expect(realHost.fingerprint(path)).toBe('absent');
  writeFileSync(path, 'one');
  const one = realHost.fingerprint(path);
  writeFileSync(path, 'other');
  expect(realHost.fingerprint(path)).not.toBe(one);
});

test('a loop of links is told by its name, and is another state than absent', () => {
  const path = join(directory(), 'loop');
  symlinkSync(path, path);
  expect(realHost.fingerprint(path)).toBe('ELOOP');
  expect(realHost.fingerprint(join(path, 'below'))).toBe('ELOOP');
});

test('so is a name that no file can have', () => {
  expect(realHost.fingerprint(join(directory(), 'x'.repeat(300)))).toBe('ENAMETOOLONG');
});
