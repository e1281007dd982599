// Goal: the page that shows the machine shows this machine.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../src/supervisor/run.ts';

test('docs/states.md is drawn from the table as it is', async () => {
  const script = join(import.meta.dirname, '../../scripts/draw-states.ts');
  const { code, stderr } = await runCommand(process.execPath, [script, '--check'], { timeoutMs: 15_000 });
  expect(stderr).toBe('');
  expect(code).toBe(0);
});
