import { performance } from 'node:perf_hooks';
import type { Clock } from './clock.ts';

/** The machine's clock. Its timers keep the process alive; whoever sets one also cancels it. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};
