/**
 * What the flows join, promote, hand over, leave, remove and stop depend on in etcd: each reply of docs/etcd-facts.md, §6 to §8.
 * The same list runs on the simulated cluster and on real etcd; where the two differ, the simulation is wrong.
 */
import { handOverCases } from './hand-over-cases.ts';
import { joinCases } from './join-cases.ts';
import type { ConformanceCase } from './lab.ts';
import { quorumCases } from './quorum-cases.ts';
import { removeCases } from './remove-cases.ts';

export const conformanceCases: readonly ConformanceCase[] = [
  ...joinCases,
  ...handOverCases,
  ...removeCases,
  ...quorumCases,
];
