// Goal: the page of failure modes lists the effects and crash points that there are.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../src/supervisor/run.ts';

test('docs/failure-modes.md is made from the effects and flows as they are', async () => {
  const script = join(import.meta.dirname, '../../scripts/draw-failure-modes.ts');
  const { code, stderr } = await runCommand(process.execPath, [script, '--check'], { timeoutMs: 60_000 });
  expect(stderr).toBe('');
  expect(code).toBe(0);
}, 60_000);
