/** @pure file: growing delays. */

/** How a growing delay grows. Each delay is `firstMs × 2^n`, at most `maxMs`, then ± `jitter` of itself. */
export interface BackoffOptions {
  /** The first delay. Unit: ms, greater than 0. */
  readonly firstMs: number;
  /** No delay is longer, jitter aside. Unit: ms. */
  readonly maxMs: number;
  /** Random part as a share of the delay, from 0 to 1. Default 0.2. */
  readonly jitter?: number;
}

/** @pure The delay before the try after `failures` failures in a row (1 or more). `fraction` is random, from 0 to 1. Unit: ms. */
export function backoffMs(failures: number, options: BackoffOptions, fraction: number): number {
  const exponent = Math.min(Math.max(failures, 1) - 1, 30);
  const base = Math.min(options.firstMs * 2 ** exponent, options.maxMs);
  const jitter = options.jitter ?? 0.2;
  return Math.round(base * (1 - jitter + 2 * jitter * fraction));
}
