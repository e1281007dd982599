import type { Random } from '../../src/base/random.ts';

/** Repeatable randomness: the same seed gives the same run. Not for secrets. */
export class SeededRandom implements Random {
  #state: number;

  /** `seed` is any integer. */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  fraction(): number {
    return this.#next() / 2 ** 32;
  }

  hex(count: number): string {
    let text = '';
    for (let index = 0; index < count; index++) text += (this.#next() >>> 24).toString(16).padStart(2, '0');
    return text;
  }

  /** A whole number from 0 (included) to `limit` (excluded). */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  /** True in `share` (0 to 1) of all calls. */
  chance(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of `choices`, evenly. */
  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  /** A generator of its own, so that one part's draws do not shift another's. */
  fork(): SeededRandom {
    return new SeededRandom(this.#next());
  }

  /** Weyl sequence with a 32-bit finaliser (two multiply-xorshift rounds): even, of period 2^32. */
  #next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let value = this.#state;
    value = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
    value = Math.imul(value ^ (value >>> 15), 0x735a2d97);
    return (value ^ (value >>> 15)) >>> 0;
  }
}
