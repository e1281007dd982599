import type { CancelTimer, Clock } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';

/** Something that serves, and can be ended. */
export interface Serving {
  close(): Promise<void>;
}

/** How often a listener that could not be opened is tried again. Unit: ms. */
const againMs = 10_000;

/**
 * Starts a listener now or, if that fails, as soon as it works: an agent that cannot be asked still looks after its etcd.
 * `onProblem` hears why it does not serve, and undefined once it does. Rejects only with errors of `fatal`.
 */
export async function keepServing(options: {
  readonly what: string;
  readonly start: () => Promise<Serving>;
  readonly isFatal?: (error: AgentError) => boolean;
  readonly onProblem: (problem: string | undefined) => void;
  readonly clock: Clock;
  readonly log: Log;
}): Promise<Serving> {
  const { what, start, isFatal, onProblem, clock, log } = options;
  let serving: Serving | undefined;
  let cancel: CancelTimer | undefined;
  let closed = false;
  const attempt = async (): Promise<void> => {
    try {
      serving = await start();
      if (closed) await serving.close();
      onProblem(undefined);
    } catch (error) {
      if (!(error instanceof AgentError) || isFatal?.(error)) throw error;
      log.error({ what, error: describeError(error), hint: error.hint }, 'cannot be served; it is tried again');
      onProblem(describeError(error));
      if (!closed) cancel = clock.after(againMs, () => void attempt().catch(crash));
    }
  };
  await attempt();
  return {
    async close() {
      closed = true;
      cancel?.();
      await serving?.close();
    },
  };
}

/** Ends the agent through its handler for uncaught errors. */
function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
