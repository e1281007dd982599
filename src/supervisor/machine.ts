/** @pure file: the states of one supervised child. */

import { InvariantError } from '../base/errors.ts';

/** What the child is to us. `idle`: no life of it is known to this agent yet; `ended`: the last life is over. */
export type State = 'idle' | 'launching' | 'starting' | 'ready' | 'stopping' | 'killing' | 'ended';

/** What happens to the child, or is asked of us. */
export type Event =
  | 'start' //        a new life is wanted
  | 'adopted' //      a living child of an earlier agent was found
  | 'launched' //     the keeper has recorded the child's pid
  | 'launchFailed' // there is no child, and none will come of this launch
  | 'becameReady' //  the readiness probe has succeeded for the first time in this life
  | 'stop' //         an orderly end is wanted
  | 'kill' //         an end at once is wanted
  | 'graceOver' //    the child has not ended within the grace
  | 'exited'; //      keeper and child are gone, all lines are read

/** What the shell does on entering a state. */
export type Action = 'launch' | 'watchReadiness' | 'sendTerm' | 'startGrace' | 'sendKill' | 'watchKill' | 'settle';

type Cell = State | 'same' | 'bug';
type Row = Readonly<Record<Event, Cell>>;

// `start` while a child lives is a bug here: the supervisor refuses it with AlreadyRunningError before.
// biome-ignore format: a table
export const transitions: Readonly<Record<State, Row>> = {
  //             start        adopted     launched    launchFailed becameReady stop        kill       graceOver  exited
  idle:      row('launching', 'starting', 'bug',      'bug',       'bug',      'same',     'same',    'bug',     'bug'),
  launching: row('bug',       'starting', 'starting', 'ended',     'bug',      'stopping', 'killing', 'bug',     'bug'),
  starting:  row('bug',       'bug',      'bug',      'bug',       'ready',    'stopping', 'killing', 'bug',     'ended'),
  ready:     row('bug',       'bug',      'bug',      'bug',       'same',     'stopping', 'killing', 'bug',     'ended'),
  stopping:  row('bug',       'same',     'same',     'ended',     'same',     'same',     'killing', 'killing', 'ended'),
  killing:   row('bug',       'same',     'same',     'ended',     'same',     'same',     'same',    'bug',     'ended'),
  ended:     row('launching', 'starting', 'bug',      'bug',       'bug',      'same',     'same',    'bug',     'bug'),
};

/** What entering a state does. Nothing else does anything; leaving a state cancels its timers. */
export const onEnter: Readonly<Record<State, readonly Action[]>> = {
  idle: [],
  launching: ['launch'],
  starting: ['watchReadiness'],
  ready: [],
  stopping: ['sendTerm', 'startGrace'],
  killing: ['sendKill', 'watchKill'],
  ended: ['settle'],
};

/** @pure The state after `event`, and what entering it asks of the shell. Throws InvariantError where the table says bug. */
export function advance(state: State, event: Event): { readonly state: State; readonly actions: readonly Action[] } {
  const next = transitions[state][event];
  if (next === 'bug') throw new InvariantError(`event ${event} in state ${state}`);
  return next === 'same' ? { state, actions: [] } : { state: next, actions: onEnter[next] };
}

function row(
  start: Cell,
  adopted: Cell,
  launched: Cell,
  launchFailed: Cell,
  becameReady: Cell,
  stop: Cell,
  kill: Cell,
  graceOver: Cell,
  exited: Cell,
): Row {
  return { start, adopted, launched, launchFailed, becameReady, stop, kill, graceOver, exited };
}
