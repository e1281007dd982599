import { AgentError } from '../base/errors.ts';
import type { Asked } from '../etcd/exit.ts';
import type { LifeEnd } from '../supervisor/life.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import type { Activity, ChildEnd, ChildPort, ChildView, StartOrder, StopOrder } from './ports.ts';

export interface EtcdChildOptions {
  readonly supervisor: Supervisor;
  /** Stands in etcd's command line for as long as it lives: its data directory. */
  readonly identity: string;
  /** `setpriv`, `prlimit`, `choom` with their arguments; may be empty. */
  readonly prefix: readonly string[];
  /** etcd's whole environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** Who stops it, for the record. */
  readonly by: string;
}

/** Translates between the supervisor, which knows nothing of etcd, and the agent. */
export class EtcdChild implements ChildPort {
  readonly #options: EtcdChildOptions;
  #lost: string | undefined;

  constructor(options: EtcdChildOptions) {
    this.#options = options;
  }

  /** A process that is not proven ours holds the data directory: nothing may be started or signalled. Undefined: that is over. */
  blockedBy(because: string | undefined): void {
    this.#lost = because;
  }

  view(): ChildView {
    const view = this.#options.supervisor.view();
    const end = view.lastEnd;
    const phase = this.#lost === undefined ? phaseOf(view.phase) : 'unknown';
    return {
      phase,
      because: this.#lost ?? '',
      trouble: view.signalProblem ?? (view.killPending ? 'it outlives KILL: it hangs in the kernel or is frozen' : ''),
      idleMs: view.idleMs,
      life: view.life?.number ?? end?.number ?? 0,
      pid: phase === 'down' ? undefined : view.life?.pid,
      adopted: view.life?.adopted ?? false,
      startedAtMs: view.life?.startedAtMs,
      readyAtMs: view.readyAtMs,
      readyMs: view.readyMs,
      end: end === undefined ? undefined : childEnd(end.number, end.end),
    };
  }

  async start(order: StartOrder): Promise<void> {
    const { supervisor, identity, prefix, environment } = this.#options;
    await supervisor.start({ prefix, binary: order.binary, args: order.arguments, environment, identity });
  }

  async stop(order: StopOrder): Promise<void> {
    await this.#end(order, 'SIGTERM');
  }

  async dump(order: StopOrder): Promise<void> {
    await this.#end(order, 'SIGQUIT');
  }

  activity(): Activity | undefined {
    return this.#options.supervisor.activity();
  }

  async #end(order: StopOrder, firstSignal: 'SIGTERM' | 'SIGQUIT'): Promise<void> {
    const { supervisor, by } = this.#options;
    const reason = `${order.why}: ${order.because}`;
    // The end arrives by the view; whoever needs it looks there. A closed supervisor means that the agent is ending.
    supervisor.stop({ graceMs: order.graceMs, by, reason, firstSignal }).catch((error: unknown) => {
      if (!(error instanceof AgentError)) throw error;
    });
  }
}

function phaseOf(state: ReturnType<Supervisor['view']>['phase']): ChildView['phase'] {
  switch (state) {
    case 'idle':
    case 'ended':
      return 'down';
    case 'launching':
      return 'starting';
    default:
      return state;
  }
}

/** The end of a life, as the agent judges it. */
export function childEnd(life: number, end: LifeEnd): ChildEnd {
  const exit: ChildEnd['exit'] =
    end.exit.kind === 'unknown'
      ? { kind: 'unknown', because: end.exit.why }
      : end.exit.kind === 'signal'
        ? { kind: 'signal', name: end.exit.name }
        : end.exit;
  return { life, exit, asked: askedOf(end), endedAtMs: end.endedAtMs };
}

/** The reason was written by {@link EtcdChild.stop} as `why: because`. */
function askedOf(end: LifeEnd): Asked {
  const { stop } = end;
  const last = stop?.signals.at(-1);
  if (stop === undefined || last === undefined) return { kind: 'none' };
  const named = /^(stop|stuck|dataLocked): /.exec(stop.reason)?.[1];
  const why = named === 'stuck' || named === 'dataLocked' ? named : 'stop';
  return { kind: 'signalled', signal: last.name, afterGrace: stop.signals.length > 1 && last.name === 'SIGKILL', why };
}
