import type { Clock } from '../base/clock.ts';
import { type ProbeOptions, type ProbeVerdict, startProbe } from './probe.ts';

/** Questions asked while a child lives. */
export interface LifeProbes {
  /** Asked until its first good answer. */
  readonly readiness?: ProbeOptions;
  /** Asked for the whole life. */
  readonly liveness?: ProbeOptions;
}

/** Where the answers go. */
export interface LifeProbesContext {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onReady: () => void;
  readonly onLiveness: (verdict: ProbeVerdict, because: string) => void;
}

/** Asks until `signal` aborts. */
export function startLifeProbes({ readiness, liveness }: LifeProbes, context: LifeProbesContext): void {
  const { clock, signal } = context;
  if (liveness !== undefined) startProbe(liveness, { clock, signal, onVerdict: context.onLiveness });
  if (readiness === undefined) return;
  const answered = new AbortController();
  startProbe(readiness, {
    clock,
    signal: AbortSignal.any([signal, answered.signal]),
    onVerdict: (verdict) => {
      if (verdict !== 'good') return;
      answered.abort(new Error('the child is ready'));
      context.onReady();
    },
  });
}
