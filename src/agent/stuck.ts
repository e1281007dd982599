/** @pure file: is etcd alive and yet doing nothing? (exit class 14) */

import type { Activity } from './ports.ts';

export interface StuckQuestion {
  /** Liveness probes missed in a row. */
  readonly misses: number;
  /** So many count: a slow machine may want more. */
  readonly missesUntilStuck: number;
  /** CPU and I/O when the first of them was missed, and now. Undefined: could not be read. */
  readonly before: Activity | undefined;
  readonly now: Activity | undefined;
  /** Another voter answered a linearizable question since, so the cluster makes progress without us. */
  readonly othersProgress: boolean;
  /** Since the last restart for this reason; undefined if there was none. Unit: ms. */
  readonly sinceLastMs: number | undefined;
}

/** A start without any log, CPU or I/O for this long makes no progress. Unit: ms. */
const idleStartMs = 60_000;
/** Restarted for this reason at most once in this time. Unit: ms. */
const onceInMs = 3_600_000;

/**
 * @pure Only a process that used no CPU and did no I/O is stuck; one in state D waits for its disk, and a restart would
 * not help; what cannot be read is no proof.
 */
export function isStuck(question: StuckQuestion): boolean {
  const { misses, missesUntilStuck, before, now, othersProgress, sinceLastMs } = question;
  if (misses < missesUntilStuck || !othersProgress) return false;
  if (before === undefined || now === undefined || now.state === 'D') return false;
  if (sinceLastMs !== undefined && sinceLastMs < onceInMs) return false;
  const sameIo = before.ioBytes !== undefined && now.ioBytes !== undefined && before.ioBytes === now.ioBytes;
  return before.cpuTicks === now.cpuTicks && sameIo;
}

/** @pure A start has no time limit while it progresses; one that shows no life at all is ended, at most once an hour. */
export function isStuckInStart(idleMs: number | undefined, sinceLastMs: number | undefined): boolean {
  if (idleMs === undefined || idleMs < idleStartMs) return false;
  return sinceLastMs === undefined || sinceLastMs >= onceInMs;
}
