import type { AtCrashPoint } from '../agent/effects.ts';
import type { Log } from '../base/log.ts';

/**
 * A test mode: the agent kills itself (SIGKILL) at one passing of an effect, named as `EFFECT before|after COUNT` after
 * docs/failure-modes.md. Undefined if nothing is wanted; what is wanted is said in the log at once, so that nobody runs so without
 * knowing.
 */
export function crashMode(wanted: string | undefined, log: Log): AtCrashPoint | undefined {
  if (wanted === undefined) return undefined;
  const [effect, moment, count = '1'] = wanted.split(' ');
  log.warn({ at: wanted }, 'test mode: the agent ends itself at an effect');
  let passed = 0;
  return (point) => {
    if (point.effect !== effect || point.moment !== moment) return;
    passed++;
    if (passed === Number(count)) process.kill(process.pid, 'SIGKILL');
  };
}
