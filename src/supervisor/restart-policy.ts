/** @pure file: how a run ended → when the next one starts. */

import { backoffMs } from '../base/backoff.ts';

/** What the class of an end asks for. */
export type Treatment =
  /** A crash, a kill, an unknown end: at once, then growing delays, with a budget. */
  | { readonly kind: 'restart' }
  /** A cause that a wait may cure (port, host, bootstrap): delays of its own, no budget. Unit: ms. */
  | { readonly kind: 'retry'; readonly firstMs: number; readonly maxMs: number }
  /** No start before something changes; the caller clears it. `until` says what, in words. */
  | { readonly kind: 'hold'; readonly until: string }
  /** No start of this member ever again. */
  | { readonly kind: 'terminal' }
  /** We asked for the end: the next start is due whenever it is wanted, and costs nothing. */
  | { readonly kind: 'asked' };

/**
 * A moment, comparable across agents: durations come from the monotonic clock when both moments are of one `epoch` (one
 * run of the agent), else from wall time, never negative.
 */
export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
  /** Random per run of the agent. */
  readonly epoch: string;
}

/** All that the policy remembers. Plain data: the caller stores it, so that a new agent goes on counting. */
export interface RestartHistory {
  /** Ends in a row that were treated alike, since the last reset. */
  readonly inRow: number;
  /** The treatment of the last end, or undefined before the first. */
  readonly last: Treatment | undefined;
  /** When the last run ended, and how long after it the next may start. Unit: ms. */
  readonly endedAt: Moment | undefined;
  readonly delayMs: number;
  /** The moments of the last restarts that cost budget, oldest first, at most {@link budget}.restarts. */
  readonly restarts: readonly Moment[];
  /** True from the exhaustion of the budget until the next reset. */
  readonly exhausted: boolean;
}

/** Nothing has ended yet. */
export const emptyHistory: RestartHistory = {
  inRow: 0,
  last: undefined,
  endedAt: undefined,
  delayMs: 0,
  restarts: [],
  exhausted: false,
};

/** Delays of a restart: at once, then 1 s doubling to 60 s, ± 20 %. Unit: ms. */
const growing = { firstMs: 1000, maxMs: 60_000 };
/** A run that was ready this long was a good one: counting starts anew. Unit: ms. */
export const goodRunMs = 10 * 60 * 1000;
/** So many restarts within so long exhaust the budget; from then one try each `exhaustedMs`, until a good run. */
export const budget = { restarts: 10, withinMs: 30 * 60 * 1000, exhaustedMs: 5 * 60 * 1000 };

/** An end of a run, as the agent has classed it. */
export interface RunEnd {
  readonly treatment: Treatment;
  /** How long the run had been ready. Unit: ms; 0 if it never was. */
  readonly readyMs: number;
  readonly at: Moment;
}

/** @pure The history after an end. `fraction` is random, from 0 to 1: it is drawn once, so that asking again moves nothing. */
export function afterEnd(history: RestartHistory, end: RunEnd, fraction: number): RestartHistory {
  const before = end.readyMs >= goodRunMs ? emptyHistory : history;
  const { treatment } = end;
  if (treatment.kind === 'asked') return { ...before, last: treatment, inRow: 0, endedAt: end.at, delayMs: 0 };
  const inRow = before.last !== undefined && alike(before.last, treatment) ? before.inRow + 1 : 1;
  const exhausted = before.exhausted || (treatment.kind === 'restart' && spent(before.restarts, end.at));
  return {
    ...before,
    last: treatment,
    inRow,
    exhausted,
    endedAt: end.at,
    delayMs: delay(treatment, inRow, exhausted, fraction),
  };
}

/** @pure The history after a start. Only starts that follow an end treated by `restart` cost budget. */
export function afterStart(history: RestartHistory, at: Moment): RestartHistory {
  if (history.last?.kind !== 'restart') return history;
  return { ...history, restarts: [...history.restarts, at].slice(-budget.restarts) };
}

/** @pure The history after what held it has changed, or an operator said start: the next start is due at once. */
export function released(history: RestartHistory): RestartHistory {
  return { ...emptyHistory, last: history.last === undefined ? undefined : { kind: 'asked' } };
}

/** Whether a start is due. */
export type Due =
  | { readonly kind: 'now' }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'hold'; readonly until: string }
  | { readonly kind: 'never' };

/** What the policy says now, with what an operator wants to know. */
export interface Decision {
  readonly due: Due;
  /** An alarm as long as it is true; starts go on, one each 5 min. */
  readonly exhausted: boolean;
  /** Restarts within the last 30 min that cost budget. */
  readonly restarts: number;
  readonly inRow: number;
}

/** @pure Whether a start is due at `now`. */
export function decide(history: RestartHistory, now: Moment): Decision {
  const restarts = history.restarts.filter((at) => elapsedMs(at, now) < budget.withinMs).length;
  return { due: due(history, now), exhausted: history.exhausted, restarts, inRow: history.inRow };
}

/** @pure From one moment to a later one. Unit: ms, never negative. */
export function elapsedMs(from: Moment, to: Moment): number {
  const ms = from.epoch === to.epoch ? to.monotonicMs - from.monotonicMs : to.wallMs - from.wallMs;
  return Math.max(0, ms);
}

function due(history: RestartHistory, now: Moment): Due {
  if (history.last?.kind === 'hold') return { kind: 'hold', until: history.last.until };
  if (history.last?.kind === 'terminal') return { kind: 'never' };
  if (history.endedAt === undefined) return { kind: 'now' };
  // A wall clock that went back makes elapsed 0: the whole delay is waited once more, never years.
  const left = history.delayMs - elapsedMs(history.endedAt, now);
  return left <= 0 ? { kind: 'now' } : { kind: 'wait', ms: left };
}

function delay(treatment: Treatment, inRow: number, exhausted: boolean, fraction: number): number {
  switch (treatment.kind) {
    case 'restart':
      // The jitter of the slow try only lengthens it: a bound that is promised is kept.
      if (exhausted) return Math.round(budget.exhaustedMs * (1 + 0.1 * fraction));
      return inRow === 1 ? 0 : backoffMs(inRow - 1, growing, fraction);
    case 'retry':
      return backoffMs(inRow, treatment, fraction);
    case 'hold':
    case 'terminal':
    case 'asked':
      return 0;
  }
}

/** True if the budget is spent at the end of a run: another restart would be one too many. */
function spent(restarts: readonly Moment[], now: Moment): boolean {
  return restarts.filter((at) => elapsedMs(at, now) < budget.withinMs).length >= budget.restarts;
}

function alike(a: Treatment, b: Treatment): boolean {
  if (a.kind === 'retry' && b.kind === 'retry') return a.firstMs === b.firstMs && a.maxMs === b.maxMs;
  return a.kind === b.kind;
}
