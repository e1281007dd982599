import { randomBytes } from 'node:crypto';
import type { Random } from './random.ts';

/** Randomness of the machine; identifiers come from the kernel's generator. */
export const systemRandom: Random = {
  fraction: () => Math.random(),
  hex: (count) => randomBytes(count).toString('hex'),
};
