import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { DataDir } from '../etcd/data-dir.ts';
import { type EtcdVersion, formatVersion } from '../etcd/known-versions.ts';
import { formatId } from '../etcd/member.ts';
import type { TlsFinding, TlsUse } from '../pki/check-tls.ts';
import { Adoption } from './adoption.ts';
import { Agent } from './agent.ts';
import { Alarms } from './alarms.ts';
import { Archives } from './archive.ts';
import { ChangeLock, describeResolved } from './change/change-lock.ts';
import { ClusterChanges, isChangeEntry } from './change/cluster-change.ts';
import { ClusterWatch } from './change/cluster-watch.ts';
import { Hearings } from './change/hearing.ts';
import { Joining } from './change/joining.ts';
import { Leaving } from './change/leaving.ts';
import { MemberKeyWriter } from './change/member-key-writer.ts';
import { OwnAddress } from './change/own-address.ts';
import { Stops } from './change/stops.ts';
import type { Config } from './config.ts';
import { type AtCrashPoint, Effects } from './effects.ts';
import { Ends } from './ends.ts';
import { Executor } from './executor.ts';
import { ClusterFounding } from './founder.ts';
import { HealthWatch } from './health-watch.ts';
import type { Host, Owner } from './host.ts';
import { Journal } from './journal.ts';
import type { Layout } from './layout.ts';
import { LifeWatch } from './life-watch.ts';
import { LogProgress } from './log-progress.ts';
import { MemberOrders } from './member-orders.ts';
import { Membership } from './membership.ts';
import type { Observed, RoleSeen } from './observed.ts';
import { Observer } from './observer.ts';
import { Operator } from './operator.ts';
import { Peers } from './peers.ts';
import { PendingStart } from './pending-start.ts';
import type { ChildPort, ClusterPort, OutboxPort } from './ports.ts';
import { RemovalWatch } from './removal.ts';
import { Reports } from './reports.ts';
import { ShutdownMark } from './shutdown-mark.ts';
import { isSpentGrant } from './spent-grant.ts';
import { type Holder, StartOrders } from './start-order.ts';
import { AgentState } from './state/agent-state.ts';
import { StatusWatch } from './status-watch.ts';
import type { Plan } from './step.ts';
import { StuckWatch } from './stuck-watch.ts';
import { TurnReports } from './turn-reports.ts';
import { unfulfilledVersion } from './version-wish.ts';
import { DataVolume } from './volume.ts';
import { VoterWatch } from './voter-watch.ts';

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
  readonly holdersOf: (path: string) => readonly Holder[];
  /** Who listens on a TCP port of this machine; undefined if nobody is seen. */
  readonly portHolder: (port: number) => Holder | undefined;
  /** Reads what lies in the data directory; never throws. */
  readonly inspectData: () => Promise<DataDir>;
  /** Looks at certificates and keys. */
  readonly checkTls: (use: TlsUse) => readonly TlsFinding[];
  /** The user that etcd runs as, if it is not ours. */
  readonly owner: Owner | undefined;
  readonly onPlan: (made: Plan, seen: Observed) => void;
  /** Names this boot of the machine; undefined if it cannot be told. */
  readonly bootId: () => string | undefined;
  /** Of this program. */
  readonly agentVersion: string;
  /** Told of every effect of a membership flow; a test ends the agent there. */
  readonly atCrashPoint?: AtCrashPoint;
}

/** The role this node has been given, as its source tells it. */
export interface RolePort {
  role(): RoleSeen;
  /** Client URLs of voters that the role names. */
  endpoints(): readonly string[];
  /** Empty while there is no role. */
  grantId(): string;
  /** The version of etcd that the role asks for; undefined, or left out, if it asks for none. */
  etcdVersion?(): string | undefined;
}

/** The joined parts of one agent. */
export interface Parts {
  readonly agent: Agent;
  readonly operator: Operator;
  readonly memberOrders: MemberOrders;
  readonly observer: Observer;
  readonly watch: LifeWatch;
  readonly turnReports: TurnReports;
  readonly membership: Membership;
  readonly status: StatusWatch;
  readonly stuck: StuckWatch;
  readonly health: HealthWatch;
  readonly voters: VoterWatch;
  readonly pendingStart: PendingStart;
  readonly ends: Ends;
  readonly reports: Reports;
  readonly state: AgentState;
  readonly journal: Journal;
  readonly alarms: Alarms;
  readonly volume: DataVolume;
  readonly progress: LogProgress;
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
  const ownUrl = () => config().etcd.clientUrl;
  const status = new StatusWatch({ cluster, clock, everyMs, ownUrl });
  const stuck = new StuckWatch({
    child,
    peers,
    clock,
    missesUntilStuck: () => config().timing.probeMisses,
    lastStuckEndMs: () => {
      const end = ends.all.find((one) => one.class === 'stuck');
      return end?.endedAtMs ?? end?.noticedAtMs;
    },
  });
  const membership = new Membership({
    cluster,
    clock,
    state,
    reports,
    log,
    everyMs: () => config().timing.listIntervalMs,
    ownUrl,
  });
  const health = new HealthWatch({ child, stuck, membership, state, clock });
  const voters = new VoterWatch({ cluster, clock });
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
    holdersOf: world.holdersOf,
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
  const effects = new Effects(world.atCrashPoint);
  const hearings = new Hearings({ cluster, clock });
  const lock = new ChangeLock({
    cluster,
    clock,
    random,
    log,
    effects,
    nodeId: node.id,
    interrupted: journal.interrupted().some(({ what }) => isChangeEntry(what)),
    onResolved: (resolved) =>
      reports.report({
        kind: 'change.resolved',
        change: describeResolved(resolved),
        applied: resolved.applied === 'unknown' ? null : resolved.applied,
      }),
  });
  const changes = new ClusterChanges({
    cluster,
    hearings,
    lock,
    journal,
    effects,
    clock,
    log,
    quiet: (quiet) => (quiet ? status.quiet() : status.askAgain()),
  });
  const clusterWatch = new ClusterWatch({
    hearings,
    clock,
    host,
    roleEndpoints: () => role.endpoints(),
    clientUrl: () => config().etcd.clientUrl,
    peerUrl: () => config().etcd.peerUrl,
    dataRoot: layout.dataRoot,
  });
  const memberEndpoints = () => clusterWatch.endpoints(state.knownIdentity());
  const joining = new Joining({
    nodeId: node.id,
    clusterName: config().cluster.name,
    name: etcd.name,
    peerUrl: etcd.peerUrl,
    state,
    volume,
    layout,
    disk,
    host,
    owner: world.owner,
    random,
    clock,
    log,
    effects,
    cluster,
    hearings,
    changes,
    endpoints: memberEndpoints,
    grantId: () => role.grantId(),
    clusterId: () => {
      const seen = role.role();
      return seen.kind === 'known' && seen.clusterId !== undefined ? seen.clusterId : state.knownIdentity()?.clusterId;
    },
  });
  const accepted = () => {
    const seen = role.role();
    return seen.kind === 'known' ? seen.accepted : [];
  };
  const leaving = new Leaving({
    state,
    changes,
    effects,
    clock,
    log,
    clientUrl: () => config().etcd.clientUrl,
    endpoints: memberEndpoints,
    accepted,
  });
  const progress = new LogProgress({ state, clock, log, beforeLast: () => status.beforeLast });
  const keepProgress = (how: 'now' | 'ifDue') => {
    const identity = state.knownIdentity();
    if (identity !== undefined) progress.keep(identity, how);
  };
  const memberKey = new MemberKeyWriter({
    nodeId: node.id,
    agentVersion: world.agentVersion,
    cluster,
    child,
    state,
    clock,
    log,
    progress: (identity) => progress.noted(identity),
    onWritten: () => progress.keyWritten(),
    clientUrl: () => config().etcd.clientUrl,
    etcdVersion: () => status.latest?.version ?? '',
    stopWaits: () => stops.waiting,
  });
  const stops: Stops = new Stops({
    keepProgress: () => keepProgress('now'),
    announce: () => memberKey.stopping(),
    child,
    cluster,
    hearings,
    effects,
    changes,
    lock,
    state,
    clock,
    log,
    clientUrl: () => config().etcd.clientUrl,
    endpoints: memberEndpoints,
    accepted,
  });
  const shutdownMark = new ShutdownMark({ disk, runDir: config().runDir, bootId: world.bootId, log });
  const goingDown = () => shutdownMark.stands;
  const observer = new Observer({
    goingDown,
    child,
    progress,
    watch,
    ends,
    peers,
    removal,
    membership,
    founding,
    joining,
    clusterWatch,
    leftRecord: () => changes.mayHaveLeft,
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
    goingDown,
    child,
    cluster,
    peers,
    ends,
    reports,
    founding,
    joining,
    leaving,
    ownAddress: new OwnAddress({
      state,
      cluster,
      changes,
      log,
      clientUrl: () => config().etcd.clientUrl,
      endpoints: memberEndpoints,
    }),
    stops,
    clusterWatch,
    effects,
    archives: new Archives({ disk, host, layout }),
    journal,
    state,
    layout,
    disk,
    clock,
    log,
    startingWith: (identity) => orders.preflight(identity).startingWith,
    startOrder: (identity, asFounder) => orders.order(identity, asFounder),
    ownUrl,
    stopGraceMs: () => config().etcd.stopGraceMs,
    archiveBound: () => config().archives,
    resolveChange: () => changes.resolve(memberEndpoints(), state.knownIdentity()?.clusterId),
    grantId: () => role.grantId(),
    lookAtData: () => observer.lookAtData(true),
    quiet: () => status.quiet(),
    stuckRestarted: () => stuck.restarted(),
    membershipChanged: () => membership.trigger(),
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
    health,
    voters,
    versionWish: () => {
      const [used, configured] = [state.usedVersion.read(), world.version()];
      return unfulfilledVersion({
        wanted: role.etcdVersion?.(),
        configured: configured === undefined ? undefined : formatVersion(configured),
        running: used.kind === 'ok' && child.view().phase !== 'down' ? used.value.version : undefined,
      });
    },
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
    beside: async (seen) => {
      state.distrust('journal', journal.look());
      await turnReports.look(seen);
      await memberKey.look(seen);
      keepProgress('ifDue');
      // A node whose etcd is about to be started has no time for it.
      if (seen.process.kind === 'up' || seen.intent.kind === 'stopped') await stops.tidy();
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
    ends,
    reports,
    state,
    founding,
    adoption,
    volume,
    stops,
    effects,
    shutdownMark,
    progress,
    stopGraceMs: () => config().etcd.stopGraceMs,
    clock,
  });
  const memberOrders = new MemberOrders({
    agent,
    cluster,
    hearings,
    changes,
    clusterWatch,
    leaving,
    child,
    state,
    volume,
    reports,
    clock,
    grantId: () => role.grantId(),
    version: world.version,
    peerUrl: () => config().etcd.peerUrl,
    clientUrl: () => config().etcd.clientUrl,
  });
  return {
    agent,
    operator,
    memberOrders,
    observer,
    watch,
    turnReports,
    membership,
    status,
    stuck,
    health,
    voters,
    pendingStart: new PendingStart({ child, disk, layout, state, orders }),
    ends,
    reports,
    state,
    journal,
    alarms,
    volume,
    progress,
  };
}

/** As long as an etcd that was ready may stay silent before that is told. Unit: ms. */
function unresponsiveAfterMs({ timing }: Config): number {
  return timing.probeMisses * (timing.probeIntervalMs + timing.probeDeadlineMs);
}

function spentRole(role: RoleSeen, state: AgentState): RoleSeen {
  return role.kind === 'unknown' ? role : { ...role, spent: isSpentGrant(role.grantId, state) };
}
