import { delay } from '../../src/base/clock.ts';
import type { MemberId } from '../../src/etcd/member.ts';
import { SimulatedCluster } from '../support/simulated-cluster/cluster.ts';
import type { LogBook } from '../support/simulated-cluster/log-book.ts';
import type { MemberData } from '../support/simulated-cluster/raft.ts';
import type { ConformanceCase, Lab, LabClient, LabExit } from './lab.ts';

/** Runs one case on the simulated cluster: time passes as fast as the case waits. */
export async function runSimulated(
  one: ConformanceCase,
  options: { readonly version: string; readonly seed: number; readonly book: LogBook },
): Promise<SimulatedCluster> {
  const cluster = new SimulatedCluster(options);
  await cluster.settle(one.run(new SimulatedLab(cluster, options.version)), 600_000);
  return cluster;
}

class SimulatedLab implements Lab {
  readonly version: string;
  readonly #cluster: SimulatedCluster;
  readonly #kept = new Map<string, MemberData | undefined>();
  #flags: readonly string[] = [];

  constructor(cluster: SimulatedCluster, version: string) {
    this.#cluster = cluster;
    this.version = version;
  }

  async found(names: readonly string[], options: { readonly strict?: boolean } = {}): Promise<void> {
    this.#flags = options.strict === false ? ['--strict-reconfig-check=false'] : [];
    for (const name of names) this.#cluster.addNode(name);
    this.#cluster.found(names, 'test', this.#flags);
    for (const name of names) await this.serving(name);
  }

  async prepare(name: string): Promise<void> {
    this.#cluster.addNode(name);
  }

  peerUrl(name: string): string {
    return this.#cluster.node(name).peerUrl;
  }

  start(name: string, list: readonly string[], state: 'new' | 'existing'): void {
    const initialCluster = this.#cluster.initialCluster(list);
    this.#cluster.start(name, { initialCluster, state, token: 'test', flags: this.#flags });
  }

  restart(name: string, flags: readonly string[] = []): void {
    this.#cluster.restart(name, [...this.#flags, ...flags]);
  }

  async serving(name: string): Promise<void> {
    await this.eventually(async () => this.#cluster.node(name).isServing);
  }

  client(name: string, options: { readonly etcdVersion?: string | undefined } = {}): LabClient {
    const { etcdVersion } = options;
    return this.#cluster.client(name, etcdVersion === undefined ? {} : { etcdVersion });
  }

  async addVoter(through: string, peerUrl: string, deadlineMs?: number): Promise<MemberId> {
    return (await this.#cluster.client(through).addVoter(peerUrl, { deadlineMs })).member.id;
  }

  async kill(name: string): Promise<void> {
    this.#cluster.node(name).signal('SIGKILL');
  }

  terminate(name: string): void {
    this.#cluster.node(name).signal('SIGTERM');
  }

  async exited(name: string): Promise<LabExit> {
    const exit = await this.eventually(async () => this.#cluster.node(name).life?.exit);
    return exit.kind === 'code' ? { code: exit.code, signal: null } : { code: null, signal: exit.name };
  }

  freeze(name: string): void {
    this.#cluster.node(name).freeze();
  }

  thaw(name: string): void {
    this.#cluster.node(name).thaw();
  }

  wipe(name: string): void {
    this.#cluster.node(name).wipe();
  }

  keepDisk(name: string): void {
    this.#kept.set(name, this.#cluster.node(name).copyDisk());
  }

  restoreDisk(name: string): void {
    this.#cluster.node(name).restore(this.#kept.get(name));
  }

  log(name: string): string {
    return this.#cluster.node(name).log;
  }

  nowMs(): number {
    return this.#cluster.clock.monotonicMs();
  }

  async rest(ms: number): Promise<void> {
    await delay(this.#cluster.clock, ms);
  }

  async eventually<T>(ask: () => Promise<T>, withinMs = 30_000): Promise<Exclude<T, false | undefined>> {
    const until = this.nowMs() + withinMs;
    for (;;) {
      let last: unknown;
      try {
        const answer = await ask();
        if (answer !== false && answer !== undefined) return answer as Exclude<T, false | undefined>;
      } catch (error) {
        last = error;
      }
      if (this.nowMs() > until) throw new Error(`it did not come within ${withinMs} ms`, { cause: last });
      await this.rest(25);
    }
  }
}
