import { assemble, type Parts } from '../../src/agent/assemble.ts';
import type { Config } from '../../src/agent/config.ts';
import type { CrashPoint } from '../../src/agent/effects.ts';
import { type Layout, layoutOf } from '../../src/agent/layout.ts';
import type { RoleSeen } from '../../src/agent/observed.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import type { IdentityRecord } from '../../src/agent/state/schemas.ts';
import { silentLog } from '../../src/base/log.ts';
import { outboxPort } from '../../src/cli/outbox-control.ts';
import { parseVersion } from '../../src/etcd/known-versions.ts';
import { formatId, type MemberList, votersOf } from '../../src/etcd/member.ts';
import type { StoredFact } from '../../src/upstream/fact.ts';
import { Outbox } from '../../src/upstream/outbox.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedChild, type SimulatedKeeper } from '../support/simulated-cluster/child.ts';
import { SimulatedCluster } from '../support/simulated-cluster/cluster.ts';
import { LogBook } from '../support/simulated-cluster/log-book.ts';
import type { SimulatedNode } from '../support/simulated-cluster/node.ts';
import { dataDirOf, SimulatedClusterPort } from '../support/simulated-cluster/port.ts';

const book = new LogBook();

/** A founded cluster on the simulation, and an agent beside each of its members. */
export class SimulatedFleet {
  readonly sim: SimulatedCluster;
  readonly agents: readonly SimulatedAgent[];

  private constructor(sim: SimulatedCluster, agents: readonly SimulatedAgent[]) {
    this.sim = sim;
    this.agents = agents;
  }

  static async founded(size = 3, seed = 1): Promise<SimulatedFleet> {
    const sim = new SimulatedCluster({ seed, book });
    const names = Array.from({ length: size }, (_, index) => `n${index + 1}`);
    for (const name of names) sim.addNode(name);
    sim.found(names);
    await sim.until(() => sim.nodes.every((node) => node.isServing));
    const list = await sim.settle(sim.client('n1').memberList({ linearizable: true }));
    const agents = sim.nodes.map((node) => new SimulatedAgent(sim, node, list));
    for (const agent of agents) agent.boot();
    await sim.run(3_000);
    return new SimulatedFleet(sim, agents);
  }

  get leader(): SimulatedAgent {
    return this.of(this.sim.leader());
  }

  /** Those that do not lead. */
  get followers(): readonly [SimulatedAgent, SimulatedAgent] {
    const [one, other] = this.agents.filter((agent) => agent.node !== this.sim.leader());
    if (one === undefined || other === undefined) throw new Error('there are no two followers');
    return [one, other];
  }

  of(node: SimulatedNode | undefined): SimulatedAgent {
    const agent = this.agents.find((one) => one.node === node);
    if (agent === undefined) throw new Error('no agent runs there');
    return agent;
  }

  async close(): Promise<void> {
    for (const agent of this.agents) await agent.end();
  }
}

/** A whole agent as cli/wire.ts joins it, on one node of a simulated cluster. Node, keeper and disk outlive it. */
export class SimulatedAgent {
  readonly node: SimulatedNode;
  readonly layout: Layout;
  readonly disk: MemoryDisk;
  role: RoleSeen = {
    kind: 'known',
    role: 'consensus-member',
    grantId: 'g1',
    spent: false,
    clusterId: undefined,
    hasEndpoints: false,
    accepted: [],
  };
  /** The agent is killed there, once. */
  killAt: CrashPoint | undefined;
  /** Changes with every boot of the machine. */
  bootId = 'boot-1';
  readonly #sim: SimulatedCluster;
  readonly #random: SeededRandom;
  readonly #keeper: SimulatedKeeper;
  readonly #config: Config;
  #parts: Parts | undefined;
  #child: SimulatedChild | undefined;
  #outbox: Outbox | undefined;
  #stop = new AbortController();
  #run: Promise<unknown> = Promise.resolve();
  #died: unknown;

  constructor(sim: SimulatedCluster, node: SimulatedNode, list: MemberList) {
    this.node = node;
    this.#sim = sim;
    this.#random = new SeededRandom(node.name.charCodeAt(1));
    this.disk = new MemoryDisk(this.#random.fork());
    this.#keeper = sim.keeper(node.name);
    this.layout = layoutOf({ stateDir: '/state', dataRoot: '/root', clusterName: 'default', memberName: node.name });
    this.#config = configOf(node);
    this.#becomeMember(list);
  }

  get parts(): Parts {
    if (this.#died !== undefined) throw this.#died;
    if (this.#parts === undefined) throw new Error(`no agent runs on ${this.node.name}`);
    return this.#parts;
  }

  get died(): unknown {
    return this.#died;
  }

  get intent(): string {
    const reading = new AgentState({ disk: this.disk, layout: this.layout }).runIntent();
    return reading.kind === 'ok' ? reading.value.intent : reading.kind;
  }

  get facts(): readonly StoredFact[] {
    return this.#outbox?.read({ limit: 10_000 }) ?? [];
  }

  /** `blocked stoppedByOperator`, `act startMember`, … of the last turn. */
  get plan(): string {
    const plan = this.parts.agent.latest?.plan;
    if (plan === undefined) return '';
    return plan.kind === 'blocked'
      ? `blocked ${plan.by.kind}`
      : plan.kind === 'act'
        ? `act ${plan.step.kind}`
        : plan.kind;
  }

  boot(): void {
    const { disk, layout, node } = this;
    this.#stop = new AbortController();
    this.#died = undefined;
    const clock = this.#sim.clock;
    const witness = `${layout.stateDir}/outbox-witness`;
    const random = this.#random;
    const outbox = new Outbox({ directory: layout.outboxDir, witness, disk, clock, random, log: silentLog });
    const child = new SimulatedChild({
      keeper: this.#keeper,
      onLine: (life, line) => {
        for (const news of this.#parts?.watch.take(life, line) ?? []) this.#parts?.turnReports.hear(news);
      },
      onChange: () => {
        if (!node.isRunning) {
          this.#parts?.status.begin();
          this.#parts?.progress.begin();
        }
        this.#parts?.agent.wake();
      },
    });
    const parts = assemble({
      config: () => this.#config,
      layout,
      child,
      cluster: new SimulatedClusterPort(this.#sim, node),
      outbox: outboxPort(outbox, () => {}),
      disk,
      host: {
        freeBytes: () => 1e9,
        isMountPoint: () => false,
        exists: (path) => disk.read(path) !== undefined || disk.list(path) !== undefined,
        oomKills: () => undefined,
        removeTree: (path) => disk.wipe(path),
        giveTo: () => {},
        fingerprint: () => 'same',
      },
      clock,
      random,
      log: silentLog,
      role: { role: () => this.role, endpoints: () => [], grantId: () => 'g1' },
      version: () => parseVersion('3.5.30'),
      versionProblem: () => '',
      holdersOf: () => [],
      portHolder: () => undefined,
      inspectData: async () => dataDirOf(node),
      checkTls: () => [],
      owner: undefined,
      agentVersion: '0.1.0',
      bootId: () => this.bootId,
      onPlan: () => {},
      atCrashPoint: (point) => this.#killIfDue(point),
    });
    this.#outbox = outbox;
    this.#child = child;
    this.#parts = parts;
    child.recover();
    this.#run = parts.agent.run(this.#stop.signal).catch((error: unknown) => {
      this.#died = error;
    });
  }

  /** The run intent, while no agent is there to be told. */
  orderToRun(): void {
    const state = new AgentState({ disk: this.disk, layout: this.layout });
    const before = state.runIntent();
    if (before.kind === 'ok') state.recordRunIntent({ ...before.value, intent: 'run', because: 'a test' });
  }

  /** The agent is killed: what it waits for never comes. etcd runs on. */
  async end(): Promise<void> {
    this.#stop.abort();
    this.#parts?.agent.wake();
    this.#child?.close();
    await this.#sim.run(60_000);
    await this.#run;
    this.disk.reboot('kill');
    this.#parts = undefined;
  }

  #killIfDue({ effect, moment }: CrashPoint): void {
    if (this.killAt?.effect !== effect || this.killAt.moment !== moment) return;
    this.killAt = undefined;
    // What the dead agent would do next reaches no disk.
    this.disk.crashAtStep(1);
    throw new Error(`the agent was killed ${moment} ${effect}`);
  }

  #becomeMember(list: MemberList): void {
    const { disk, layout, node } = this;
    disk.ensureDirectory(layout.stateDir);
    disk.ensureDirectory(layout.dataRoot);
    disk.replace(layout.volumeMarker, 'marker\n');
    const state = new AgentState({ disk, layout });
    state.volume.write({ marker: 'marker', dataRoot: layout.dataRoot, ownVolume: false });
    state.recordIdentity(identityOf(node, list));
    const at = '2026-01-01T00:00:00.000Z';
    const [clusterId, memberId] = [formatId(list.clusterId), formatId(node.memberId ?? 0n)];
    state.recordRunIntent({ intent: 'run', clusterId, memberId, because: 'a test', at });
  }
}

function identityOf(node: SimulatedNode, list: MemberList): IdentityRecord {
  const members = list.members.map((one) => ({
    ...one,
    peerUrls: [...one.peerUrls],
    clientUrls: [...one.clientUrls],
  }));
  return {
    nodeId: node.name,
    clusterName: 'default',
    clusterId: list.clusterId,
    memberId: node.memberId ?? 0n,
    name: node.name,
    peerUrl: node.peerUrl,
    grantId: 'g1',
    initialCluster: members.map(({ name, peerUrls }) => `${name}=${peerUrls[0]}`).join(),
    initialClusterToken: 'token',
    lastVoters: [...votersOf(members)] as IdentityRecord['lastVoters'],
    lastMembers: members,
  };
}

function configOf(node: SimulatedNode): Config {
  return {
    file: '/agent.yaml',
    node: { id: node.name },
    cluster: { name: 'default' },
    dataRoot: '/root',
    mustBeMount: false,
    stateDir: '/state',
    runDir: '/run/agent',
    etcd: {
      name: node.name,
      binary: '/usr/bin/etcd',
      version: undefined,
      binaries: {},
      peerUrl: node.peerUrl,
      clientUrl: node.clientUrl,
      listenPeerUrls: [node.peerUrl],
      listenClientUrls: [node.clientUrl],
      metricsUrl: 'http://127.0.0.1:2381',
      flags: {},
      user: undefined,
      oomScoreAdjust: 0,
      stopGraceMs: 30_000,
    },
    tls: { peer: undefined, server: undefined, client: undefined },
    role: { file: '/role.json' },
    upstream: { kind: 'none' },
    metrics: { listen: undefined },
    log: { level: 'error' },
    archives: { keep: 2, minDays: 7 },
    outbox: { maxBytes: 64 * 1024 * 1024, maxFacts: 100_000, keepDays: 7 },
    timing: {
      idleTurnMs: 10_000,
      probeIntervalMs: 2_000,
      probeDeadlineMs: 3_000,
      probeMisses: 5,
      statusIntervalMs: 30_000,
      listIntervalMs: 60_000,
      reportFirstMs: 1_000,
      reportMaxMs: 60_000,
    },
  };
}
