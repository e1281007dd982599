import { cpSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from '../../proto/gen/etcd/cluster_pb.ts';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdChannel } from '../../src/etcd/channel.ts';
import type { EtcdClientOptions } from '../../src/etcd/client.ts';
import type { MemberId } from '../../src/etcd/member.ts';
import type { Lab, LabClient, LabExit } from '../conformance/lab.ts';
import { clientOf, type TestClient } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import type { RealCluster, RealEtcd } from '../support/real-etcd.ts';

/** Real etcd processes as a place to try things in. */
export class RealLab implements Lab {
  readonly #cluster: RealCluster;
  readonly #clients: TestClient[] = [];
  #flags: readonly string[] = [];

  constructor(cluster: RealCluster) {
    this.#cluster = cluster;
  }

  get version(): string {
    return this.#cluster.binary.version;
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  async found(names: readonly string[], options: { readonly strict?: boolean } = {}): Promise<void> {
    this.#flags = options.strict === false ? ['--strict-reconfig-check=false'] : [];
    for (const name of names) await this.prepare(name);
    for (const name of names) this.start(name, names, 'new');
    for (const name of names) await this.#cluster.member(name).ready();
  }

  async prepare(name: string): Promise<void> {
    if (this.#cluster.members.some((member) => member.name === name)) return;
    await this.#cluster.prepare(name);
  }

  peerUrl(name: string): string {
    return this.#cluster.member(name).peerUrl;
  }

  start(name: string, list: readonly string[], state: 'new' | 'existing'): void {
    const initialCluster = this.#cluster.initialCluster(list.map((each) => this.#cluster.member(each)));
    this.#cluster.member(name).start({ initialCluster, state, flags: this.#flags });
  }

  restart(name: string, flags: readonly string[] = []): void {
    this.#cluster.member(name).restart([...this.#flags, ...flags]);
  }

  /** Its client side answers; a learner does not get ready otherwise. */
  async serving(name: string): Promise<void> {
    const client = this.client(name);
    await eventually(() => client.serializableRead({ deadlineMs: 500 }), {
      withinMs: 30_000,
      what: `${name} answers`,
    });
  }

  client(name: string, options: Partial<EtcdClientOptions> = {}): LabClient {
    const client = clientOf(this.#cluster, this.#cluster.member(name), options);
    this.#clients.push(client);
    return client;
  }

  async addVoter(through: string, peerUrl: string, deadlineMs = 10_000): Promise<MemberId> {
    const endpoint = this.#cluster.member(through).clientUrl;
    const channel = new EtcdChannel({ endpoint, clock: systemClock, log: silentLog });
    try {
      const request = { peerUrls: [peerUrl], isLearner: false };
      const answer = await channel.unary(Cluster.method.memberAdd, request, { deadlineMs });
      return answer.member?.id ?? 0n;
    } finally {
      channel.close();
    }
  }

  async kill(name: string): Promise<void> {
    await this.#cluster.member(name).kill();
  }

  terminate(name: string): void {
    this.#cluster.member(name).signal('SIGTERM');
  }

  exited(name: string): Promise<LabExit> {
    return this.#cluster.member(name).exited(25_000);
  }

  freeze(name: string): void {
    this.#cluster.member(name).signal('SIGSTOP');
  }

  thaw(name: string): void {
    this.#cluster.member(name).signal('SIGCONT');
  }

  wipe(name: string): void {
    rmSync(this.#stopped(name).dataDir, { recursive: true, force: true });
  }

  keepDisk(name: string): void {
    const { dataDir } = this.#stopped(name);
    rmSync(`${dataDir}-kept`, { recursive: true, force: true });
    cpSync(dataDir, `${dataDir}-kept`, { recursive: true });
  }

  restoreDisk(name: string): void {
    const { dataDir } = this.#stopped(name);
    rmSync(dataDir, { recursive: true, force: true });
    cpSync(`${dataDir}-kept`, dataDir, { recursive: true });
  }

  log(name: string): string {
    return this.#cluster.member(name).log();
  }

  nowMs(): number {
    return systemClock.monotonicMs();
  }

  async rest(ms: number): Promise<void> {
    await sleep(ms);
  }

  eventually<T>(ask: () => Promise<T>, withinMs = 30_000): Promise<Exclude<T, false | undefined>> {
    return eventually(ask, { withinMs });
  }

  #stopped(name: string): RealEtcd {
    const member = this.#cluster.member(name);
    if (member.isRunning()) throw new Error(`etcd runs on the disk of ${name}`);
    return member;
  }
}
