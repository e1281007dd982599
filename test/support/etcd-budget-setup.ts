// Before the first test of a file on real etcd: wait for its share of the machine's etcd processes.
import { afterAll, beforeAll, expect } from 'vitest';
import { etcdOf, takeFromBudget } from './etcd-budget.ts';

/** Longer than all files before it may take in a full run. */
const waitMs = 3_600_000;
let giveBack: (() => void) | undefined;

beforeAll(async () => {
  const budget = process.env['ETCD_TEST_BUDGET'];
  if (budget === undefined) throw new Error('test/support/real-setup.ts has not run: no budget of etcd processes');
  giveBack = await takeFromBudget(budget, etcdOf(expect.getState().testPath ?? ''));
}, waitMs);

afterAll(() => giveBack?.());
