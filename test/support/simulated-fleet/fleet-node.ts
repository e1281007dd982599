import { assemble, type Parts } from '../../../src/agent/assemble.ts';
import type { CrashPoint, EffectName } from '../../../src/agent/effects.ts';
import type { Host } from '../../../src/agent/host.ts';
import { layoutOf } from '../../../src/agent/layout.ts';
import type { RoleSeen } from '../../../src/agent/observed.ts';
import type { ChildPort } from '../../../src/agent/ports.ts';
import { AgentState } from '../../../src/agent/state/agent-state.ts';
import type { IdentityRecord } from '../../../src/agent/state/schemas.ts';
import { silentLog } from '../../../src/base/log.ts';
import { outboxPort } from '../../../src/cli/outbox-control.ts';
import { parseVersion } from '../../../src/etcd/known-versions.ts';
import { formatId, type Member } from '../../../src/etcd/member.ts';
import type { StoredFact } from '../../../src/upstream/fact.ts';
import { Outbox } from '../../../src/upstream/outbox.ts';
import { MemoryDisk } from '../memory-disk.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { SimulatedChild, type SimulatedKeeper } from '../simulated-cluster/child.ts';
import type { SimulatedCluster } from '../simulated-cluster/cluster.ts';
import type { SimulatedNode } from '../simulated-cluster/node.ts';
import { SimulatedClusterPort } from '../simulated-cluster/port.ts';
import { AgentKilled, AgentLife } from './agent-life.ts';
import { fleetConfig, runDir } from './config.ts';
import type { CrashOrder, Passed } from './crash.ts';
import { NodeData } from './node-data.ts';

export interface FleetNodeOptions {
  readonly sim: SimulatedCluster;
  readonly name: string;
  readonly random: SeededRandom;
  /** What the role documents name as endpoints. */
  readonly endpoints: () => readonly string[];
  /** Told of every crash point that is passed; says whether the agent is to die there. */
  readonly atCrashPoint: (passed: Passed) => CrashOrder;
  readonly onDeath: (node: FleetNode) => void;
  /** Something happened that never may. */
  readonly onViolation: (what: string) => void;
}

type KnownRole = RoleSeen & { readonly kind: 'known' };

/** A machine of the fleet: disk, etcd and role document outlive its agents. */
export class FleetNode {
  readonly name: string;
  readonly etcd: SimulatedNode;
  readonly disk: MemoryDisk;
  readonly data: NodeData;
  readonly layout = layoutOf({ stateDir: '/state', dataRoot: '/root', clusterName: 'default', memberName: 'm' });
  role: KnownRole | undefined;
  /** Why etcd cannot be started on this machine; empty if it can. */
  cannotStart = '';
  readonly #options: FleetNodeOptions;
  readonly #keeper: SimulatedKeeper;
  /** All that its configuration has named, the newest last. */
  readonly #peerUrls: string[];
  readonly #passed = new Map<EffectName, number>();
  readonly #removedIds = new Set<bigint>();
  #life: AgentLife | undefined;
  #child: SimulatedChild | undefined;
  #parts: Parts | undefined;
  #outbox: Outbox | undefined;
  #ended: unknown;
  /** How often the machine was started. */
  #boots = 1;

  constructor(options: FleetNodeOptions) {
    this.#options = options;
    const { sim, name, random } = options;
    this.name = name;
    this.etcd = sim.addNode(name);
    this.disk = new MemoryDisk(random.fork());
    this.data = new NodeData(this.etcd, this.disk, this.layout);
    this.#keeper = sim.keeper(name);
    this.#peerUrls = [this.etcd.peerUrl];
  }

  /** Where the others reach it, by its configuration: in force at the next look, and for every new agent. */
  get peerUrl(): string {
    return this.#peerUrls.at(-1) ?? this.etcd.peerUrl;
  }

  set peerUrl(peerUrl: string) {
    this.#peerUrls.push(peerUrl);
  }

  /** Whether this is the member of this node, registered where it is now or where it was before. */
  owns({ peerUrls }: Pick<Member, 'peerUrls'>): boolean {
    return this.#peerUrls.some((peerUrl) => peerUrls.includes(peerUrl));
  }

  get alive(): boolean {
    return this.#life?.dead === false;
  }

  /** The error that ended the agent by itself: always a bug. */
  get ended(): unknown {
    return this.#ended;
  }

  get parts(): Parts {
    if (this.#parts === undefined) throw new Error(`no agent runs on ${this.name}`);
    return this.#parts;
  }

  /** The plan of the last turn: `blocked changeRefused: …`, `act startMember: …`, `waiting: …`. */
  get plan(): string {
    const plan = this.#parts?.agent.latest?.plan;
    if (plan === undefined) return 'none';
    if (plan.kind === 'act') return `act ${plan.step.kind}: ${plan.because}`;
    if (plan.kind !== 'blocked') return `${plan.kind}: ${plan.because}`;
    const { kind, ...rest } = plan.by;
    return `blocked ${kind}: ${JSON.stringify(rest, (_key, value) => (typeof value === 'bigint' ? formatId(value) : value))}`;
  }

  /** All that was accepted for upstream, oldest first. */
  factsOf(kind: string): readonly StoredFact[] {
    return (this.#outbox?.read({ limit: 10_000 }) ?? []).filter((fact) => fact.kind === kind);
  }

  /** The run directory says that the machine goes down. */
  get goesDown(): boolean {
    return this.disk.files().some(({ path }) => path === `${runDir}/shutdown`);
  }

  /** The records of this node, as its agent reads them. */
  get state(): AgentState {
    return new AgentState({ disk: this.disk, layout: this.layout });
  }

  /** This node is the member that runs on it, as if its agent had known that for long. */
  becomeMember(identity: Omit<IdentityRecord, 'nodeId' | 'clusterName'>): void {
    const { disk, layout, name } = this;
    disk.ensureDirectory(layout.stateDir);
    disk.ensureDirectory(layout.dataRoot);
    disk.replace(layout.volumeMarker, `marker-${name}\n`);
    const state = this.state;
    state.volume.write({ marker: `marker-${name}`, dataRoot: layout.dataRoot, ownVolume: false });
    state.recordIdentity({ nodeId: name, clusterName: 'default', ...identity });
    const [clusterId, memberId] = [formatId(identity.clusterId), formatId(identity.memberId)];
    state.recordRunIntent({ intent: 'run', clusterId, memberId, because: 'a test', at: '2026-01-01T00:00:00.000Z' });
  }

  /** The next agent, on what is there. */
  boot(): void {
    if (this.alive) throw new Error(`an agent runs on ${this.name}`);
    const life = new AgentLife(() => this.#options.onDeath(this));
    this.#life = life;
    const parts = this.#assemble(life);
    this.#parts = parts;
    this.#child?.recover();
    parts.agent.run(new AbortController().signal).catch((error: unknown) => {
      if (life.dead) return;
      this.#ended = error;
    });
  }

  /** The agent dies now, whatever it does. */
  kill(): void {
    this.#life?.kill();
  }

  /**
   * What its death means for the machine. `powerLoss`: etcd dies as well, what was not synced is lost, kept or torn, the run
   * directory is empty, and the boot is another one.
   */
  down(how: 'kill' | 'powerLoss'): void {
    this.#child?.close();
    this.#child = undefined;
    if (how === 'powerLoss') {
      this.#boots++;
      this.etcd.signal('SIGKILL');
    }
    this.disk.reboot(how);
    if (how === 'powerLoss') this.disk.wipe(runDir);
  }

  wake(): void {
    if (this.alive) this.#parts?.agent.wake();
  }

  #assemble(life: AgentLife): Parts {
    const { sim, random } = this.#options;
    const { etcd, layout, name } = this;
    const disk = life.through(this.disk);
    const clock = life.clock(sim.clock);
    const witness = `${layout.stateDir}/outbox-witness`;
    const outbox = new Outbox({ directory: layout.outboxDir, witness, disk, clock, random, log: silentLog });
    this.#outbox = outbox;
    const child = new SimulatedChild({
      keeper: this.#keeper,
      onLine: (number, line) => this.#hear(life, number, line),
      onChange: () => this.#changed(),
    });
    this.#child = child;
    return assemble({
      config: () => fleetConfig(name, this.peerUrl, etcd.clientUrl),
      layout,
      child: life.through(this.#guarded(child)),
      cluster: life.through(new SimulatedClusterPort(sim, etcd)),
      outbox: outboxPort(outbox, () => {}),
      disk,
      host: life.through(this.#host()),
      clock,
      random,
      log: silentLog,
      role: {
        role: () => this.role ?? { kind: 'unknown', because: 'there is no role document' },
        endpoints: () => (this.role === undefined ? [] : this.#options.endpoints()),
        grantId: () => this.role?.grantId ?? '',
      },
      version: () => (this.cannotStart === '' ? parseVersion('3.5.30') : undefined),
      versionProblem: () => this.cannotStart,
      holdersOf: () => [],
      portHolder: () => undefined,
      inspectData: async () => this.data.inspect(),
      checkTls: () => [],
      owner: undefined,
      onPlan: () => {},
      bootId: () => `boot-${this.#boots}`,
      agentVersion: '0.1.0',
      atCrashPoint: (point) => this.#pass(life, point),
    });
  }

  /** The child, with what may never happen: two etcd at once, a start of a member that was removed. */
  #guarded(child: SimulatedChild): ChildPort {
    const { onViolation } = this.#options;
    return {
      view: () => child.view(),
      start: async (order) => {
        if (this.etcd.isRunning) onViolation(`${this.name} starts a second etcd`);
        this.data.mount();
        const { memberId } = this.data;
        if (memberId !== undefined && this.#removedIds.has(memberId)) {
          onViolation(`${this.name} starts the removed member ${formatId(memberId)}`);
        }
        await child.start(order);
      },
      stop: (order) => child.stop(order),
      dump: (order) => child.dump(order),
      activity: () => child.activity(),
    };
  }

  #hear(life: AgentLife, number: number, line: string): void {
    if (life.dead || this.#parts === undefined) return;
    let urgent = false;
    for (const news of this.#parts.watch.take(number, line)) urgent = this.#parts.turnReports.hear(news) || urgent;
    if (urgent) this.#parts.agent.wake();
  }

  /** What was known of a life that is over says nothing about the next one. */
  #changed(): void {
    if (!this.alive) return;
    if (!this.etcd.isRunning) {
      this.#parts?.status.begin();
      this.#parts?.progress.begin();
      this.#parts?.stuck.answered();
    }
    this.wake();
  }

  #pass(life: AgentLife, point: CrashPoint): void {
    if (life.dead) throw new AgentKilled('the agent is dead');
    const occurrence = (this.#passed.get(point.effect) ?? 0) + (point.moment === 'before' ? 1 : 0);
    this.#passed.set(point.effect, occurrence);
    this.#noteRemoval(point);
    const order = this.#options.atCrashPoint({ ...point, node: this.name, occurrence });
    if (order === undefined) return;
    if (order === 'die') {
      life.kill();
      throw new AgentKilled(`killed ${point.moment} ${point.effect}`);
    }
    // A write is cut at a step of the disk, a call that is on its way by the time that it takes.
    this.disk.crashAtStep(order.inSteps);
    this.#options.sim.clock.after(order.inSteps, () => life.kill());
  }

  #noteRemoval({ effect, moment }: CrashPoint): void {
    if (effect === 'removal.archive' && moment === 'before' && this.etcd.isRunning) {
      this.#options.onViolation(`${this.name} moves the data of an etcd that runs`);
    }
    if (effect === 'removal.tombstone' && moment === 'after') {
      const { memberId } = this.parts.state.knownIdentity() ?? {};
      if (memberId !== undefined) this.#removedIds.add(memberId);
    }
  }

  #host(): Host {
    const { disk } = this;
    return {
      freeBytes: () => 1e11,
      isMountPoint: () => false,
      exists: (path) => disk.read(path) !== undefined || disk.list(path) !== undefined,
      oomKills: () => undefined,
      removeTree: (path) => disk.wipe(path),
      giveTo: () => {},
      fingerprint: () => 'same',
    };
  }
}
