import { eventually } from '../lab/eventually.ts';
import { withClient } from '../lab/with-client.ts';

/** A new read begins at this pace, whatever became of those before. Unit: ms. */
const everyMs = 25;
/** So many wait at a time at most. */
const mostInFlight = 20;

/**
 * The moment of the first linearizable read that member `id` itself answers at `endpoint`. Each read has a connection of its
 * own, and none waits for another: neither a connection that backs off nor a read that hangs blurs the figure.
 */
export async function firstRead(endpoint: string, id: bigint, signal: AbortSignal): Promise<number> {
  let inFlight = 0;
  let first: number | undefined;
  const read = async (): Promise<void> => {
    inFlight++;
    try {
      await withClient(endpoint, async (client) => {
        const { memberId } = await client.linearizableRead({ deadlineMs: 1_000 });
        if (memberId === id) first ??= performance.now();
      });
    } catch {
      // Not yet.
    } finally {
      inFlight--;
    }
  };
  return await eventually(
    () => {
      if (first === undefined && inFlight < mostInFlight) void read();
      return first;
    },
    { withinMs: 30_000, everyMs, what: `a linearizable read from ${endpoint}`, signal },
  );
}
