import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { DataDir } from '../etcd/data-dir.ts';
import type { EtcdVersion } from '../etcd/known-versions.ts';
import { formatId } from '../etcd/member.ts';
import type { TlsFinding, TlsUse } from '../pki/check-tls.ts';
import { Adoption } from './adoption.ts';
import { Agent } from './agent.ts';
import { Alarms } from './alarms.ts';
import { Archives } from './archive.ts';
import type { Config } from './config.ts';
import { Ends } from './ends.ts';
import { Executor } from './executor.ts';
import { ClusterFounding } from './founder.ts';
import type { Host, Owner } from './host.ts';
import { Journal } from './journal.ts';
import type { Layout } from './layout.ts';
import { LifeWatch } from './life-watch.ts';
import { Membership } from './membership.ts';
import type { Observed, RoleSeen } from './observed.ts';
import { Observer } from './observer.ts';
import { Operator } from './operator.ts';
import { Peers } from './peers.ts';
import type { ChildPort, ClusterPort, OutboxPort } from './ports.ts';
import { RemovalWatch } from './removal.ts';
import { Reports } from './reports.ts';
import { type Holder, StartOrders } from './start-order.ts';
import { AgentState } from './state/agent-state.ts';
import { StatusWatch } from './status-watch.ts';
import type { Plan } from './step.ts';
import { StuckWatch } from './stuck-watch.ts';
import { TurnReports } from './turn-reports.ts';
import { DataVolume } from './volume.ts';

/** The world as the agent meets it. cli/wire.ts brings the real one, a simulator its own. */
export interface World {
  readonly config: () => Config;
  readonly layout: Layout;
  readonly child: ChildPort;
  readonly cluster: ClusterPort;
  readonly outbox: OutboxPort;
  readonly disk: Disk;
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly role: RolePort;
  /** The version that the configured binary says it is; undefined if it does not run. */
  readonly version: () => EtcdVersion | undefined;
  /** Why it is not known, in words; empty while it is being asked. */
  readonly versionProblem: () => string;
  readonly holderOf: (path: string) => Holder | undefined;
  /** Who listens on a TCP port of this machine; undefined if nobody is seen. */
  readonly portHolder: (port: number) => Holder | undefined;
  /** Reads what lies in the data directory; never throws. */
  readonly inspectData: () => Promise<DataDir>;
  /** Looks at certificates and keys. */
  readonly checkTls: (use: TlsUse) => readonly TlsFinding[];
  /** The user that etcd runs as, if it is not ours. */
  readonly owner: Owner | undefined;
  readonly onPlan: (made: Plan, seen: Observed) => void;
}

/** The role this node has been given, as its source tells it. */
export interface RolePort {
  role(): RoleSeen;
  /** Client URLs of voters that the role names. */
  endpoints(): readonly string[];
  /** Empty while there is no role. */
  grantId(): string;
}

/** The joined parts of one agent. */
export interface Parts {
  readonly agent: Agent;
  readonly operator: Operator;
  readonly observer: Observer;
  readonly watch: LifeWatch;
  readonly turnReports: TurnReports;
  readonly membership: Membership;
  readonly status: StatusWatch;
  readonly stuck: StuckWatch;
  readonly ends: Ends;
  readonly reports: Reports;
  readonly state: AgentState;
  readonly journal: Journal;
  readonly alarms: Alarms;
  readonly volume: DataVolume;
}

/** Joins the parts of the agent; starts nothing. */
export function assemble(world: World): Parts {
  const { config, layout, child, cluster, disk, host, clock, random, log, role } = world;
  disk.ensureDirectory(layout.stateDir);
  const state = new AgentState({ disk, layout });
  const { node, etcd } = config();
  const reports = new Reports({ outbox: world.outbox, state, clock });
  const journal = new Journal({ path: `${layout.stateDir}/journal`, disk, clock, random });
  state.distrust('journal', journal.look());
  const ends = new Ends({ state, reports, clock, random, log });
  const peers = new Peers({ cluster, clock });
  const removal = new RemovalWatch({
    state,
    peers,
    clock,
    wasReported: (memberId) => reports.reported.removedSelves.includes(formatId(memberId)),
  });
  const watch = new LifeWatch();
  const everyMs = () => config().timing.statusIntervalMs;
  const status = new StatusWatch({ cluster, clock, everyMs });
  const stuck = new StuckWatch({
    child,
    peers,
    clock,
    missesUntilStuck: () => config().timing.probeMisses,
    lastStuckEndMs: () => ends.all.find((end) => end.class === 'stuck')?.endedAtMs,
  });
  const membership = new Membership({
    cluster,
    clock,
    state,
    reports,
    log,
    everyMs: () => config().timing.listIntervalMs,
  });
  const volume = new DataVolume({
    record: state.volume,
    disk,
    host,
    random,
    layout,
    mustBeMount: config().mustBeMount,
  });
  const orders = new StartOrders({
    usedVersion: state.usedVersion,
    config,
    layout,
    host,
    clock,
    version: world.version,
    versionProblem: world.versionProblem,
    checkTls: world.checkTls,
    holderOf: world.holderOf,
    ownPid: () => child.view().pid,
  });
  const about = {
    nodeId: node.id,
    clusterName: config().cluster.name,
    peerUrl: etcd.peerUrl,
    clientUrl: etcd.clientUrl,
  };
  const founding = new ClusterFounding({
    ...about,
    name: etcd.name,
    state,
    volume,
    layout,
    disk,
    host,
    random,
    cluster,
    owner: world.owner,
  });
  const observer = new Observer({
    child,
    watch,
    ends,
    peers,
    removal,
    membership,
    founding,
    state,
    volume,
    layout,
    inspectData: world.inspectData,
    host,
    clock,
    role: () => spentRole(role.role(), state),
    preflight: () => orders.preflight(state.knownIdentity()),
    isStuck: () => stuck.look(),
    isUnresponsive: () => stuck.unresponsive,
    portHolder: world.portHolder,
  });
  const executor = new Executor({
    child,
    cluster,
    peers,
    ends,
    reports,
    founding,
    archives: new Archives({ disk, host, layout }),
    journal,
    state,
    layout,
    disk,
    clock,
    log,
    startOrder: (identity, asFounder) => orders.order(identity, asFounder),
    stopGraceMs: () => config().etcd.stopGraceMs,
    archiveBound: () => config().archives,
    grantId: () => role.grantId(),
    lookAtData: () => observer.lookAtData(true),
    quiet: () => status.quiet(),
    stuckRestarted: () => stuck.restarted(),
  });
  const alarms = new Alarms({ reports, clock, log });
  const turnReports = new TurnReports({
    child,
    membership,
    status,
    reports,
    state,
    ends,
    alarms,
    stuck,
    clock,
    log,
    notReadyAfterMs: () => unresponsiveAfterMs(config()),
  });
  const agent = new Agent({
    observer,
    executor,
    reports,
    clock,
    random,
    log,
    idleTurnMs: () => config().timing.idleTurnMs,
    beside: (seen) => {
      state.distrust('journal', journal.look());
      return turnReports.look(seen);
    },
    onPlan: world.onPlan,
  });
  const roleEndpoints = () => role.endpoints();
  const grantId = () => role.grantId();
  const adoption = new Adoption({ config, cluster, state, layout, orders, roleEndpoints, grantId });
  const operator = new Operator({
    agent,
    observer,
    child,
    peers,
    ends,
    reports,
    state,
    founding,
    adoption,
    volume,
    clock,
  });
  return {
    agent,
    operator,
    observer,
    watch,
    turnReports,
    membership,
    status,
    stuck,
    ends,
    reports,
    state,
    journal,
    alarms,
    volume,
  };
}

/** As long as an etcd that was ready may stay silent before that is told. Unit: ms. */
function unresponsiveAfterMs({ timing }: Config): number {
  return timing.probeMisses * (timing.probeIntervalMs + timing.probeDeadlineMs);
}

/** A grant that ended with the removal of its member counts no more; only a new grant id does. */
function spentRole(role: RoleSeen, state: AgentState): RoleSeen {
  if (role.kind === 'unknown') return role;
  const stones = state.tombstones.read();
  const spent =
    stones.kind === 'ok' && stones.value.some((stone) => stone.grantId !== '' && stone.grantId === role.grantId);
  return { ...role, spent };
}
