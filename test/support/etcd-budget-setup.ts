// Before the first test of a file on real etcd: wait for its share of the machine's etcd processes.
import { afterAll, beforeAll, expect } from 'vitest';
import { budgetPath, etcdOf, takeFromBudget } from './etcd-budget.ts';

/** Longer than all files before it may take in a full run. */
const waitMs = 3_600_000;
let giveBack: (() => void) | undefined;

beforeAll(async () => {
  const wanted = etcdOf(expect.getState().testPath ?? '');
  // None: each test of that file takes its own share.
  if (wanted > 0) giveBack = await takeFromBudget(budgetPath(), wanted);
}, waitMs);

afterAll(() => giveBack?.());
