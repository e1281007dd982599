/**
 * Time as an argument: the real clock in the agent, a fake one in tests, a simulated one in the simulator.
 * Durations are always measured with {@link Clock.monotonicMs}; wall time is only for people and for records.
 */
export interface Clock {
  /** Wall time. Unit: ms since 1970-01-01 UTC. May jump; never used to measure a duration. */
  wallMs(): number;
  /** Time that only grows. Unit: ms since an arbitrary start. */
  monotonicMs(): number;
  /** Calls `fire` once, `delayMs` from now (at least 0), unless the returned function is called first. */
  after(delayMs: number, fire: () => void): CancelTimer;
}

/** Stops a timer; harmless when it has fired already. */
export type CancelTimer = () => void;

/** Resolves after `delayMs`; rejects with the signal's reason as soon as `signal` aborts. */
export function delay(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.after(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    function onAbort(): void {
      cancel();
      reject(signal?.reason);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** An ISO 8601 timestamp in UTC with milliseconds, as it stands in records and events. */
export function timestamp(clock: Clock): string {
  return new Date(clock.wallMs()).toISOString();
}
