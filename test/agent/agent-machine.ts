import { assemble, type Parts } from '../../src/agent/assemble.ts';
import type { Config } from '../../src/agent/config.ts';
import type { Host } from '../../src/agent/host.ts';
import { type Layout, layoutOf } from '../../src/agent/layout.ts';
import type { RoleSeen } from '../../src/agent/observed.ts';
import type {
  ChildEnd,
  ChildPort,
  ChildView,
  ClusterPort,
  MemberStatusAnswer,
  StopOrder,
} from '../../src/agent/ports.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import type { IdentityRecord } from '../../src/agent/state/schemas.ts';
import { AgentError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { outboxPort } from '../../src/cli/outbox-control.ts';
import type { DataDir } from '../../src/etcd/data-dir.ts';
import { parseVersion } from '../../src/etcd/known-versions.ts';
import type { MemberList } from '../../src/etcd/member.ts';
import type { StoredFact } from '../../src/upstream/fact.ts';
import { Outbox } from '../../src/upstream/outbox.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { DiskCrash, MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

/** The cluster of these tests: we are the third of three voters. */
export const cluster = 0xc1n;
export const us = 0xa3n;
export const others = [0xa1n, 0xa2n] as const;

/** A voter's role, as its document says. */
export const knownRole = {
  kind: 'known',
  role: 'consensus-member',
  grantId: 'g1',
  spent: false,
  clusterId: undefined,
  hasEndpoints: false,
  accepted: [],
} as const satisfies RoleSeen;

const silent = () => Promise.reject(new SilentError('nobody answers'));

class SilentError extends AgentError {
  readonly code = 'SILENT';
}

/**
 * One whole agent, as cli/wire.ts joins it, on a disk in memory, with an etcd and a cluster that do what the test says. The
 * disk, the etcd and the cluster outlive the agent: {@link boot} makes the next one.
 */
export class AgentMachine {
  readonly clock = new FakeClock();
  readonly random: SeededRandom;
  readonly disk: MemoryDisk;
  readonly child: FakeChild;
  readonly layout: Layout = layoutOf({
    stateDir: '/state',
    dataRoot: '/root',
    clusterName: 'default',
    memberName: 'n3',
  });
  /** What each member answers when it is asked for its list; missing: silence. Key: client URL. */
  readonly lists = new Map<string, MemberList>();
  /** How often the others were asked. */
  asked = 0;
  /** The version of etcd that the role asks for. */
  roleVersion: string | undefined;
  /** What a member says of itself; missing: silence. Key: client URL. */
  readonly statuses = new Map<string, Partial<MemberStatusAnswer>>();
  /** The endpoints that were asked for their Status. */
  readonly statusAsked: string[] = [];
  /** Our etcd leads, until it is told to hand over. */
  leads = false;
  /** Where it was told to hand over, and to whom. */
  readonly leadMoves: { readonly endpoint: string; readonly target: bigint }[] = [];
  /** Of every file that a start depends on. */
  fingerprint = 'same';
  /** Whose data lies in the data directory. */
  dataMember: bigint = us;
  /** Directories that cannot be removed. */
  readonly unremovable = new Set<string>();
  /** What the configuration says otherwise than {@link config}. */
  etcdConfig: Partial<Config['etcd']> = {};
  role: RoleSeen = knownRole;

  #parts: Parts | undefined;
  #outbox: Outbox | undefined;
  #stop = new AbortController();
  #run: Promise<unknown> = Promise.resolve();
  #died: unknown;

  constructor(seed = 1) {
    this.random = new SeededRandom(seed);
    this.disk = new MemoryDisk(this.random.fork());
    this.child = new FakeChild(
      this.clock,
      () => this.disk.down,
      (life, line) => this.#hear(life, line),
    );
    for (const file of ['member/wal/0000000000000000-0000000000000000.wal', 'member/snap/db'])
      this.disk.put(`${this.layout.dataDir}/${file}`, 'data');
    this.#becomeMember();
    // Our own etcd has its quorum, until a test says what is answered.
    this.answer([us, [...others, us]]);
  }

  get parts(): Parts {
    if (this.#parts === undefined) throw new Error('no agent runs');
    return this.#parts;
  }

  /** Everything that was accepted for upstream, oldest first. */
  get facts(): readonly StoredFact[] {
    return this.#outbox?.read({ limit: 10_000 }) ?? [];
  }

  factsOf(kind: string): readonly StoredFact[] {
    return this.facts.filter((fact) => fact.kind === kind);
  }

  /** The error that ended the agent, if it did not end by {@link endAgent}. */
  get died(): unknown {
    return this.#died;
  }

  /** The node never was a member: no records, no data, no etcd. */
  becomeNobody(): void {
    this.child.ends({ kind: 'signal', name: 'SIGTERM' });
    for (const directory of [this.layout.stateDir, this.layout.dataRoot]) this.disk.wipe(directory);
  }

  /** A new agent on what is there: it reads the log of the newest life, as the real one does. */
  boot(): void {
    const { clock, disk, random, layout, child } = this;
    this.#stop = new AbortController();
    this.#died = undefined;
    try {
      const { outboxDir: directory, outboxWitness: witness, outboxWitnessTwin: path } = layout;
      const twin = { path, node: 'n1', disk };
      const outbox = new Outbox({ directory, witness, twin, disk, clock, random, log: silentLog });
      this.#outbox = outbox;
      this.#parts = this.#assemble(outbox);
      for (const line of child.lines) this.#parts.watch.take(child.view().life, line);
      this.#run = this.#parts.agent.run(this.#stop.signal).catch((error: unknown) => {
        this.#died = error;
      });
    } catch (error) {
      this.#died = error;
    }
  }

  /** The agent ends; its disk stays as it is, or as a power loss leaves it. */
  async endAgent(kind: 'kill' | 'powerLoss' = 'kill'): Promise<void> {
    this.#stop.abort();
    this.#parts?.agent.wake();
    await this.clock.advance(10_000);
    await this.#run;
    this.disk.reboot(kind);
  }

  /** Lets time pass until `holds`; throws if that takes longer than `withinMs` of the agent's time. */
  async until(holds: () => boolean, what: string, withinMs = 120_000): Promise<void> {
    const untilMs = this.clock.monotonicMs() + withinMs;
    while (!holds()) {
      if (this.#died !== undefined) throw this.#died;
      if (this.clock.monotonicMs() > untilMs) {
        const plan = JSON.stringify(this.#parts?.agent.latest?.plan, (_key, value) =>
          typeof value === 'bigint' ? value.toString(16) : value,
        );
        throw new Error(`not within ${withinMs} ms: ${what}; the plan is ${plan}`);
      }
      await this.pass(100);
    }
  }

  /** Lets `ms` pass, in small steps. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.clock.monotonicMs() + ms;
    while (this.clock.monotonicMs() < untilMs) {
      await this.clock.advance(Math.min(100, untilMs - this.clock.monotonicMs()));
    }
  }

  /** The plan of the last turn: `blocked removedByOthers`, `act startMember`, `waiting`, … */
  get plan(): string {
    const plan = this.#parts?.agent.latest?.plan;
    if (plan === undefined) return '';
    return plan.kind === 'blocked'
      ? `blocked ${plan.by.kind}`
      : plan.kind === 'act'
        ? `act ${plan.step.kind}`
        : plan.kind;
  }

  /** The named members answer with a list of `members`; the others are silent. */
  answer(...answers: readonly (readonly [by: bigint, members: readonly bigint[]])[]): void {
    this.lists.clear();
    for (const [by, members] of answers) this.answerAt(urlOf(by), by, members);
  }

  /** A member answers at this address, besides. */
  answerAt(url: string, by: bigint, members: readonly bigint[]): void {
    this.lists.set(url, { clusterId: cluster, answeredBy: by, members: members.map(memberOf), linearizable: true });
  }

  #hear(life: number, line: string): void {
    if (this.#parts === undefined || this.#stop.signal.aborted) return;
    let urgent = false;
    for (const news of this.#parts.watch.take(life, line)) urgent = this.#parts.turnReports.hear(news) || urgent;
    if (urgent) this.#parts.agent.wake();
  }

  #assemble(outbox: Outbox): Parts {
    const { disk, clock, random, layout, child } = this;
    const parts = assemble({
      config: () => ({ ...config, etcd: { ...config.etcd, ...this.etcdConfig } }),
      layout,
      child,
      cluster: this.#cluster(),
      outbox: outboxPort(outbox, () => {}),
      disk,
      host: this.#host(),
      clock,
      random,
      log: silentLog,
      role: {
        role: () => this.role,
        endpoints: () => [],
        grantId: () => 'g1',
        etcdVersion: () => this.roleVersion,
      },
      version: () => parseVersion('3.5.30'),
      versionProblem: () => '',
      holdersOf: () => [],
      portHolder: () => undefined,
      inspectData: async () => this.#inspectData(),
      checkTls: () => [],
      owner: undefined,
      agentVersion: '0.1.0',
      bootId: () => 'boot-1',
      onPlan: () => {},
    });
    child.onChange = () => parts.agent.wake();
    return parts;
  }

  #cluster(): ClusterPort {
    return {
      memberList: async (endpoint) => {
        this.asked++;
        return this.lists.get(endpoint) ?? (await silent());
      },
      peerCluster: silent,
      status: async (endpoint) => {
        this.statusAsked.push(endpoint);
        const answer = this.statuses.get(endpoint);
        return answer === undefined ? await silent() : { ...anyStatus, ...answer };
      },
      isLeader: async () => this.leads,
      moveLeader: async (endpoint, target) => {
        this.leads = false;
        this.leadMoves.push({ endpoint, target });
      },
      activePeers: silent,
      addLearner: silent,
      promoteMember: silent,
      removeMember: silent,
      updateMember: silent,
      keys: () => ({ get: silent, list: silent, put: silent, create: silent, replace: silent, remove: silent }),
    };
  }

  #host(): Host {
    const { disk } = this;
    return {
      freeBytes: () => 1e9,
      isMountPoint: () => false,
      exists: (path) => disk.read(path) !== undefined || disk.list(path) !== undefined,
      oomKills: () => undefined,
      removeTree: (path) => {
        if (this.unremovable.has(path)) throw Object.assign(new Error(`EACCES: rmdir '${path}'`), { code: 'EACCES' });
        disk.wipeTree(path);
      },
      giveTo: () => {},
      fingerprint: () => this.fingerprint,
    };
  }

  #inspectData(): DataDir {
    const names = this.disk.list(this.layout.dataDir);
    if (names === undefined) return { kind: 'absent' };
    if (!names.includes('member')) return { kind: 'empty', others: [] };
    const last = { term: 1n, index: 2n };
    const rest = { commit: 2n, term: 1n, tornTail: false, hasDb: true, hasSnapshots: false, segments: 1 };
    return { kind: 'member', memberId: this.dataMember, clusterId: cluster, last, ...rest };
  }

  #becomeMember(): void {
    const { disk, layout } = this;
    disk.ensureDirectory(layout.stateDir);
    disk.ensureDirectory(layout.dataRoot);
    disk.replace(layout.volumeMarker, 'marker\n');
    const agentState = new AgentState({ disk, layout });
    agentState.volume.write({ marker: 'marker', dataRoot: layout.dataRoot, ownVolume: false });
    agentState.recordIdentity(identity);
    const at = '2026-01-01T00:00:00.000Z';
    agentState.recordRunIntent({ intent: 'run', clusterId: 'c1', memberId: 'a3', because: 'a test', at });
  }
}

/** etcd as the supervisor shows it: it outlives the agent, and so does the record of its end. */
export class FakeChild implements ChildPort {
  /** Lines of the newest life. */
  readonly lines: string[] = [];
  /** How often it was started. */
  starts = 0;
  onChange: () => void = () => {};
  readonly #clock: FakeClock;
  readonly #isDown: () => boolean;
  readonly #onLine: (life: number, line: string) => void;
  #phase: ChildView['phase'] = 'ready';
  #life = 1;
  #end: ChildEnd | undefined;
  #ready: { readonly wallMs: number; readonly monotonicMs: number } | undefined;
  #readyMs = 0;
  #asked: ChildEnd['asked'] = { kind: 'none' };

  constructor(clock: FakeClock, isDown: () => boolean, onLine: (life: number, line: string) => void) {
    this.#clock = clock;
    this.#isDown = isDown;
    this.#onLine = onLine;
  }

  view(): ChildView {
    const up = this.#phase !== 'down';
    return {
      phase: this.#phase,
      because: '',
      trouble: '',
      idleMs: undefined,
      life: this.#life,
      pid: up ? 4711 : undefined,
      adopted: false,
      startedAtMs: this.#clock.wallMs(),
      readyAtMs: this.#ready?.wallMs,
      readyMs: this.#readyForMs(),
      end: this.#end,
    };
  }

  async start(): Promise<void> {
    if (this.#isDown()) throw new DiskCrash('the machine is down');
    if (this.#phase !== 'down') throw new Error('two etcd at once');
    this.starts++;
    this.#life++;
    this.lines.length = 0;
    this.#asked = { kind: 'none' };
    this.#phase = 'starting';
    this.#ready = undefined;
    this.#readyMs = 0;
    this.onChange();
  }

  async stop(order: StopOrder): Promise<void> {
    this.#asked = { kind: 'signalled', signal: 'SIGTERM', afterGrace: false, why: order.why };
    this.ends({ kind: 'signal', name: 'SIGTERM' });
  }

  async dump(order: StopOrder): Promise<void> {
    await this.stop(order);
  }

  #readyForMs(): number {
    if (this.#phase !== 'ready' || this.#ready === undefined) return this.#readyMs;
    return this.#clock.monotonicMs() - this.#ready.monotonicMs;
  }

  activity(): undefined {
    return undefined;
  }

  says(...lines: readonly string[]): void {
    for (const line of lines) {
      this.lines.push(line);
      this.#onLine(this.#life, line);
    }
  }

  becomesReady(): void {
    this.#phase = 'ready';
    this.#ready = { wallMs: this.#clock.wallMs(), monotonicMs: this.#clock.monotonicMs() };
    this.onChange();
  }

  /** No agent has ever started it. */
  neverRan(): void {
    this.#phase = 'down';
    this.#life = 0;
    this.#end = undefined;
  }

  /** A new agent does not know yet that it is ready. */
  isAskedAnew(): void {
    this.#phase = 'starting';
    this.#ready = undefined;
  }

  /** `endedAtMs`: as it was recorded; null: by nobody. */
  ends(exit: ChildEnd['exit'], endedAtMs: number | null = this.#clock.wallMs()): void {
    this.#readyMs = this.#readyForMs();
    this.#phase = 'down';
    this.#end = { life: this.#life, exit, asked: this.#asked, endedAtMs: endedAtMs ?? undefined };
    this.onChange();
  }
}

export const anyStatus: MemberStatusAnswer = {
  memberId: others[0],
  clusterId: cluster,
  leader: others[0],
  isLearner: false,
  raftTerm: 2n,
  raftIndex: 10n,
  raftAppliedIndex: 10n,
  dbSizeBytes: 1n,
  version: '3.5.30',
  errors: [],
};

/** Lines of etcd's log. */
export const says = {
  ownRemoval:
    '{"level":"info","ts":"2026-01-01T00:00:00.000000Z","caller":"membership/cluster.go:473","msg":"removed member","cluster-id":"c1","local-member-id":"a3","removed-remote-peer-id":"a3","removed-remote-peer-urls":["http://a3:2380"]}',
  permanentlyRemoved:
    '{"level":"warn","ts":"2026-01-01T00:00:00.000000Z","caller":"etcdserver/server.go:1156","msg":"server error","error":"the member has been permanently removed from the cluster"}',
  panic: [
    'panic: failed to find local ID in cluster members',
    '',
    'goroutine 211 [running]:',
    'go.etcd.io/etcd/server/v3/etcdserver/api/membership.(*RaftCluster).IsLocalMemberLearner(0xc000)',
    '\tgo.etcd.io/etcd/server/v3/etcdserver/api/membership/cluster.go:925 +0x1c5',
  ],
} as const;

export function urlOf(id: bigint): string {
  return `http://${id.toString(16)}:2379`;
}

function memberOf(id: bigint): IdentityRecord['lastMembers'][number] {
  const name = id.toString(16);
  return { id, name, peerUrls: [`http://${name}:2380`], clientUrls: [urlOf(id)], isLearner: false };
}

const members = [...others, us].map(memberOf);

export const identity: IdentityRecord = {
  nodeId: 'node-3',
  clusterName: 'default',
  clusterId: cluster,
  memberId: us,
  name: 'n3',
  peerUrl: 'http://a3:2380',
  grantId: 'g1',
  initialCluster: 'n3=http://a3:2380',
  initialClusterToken: 'token',
  lastVoters: members,
  lastMembers: members,
};

const config: Config = {
  file: '/agent.yaml',
  node: { id: 'node-3' },
  cluster: { name: 'default' },
  dataRoot: '/unused',
  mustBeMount: false,
  stateDir: '/unused',
  runDir: '/unused',
  etcd: {
    name: 'n3',
    binary: '/usr/bin/etcd',
    version: undefined,
    binaries: {},
    peerUrl: 'http://a3:2380',
    clientUrl: urlOf(us),
    listenPeerUrls: ['http://127.0.0.1:2380'],
    listenClientUrls: ['http://127.0.0.1:2379'],
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
