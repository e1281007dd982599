import type { AgentState } from './state/agent-state.ts';

/** A grant that ended with the removal of its member counts no more; only a new grant id does. */
export function isSpentGrant(grantId: string, state: AgentState): boolean {
  const stones = state.tombstones.read();
  return stones.kind === 'ok' && stones.value.some((stone) => stone.grantId !== '' && stone.grantId === grantId);
}
