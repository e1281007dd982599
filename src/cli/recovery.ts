import { childEnd, type EtcdChild } from '../agent/etcd-child.ts';
import { LifeWatch } from '../agent/life-watch.ts';
import type { Observer } from '../agent/observer.ts';
import type { TurnReports } from '../agent/turn-reports.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, errnoOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { LockHeldError } from '../supervisor/errors.ts';
import type { Recovered } from '../supervisor/life.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';

/** How often a data directory that is not ours to read, or is held by a stranger, is looked at again. Unit: ms. */
const recoverAgainMs = 5_000;

/** What it needs of the supervisor and of the parts of the agent. */
export interface RecoveryOptions {
  readonly supervisor: Pick<Supervisor, 'recover' | 'endedAfter' | 'replay'>;
  readonly child: Pick<EtcdChild, 'blockedBy'>;
  readonly parts: {
    readonly watch: LifeWatch;
    readonly ends: { readonly last: { readonly life: number } | undefined };
    readonly reports: { readonly reported: { readonly exitedLife: number } };
    readonly turnReports: Pick<TurnReports, 'adopted'>;
    readonly observer: Pick<Observer, 'judgeEarlier'>;
    readonly agent: { wake(): void };
  };
  readonly clock: Clock;
  readonly log: Log;
  readonly stop: AbortSignal;
}

/**
 * Adopts a living etcd or learns how the last one ended. While a stranger holds the data, or something of it cannot be read, it looks
 * again; what was adopted is not adopted twice.
 */
export function recoverer(options: RecoveryOptions): () => Promise<void> {
  const { supervisor, child, parts, clock, log, stop } = options;
  let found: Recovered | undefined;
  const recover = async (): Promise<void> => {
    try {
      found ??= await supervisor.recover();
      await catchUp(options, found.kind === 'ended' ? found.number : undefined);
      if (found.kind === 'ended') await replayNewest(options, found.number);
      // Not before its log was read: a turn would judge the end without it.
      child.blockedBy(undefined);
      if (found.kind === 'adopted') parts.turnReports.adopted(found.life.number, found.life.pid);
      log.info({ found: found.kind }, 'looked for a running etcd');
    } catch (error) {
      // A stranger's lock, or a data root that cannot be read: nothing is started, and it is looked again.
      const because = describeError(error);
      if (!(error instanceof LockHeldError) && errnoOf(error) === undefined) throw error;
      log.warn({ because }, 'whether an etcd of ours runs cannot be told');
      child.blockedBy(because);
      clock.after(recoverAgainMs, () => {
        if (!stop.aborted)
          recover().catch((again: unknown) =>
            queueMicrotask(() => {
              throw again;
            }),
          );
      });
    }
    parts.agent.wake();
  };
  return recover;
}

/** From its start, also after a reading that was cut short. */
async function replayNewest({ supervisor, parts }: RecoveryOptions, number: number): Promise<void> {
  parts.watch.forget();
  await supervisor.replay(number, (line) => void parts.watch.take(number, line.text));
}

/** Ends that an earlier agent could not write down are judged by the logs of their lives. `newest` is judged in the first turn. */
async function catchUp({ supervisor, parts }: RecoveryOptions, newest: number | undefined): Promise<void> {
  const known = Math.max(parts.ends.last?.life ?? 0, parts.reports.reported.exitedLife);
  if (known === 0) return; // records that are new, or lost: nothing is known to be missing
  for (const { number, startedAtMs, end } of supervisor.endedAfter(known)) {
    if (number === newest) continue;
    const watch = new LifeWatch();
    await supervisor.replay(number, (line) => void watch.take(number, line.text));
    parts.observer.judgeEarlier(childEnd(number, end), watch.end(number), startedAtMs);
  }
}
