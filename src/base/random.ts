/** Randomness as an argument, so that a seeded run is repeatable. */
export interface Random {
  /** A number from 0 (included) to 1 (excluded), evenly spread. */
  fraction(): number;
  /** `count` random bytes as lower-case hex: identifiers, nonces. */
  hex(count: number): string;
}
