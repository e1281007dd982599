import { setTimeout as sleep } from 'node:timers/promises';

/** How long {@link eventually} asks. */
export interface EventuallyOptions {
  /** Unit: ms. Default 15 000. */
  readonly withinMs?: number;
  /** Rest between two tries. Unit: ms. Default 25. */
  readonly everyMs?: number;
  /** What is waited for, in words; part of the error. */
  readonly what?: string;
  /** Ends the asking: it throws the reason of the abort. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks until `ask` neither throws nor answers `false` or `undefined`, and gives its answer back. When the time is over,
 * it throws with the last failure as cause. A single try that hangs is cut off at the same moment.
 */
export async function eventually<T>(
  ask: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<Exclude<T, false | undefined>> {
  const withinMs = options.withinMs ?? 15_000;
  const until = performance.now() + withinMs;
  let last: unknown;
  for (let tries = 1; ; tries++) {
    options.signal?.throwIfAborted();
    try {
      const answer = await beforeTheEnd(ask, until - performance.now(), last);
      if (answer !== false && answer !== undefined) return answer as Exclude<T, false | undefined>;
      last = new Error(`the answer was ${String(answer)}`);
    } catch (error) {
      last = error;
    }
    if (performance.now() >= until) {
      throw new Error(`${options.what ?? 'what was waited for'} did not come within ${withinMs} ms (${tries} tries)`, {
        cause: last,
      });
    }
    await sleep(options.everyMs ?? 25, undefined, { signal: options.signal }).catch(() => undefined);
  }
}

async function beforeTheEnd<T>(ask: () => T | Promise<T>, leftMs: number, last: unknown): Promise<T> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const hung = new Error('one try hung until the time was over', last === undefined ? undefined : { cause: last });
  const timer = setTimeout(() => reject(hung), Math.max(leftMs, 1));
  try {
    return await Promise.race([Promise.resolve(ask()), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
