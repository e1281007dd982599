/** @pure file: what `start` answers: what is so, and what comes next. */

import { describeBlocker } from './blockers.ts';
import type { Observed } from './observed.ts';
import { plan } from './plan.ts';
import type { ChildView } from './ports.ts';
import type { Plan } from './step.ts';

/** @pure The plan of this node as an operator's `start` makes it, also where that was not given yet (dry run). */
export function planOnceStarted(seen: Observed): Plan {
  const start =
    seen.start.kind === 'later' ? seen.start : ({ kind: 'now', because: 'an operator started it' } as const);
  return plan({ ...seen, intent: { kind: 'run', because: '' }, start });
}

/** @pure `before`: the phase in which the order found etcd; `next`: the plan that holds from then on. */
export function startLines(before: ChildView['phase'], next: Plan): readonly string[] {
  if (before === 'starting' || before === 'ready') return ['etcd runs already, and may go on'];
  switch (next.kind) {
    case 'act':
      return [`etcd may run; next: ${next.step.kind}, ${next.because}`];
    case 'waiting':
      return [`etcd may run; ${next.because}`];
    case 'converged':
      return [`etcd may run, and is not started: ${next.because}`];
    case 'blocked': {
      const { because, hint } = describeBlocker(next.by);
      return [`etcd may run, and is not started: blocked ${next.by.kind}: ${because}`, hint];
    }
  }
}
