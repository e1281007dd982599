import type { Activity, ChildPort, ChildView, StartOrder, StopOrder } from '../../../src/agent/ports.ts';
import { AgentError } from '../../../src/base/errors.ts';
import type { Asked } from '../../../src/etcd/exit.ts';
import type { EventQueue } from './event-queue.ts';
import type { SimulatedNode } from './node.ts';

/** The keeper's memory of one node: which life was asked to end, and how. It outlives the agent. */
export class SimulatedKeeper {
  readonly node: SimulatedNode;
  readonly queue: EventQueue;
  readonly #asked = new Map<number, Asked>();

  constructor(node: SimulatedNode, queue: EventQueue) {
    this.node = node;
    this.queue = queue;
  }

  askedOf(life: number): Asked {
    return this.#asked.get(life) ?? { kind: 'none' };
  }

  /** Recorded before the signal; KILL after the grace. */
  end(order: StopOrder, signal: 'SIGTERM' | 'SIGQUIT'): void {
    const { node, queue } = this;
    const life = node.life?.number;
    if (life === undefined || !node.isRunning) return;
    this.#asked.set(life, { kind: 'signalled', signal, afterGrace: false, why: order.why });
    node.signal(signal);
    queue.after(order.graceMs, () => {
      if (!node.isRunning || node.life?.number !== life) return;
      this.#asked.set(life, { kind: 'signalled', signal: 'SIGKILL', afterGrace: true, why: order.why });
      node.signal('SIGKILL');
    });
  }
}

/** What an agent gives to hear of its child. */
export interface SimulatedChildOptions {
  readonly keeper: SimulatedKeeper;
  readonly onLine: (life: number, line: string) => void;
  readonly onChange: () => void;
}

/** The child as one agent sees it. A life that began before this agent is adopted. */
export class SimulatedChild implements ChildPort {
  readonly #options: SimulatedChildOptions;
  readonly #firstOwnLife: number;
  readonly #unlisten: () => void;
  #stopping: number | undefined;

  constructor(options: SimulatedChildOptions) {
    this.#options = options;
    const { node } = options.keeper;
    this.#firstOwnLife = (node.life?.number ?? 0) + 1;
    this.#unlisten = node.listen({ onLine: options.onLine, onChange: options.onChange });
  }

  /** The agent is gone; etcd is not. */
  close(): void {
    this.#unlisten();
  }

  /** Reads what the newest life wrote before this agent came. */
  recover(): void {
    const { life } = this.#options.keeper.node;
    for (const line of life?.lines ?? []) this.#options.onLine(life?.number ?? 0, line);
  }

  view(): ChildView {
    const { keeper } = this.#options;
    const { node } = keeper;
    const { life } = node;
    const { exit, endedAtMs } = life ?? {};
    const ended = node.lives.findLast((each) => each.exit !== undefined);
    return {
      phase: this.#phase(),
      because: '',
      trouble: '',
      idleMs: node.isRunning ? 0 : undefined,
      life: life?.number ?? 0,
      pid: node.isRunning ? life?.pid : undefined,
      adopted: life !== undefined && life.number < this.#firstOwnLife,
      startedAtMs: life?.startedAtMs,
      readyAtMs: exit === undefined ? life?.servingAtMs : undefined,
      readyMs: (endedAtMs ?? 0) - (life?.servingAtMs ?? endedAtMs ?? 0),
      end:
        ended?.exit === undefined
          ? undefined
          : {
              life: ended.number,
              exit: ended.exit,
              asked: keeper.askedOf(ended.number),
              endedAtMs: endedAtMs ?? ended.endedAtMs,
            },
    };
  }

  async start(order: StartOrder): Promise<void> {
    const { node } = this.#options.keeper;
    if (node.isRunning) throw new AlreadyRunningError(`etcd runs on ${node.name} already`);
    node.start(order.arguments);
  }

  async stop(order: StopOrder): Promise<void> {
    this.#end(order, 'SIGTERM');
  }

  async dump(order: StopOrder): Promise<void> {
    this.#end(order, 'SIGQUIT');
  }

  /** A frozen one is stopped and stands still; another one works a little all the time. */
  activity(): Activity | undefined {
    const { node, queue } = this.#options.keeper;
    if (!node.isRunning) return undefined;
    if (node.frozen) return { state: 'T', cpuTicks: 0, ioBytes: 0 };
    return { state: 'S', cpuTicks: Math.round(queue.nowMs() / 100), ioBytes: Math.round(queue.nowMs()) };
  }

  #end(order: StopOrder, signal: 'SIGTERM' | 'SIGQUIT') {
    this.#stopping = this.#options.keeper.node.life?.number;
    this.#options.keeper.end(order, signal);
    this.#options.onChange();
  }

  #phase(): ChildView['phase'] {
    const { keeper } = this.#options;
    const { node } = keeper;
    if (!node.isRunning) return 'down';
    const asked = keeper.askedOf(node.life?.number ?? 0);
    if (asked.kind === 'signalled') return asked.afterGrace ? 'killing' : 'stopping';
    if (this.#stopping === node.life?.number) return 'stopping';
    return node.life?.servingAtMs === undefined ? 'starting' : 'ready';
  }
}

class AlreadyRunningError extends AgentError {
  readonly code = 'ALREADY_RUNNING';
}
