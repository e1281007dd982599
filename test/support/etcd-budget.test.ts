import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { etcdAtOnce, openBudget, takeFromBudget } from './etcd-budget.ts';

let directory: string;
let budget: Awaited<ReturnType<typeof openBudget>>;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'budget-'));
  budget = await openBudget(directory);
});
afterEach(() => {
  budget.close();
  rmSync(directory, { recursive: true, force: true });
});

test('no more run at once than the budget has, small ones fill what is left over, and all get their turn', async () => {
  let running = 0;
  let most = 0;
  const begun: number[] = [];
  const wants = [3, 3, 1, 2, 5, 1, 1, 4, 99];
  await Promise.all(
    wants.map(async (wanted, index) => {
      const giveBack = await takeFromBudget(budget.path, wanted);
      begun.push(index);
      running += Math.min(wanted, etcdAtOnce);
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= Math.min(wanted, etcdAtOnce);
      giveBack();
    }),
  );
  expect([...begun].sort((a, b) => a - b)).toEqual(wants.map((_, index) => index));
  // The one that fits into what is left goes before the second large one.
  expect(begun.indexOf(2)).toBeLessThan(begun.indexOf(1));
  expect(most).toBeLessThanOrEqual(etcdAtOnce);
  expect(most).toBeGreaterThan(3);
});
