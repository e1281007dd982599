import { setTimeout as sleep } from 'node:timers/promises';
import type { LabNode } from '../lab/node.ts';
import type { StatusView } from '../src/agent/control.ts';
import type { Row, Screen } from './screen.ts';

/** Between two looks. Unit: ms. */
const everyMs = 250;
/** etcd's metrics are long: who leads is looked up less often. Unit: looks. */
const looksPerLeader = 4;

const head = ['NODE', 'AGENT', 'ETCD', 'PHASE', 'LEADER', 'MEMBERS', 'LAST EXIT', 'REPORTS WAITING'];

/** Keeps the table on the screen true: asks each agent again and again. */
export class Watch {
  readonly #nodes: readonly LabNode[];
  readonly #screen: Screen;
  readonly #watching: Promise<void>;
  #stopped = false;
  #leader: string | undefined;

  constructor(nodes: readonly LabNode[], screen: Screen) {
    this.#nodes = nodes;
    this.#screen = screen;
    this.#watching = screen.live ? this.#watch() : Promise.resolve();
  }

  /** Draws once more, and never again. */
  async stop(): Promise<void> {
    if (this.#stopped || !this.#screen.live) return;
    this.#stopped = true;
    await this.#watching;
    await this.#look(true);
    this.#screen.leaveTable();
  }

  async #watch(): Promise<void> {
    for (let look = 0; !this.#stopped; look++) {
      await this.#look(look % looksPerLeader === 0);
      await sleep(everyMs);
    }
  }

  async #look(withLeader: boolean): Promise<void> {
    if (withLeader) {
      const leads = await Promise.all(this.#nodes.map((node) => node.leads()));
      this.#leader = this.#nodes.find((_node, index) => leads[index])?.name;
    }
    const views = await Promise.all(this.#nodes.map((node) => node.status().catch(() => undefined)));
    const rows = this.#nodes.map((node, index) => rowOf(node.name, views[index], node.name === this.#leader));
    this.#screen.table(head, rows);
  }
}

function rowOf(name: string, status: StatusView | undefined, leads: boolean): Row {
  if (status === undefined) return { cells: [name, 'no answer'], mood: 'plain' };
  const { agent, process: child, cluster, outbox, plan } = status;
  const removed = plan.what === 'removedByOthers';
  const exit = child.lastExit;
  const cells = [
    name,
    String(agent.pid),
    child.pid === null ? '-' : String(child.pid),
    removed ? 'removed' : child.phase,
    leads && child.phase === 'ready' ? 'leads' : '',
    cluster === null || removed ? '-' : String(cluster.members.length),
    exit === null ? '-' : `${exit.class} (${exit.signal ?? `code ${exit.code}`})`,
    String(outbox.waiting),
  ];
  return { cells, mood: removed ? 'bad' : child.phase === 'ready' ? 'good' : 'plain' };
}
