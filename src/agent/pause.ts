import type { Clock } from '../base/clock.ts';
import type { AgentState } from './state/agent-state.ts';

/** The pause of membership changes and health restarts that an operator ordered and that is not over; undefined if there is none. */
export function pauseNow(
  { pause }: Pick<AgentState, 'pause'>,
  clock: Pick<Clock, 'wallMs'>,
): { readonly until: string; readonly reason: string } | undefined {
  const reading = pause.read();
  return reading.kind === 'ok' && Date.parse(reading.value.until) > clock.wallMs() ? reading.value : undefined;
}
