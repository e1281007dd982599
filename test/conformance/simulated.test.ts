// Goal: the simulated cluster answers as etcd does, on every version, whatever the seed; and a run can be repeated.
// Method: the cases of test/conformance, which test/real/conformance.test.ts puts to real etcd, with several seeds each.
import { describe, expect, test } from 'vitest';
import { LogBook } from '../support/simulated-cluster/log-book.ts';
import { conformanceCases } from './cases.ts';
import { runSimulated } from './simulated-lab.ts';

const versions = ['3.4.23', '3.5.16', '3.5.30', '3.6.16', '3.7.3'];
const seeds = [1, 2, 3, 4];
const book = new LogBook();

describe.each(versions)('simulated etcd %s', (version) => {
  test.each(conformanceCases)('$title', async (one) => {
    for (const seed of seeds) {
      try {
        await runSimulated(one, { version, seed, book });
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`, { cause: error });
      }
    }
  });
});

test.each(conformanceCases)('the same seed gives the same run: $title', async (one) => {
  const hashes = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const { trace } = await runSimulated(one, { version: '3.5.30', seed: 42, book });
    hashes.add(`${trace.hash} ${trace.count}`);
  }
  expect(hashes.size).toBe(1);
});
