import type { Clock } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';
import { type HeldLock, holdLock } from '../supervisor/run.ts';

/** Another agent runs on this state directory. */
export class AgentAlreadyRunningError extends AgentError {
  readonly code = 'AGENT_LOCK_HELD';
}

/** A former agent's lock may outlive it by a moment. Unit: ms. */
const patienceMs = 3_000;

/**
 * One agent for one state directory. The directory itself is locked: that needs nothing to be written (a read-only or full
 * file system), and it is the same lock under whatever path or mount it is reached. Throws {@link AgentAlreadyRunningError}.
 */
export async function takeStateLock(stateDir: string, clock: Clock): Promise<HeldLock> {
  const until = clock.monotonicMs() + patienceMs;
  for (;;) {
    const lock = await holdLock(stateDir);
    if (lock !== undefined) return lock;
    if (clock.monotonicMs() >= until) {
      throw new AgentAlreadyRunningError(`another agent runs on ${stateDir}`, {
        hint: 'One agent for one node. `etcd-node-agent status` shows the one that runs.',
      });
    }
    await new Promise<void>((resolve) => clock.after(100, resolve));
  }
}
