import { type Clock, timestamp } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { formatId, type MemberId } from '../etcd/member.ts';
import type { Archive, Archives } from './archive.ts';
import type { ClusterWatch } from './change/cluster-watch.ts';
import type { Joining } from './change/joining.ts';
import type { Leaving } from './change/leaving.ts';
import type { OwnAddress } from './change/own-address.ts';
import { forcedStop, type Stops } from './change/stops.ts';
import { asReported } from './changes.ts';
import { commandLine } from './command-line.ts';
import { orDiskRefused } from './disk-refused.ts';
import type { Effects } from './effects.ts';
import { type Ends, reportedExit } from './ends.ts';
import type { ClusterFounding } from './founder.ts';
import type { Journal, JournalEntry } from './journal.ts';
import type { Layout } from './layout.ts';
import type { DataSeen } from './observed.ts';
import type { Peers } from './peers.ts';
import type { ChildPort, ClusterPort, StartOrder } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord, Tombstone } from './state/schemas.ts';
import type { Step } from './step.ts';

export interface ExecutorOptions {
  readonly child: ChildPort;
  readonly cluster: ClusterPort;
  readonly peers: Peers;
  readonly ends: Ends;
  readonly reports: Reports;
  readonly founding: ClusterFounding;
  readonly joining: Joining;
  readonly leaving: Leaving;
  readonly ownAddress: OwnAddress;
  readonly stops: Stops;
  readonly clusterWatch: ClusterWatch;
  readonly effects: Effects;
  readonly archives: Archives;
  readonly journal: Journal;
  readonly state: AgentState;
  readonly layout: Layout;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** The command for a start of this member; `founding`: with the state `new`. */
  readonly startOrder: (identity: IdentityRecord, founding: boolean) => StartOrder & { readonly version: string };
  /** What it is started with, as one comparable text: the command and every file that it names. */
  readonly startingWith: (identity: IdentityRecord) => string;
  /** Where the own etcd serves clients. */
  readonly ownUrl: () => string;
  readonly stopGraceMs: () => number;
  /** The machine goes down. */
  readonly goingDown: () => boolean;
  readonly archiveBound: () => { readonly keep: number; readonly minDays: number };
  /** Clears the change record that an interrupted change of this node may have left. */
  readonly resolveChange: () => Promise<void>;
  /** The grant under which this node is a member now; empty if there is none. */
  readonly grantId: () => string;
  /** What lies in the data directory now. */
  readonly lookAtData: () => Promise<DataSeen>;
  /** Stop asking the member for its Status: in flight at its removal that call kills etcd. */
  readonly quiet: () => void;
  /** A restart for being stuck was ordered: the next one is an hour away at least. */
  readonly stuckRestarted: () => void;
  /** The member list is read anew in the next turn. */
  readonly membershipChanged: () => void;
}

/** How long the peers have to answer before a start. Unit: ms. */
const askPeersMs = 2_000;

/** A stuck process that does not even write its stacks is killed after this. Unit: ms. */
const dumpGraceMs = 10_000;

/** This node has no recorded identity, and the step needs one. */
export class NoIdentityError extends AgentError {
  readonly code = 'NO_IDENTITY';
}

type Executors = { readonly [K in Step['kind']]: (step: Extract<Step, { kind: K }>, because: string) => Promise<void> };

/** Does one step. Each is safe to repeat: killed at any point, the next turn looks and goes on. */
export class Executor {
  readonly #options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** Throws an AgentError if the step was refused or failed; the next turn looks again. */
  async execute(step: Step, because: string): Promise<void> {
    const executor = this.#executors[step.kind] as (step: Step, because: string) => Promise<void>;
    const entry = this.#begin(step, because);
    try {
      await executor(step, because);
      this.#end(entry, 'done', '');
    } catch (cause) {
      const error = orDiskRefused(step.kind, cause);
      this.#end(entry, 'failed', describeError(error));
      throw error;
    }
  }

  /** Forgetting one does not compile. */
  readonly #executors: Executors = {
    beginFounding: async () => {
      await this.#options.founding.begin(await this.#options.lookAtData());
      this.#forgetEarlierMember();
    },
    startFounder: async () => await this.#start(true),
    setEmptyLogAside: async (_step, because) => this.#setEmptyLogAside(because),
    completeFounding: async () => this.#completeFounding(),
    askPeers: async () => {
      await this.#options.peers.ask(this.#identity(), askPeersMs);
    },
    startMember: async () => await this.#start(false),
    stopEtcd: async (_step, because) => await this.#stop(because),
    restartStuck: async (_step, because) => {
      const order = { graceMs: dumpGraceMs, why: 'stuck', because } as const;
      // One that does nothing keeps no quorum up: where nobody answers it is restarted all the same.
      await this.#options.stops.end({
        how: 'dump',
        order,
        force: false,
        evenIfSilent: true,
        intend: () => this.#options.stuckRestarted(),
      });
    },
    stopLocked: async (_step, because) =>
      await this.#options.child.stop({ graceMs: dumpGraceMs, why: 'dataLocked', because }),
    addLearner: async () => await this.#changing(() => this.#options.joining.addLearner()),
    takeUpLearner: async (step) => await this.#changing(() => this.#takeUp(step.memberId)),
    beginJoin: async () => this.#options.joining.begin(),
    startJoiner: async () => await this.#startJoiner(),
    completeJoin: async () => this.#completeJoin(),
    cancelJoin: async (step) => await this.#changing(() => this.#options.joining.cancel(step.memberId)),
    expireJoin: async (_step, because) => {
      const { child, joining, leaving } = this.#options;
      const running = child.view().phase !== 'down';
      const how = { provenDead: true, afterwards: () => joining.expired() };
      await this.#changing(async () => {
        await leaving.leave(this.#identity(), running, because, how);
      });
    },
    promoteSelf: async (step) =>
      await this.#changing(() => this.#options.joining.promote(this.#identity(), step.consent)),
    updatePeerUrl: async (step) =>
      await this.#changing(() => this.#options.ownAddress.register(this.#identity(), step.peerUrl)),
    removeSelf: async ({ grantId }, because) => {
      const running = this.#options.child.view().phase !== 'down';
      await this.#changing(async () => {
        await this.#options.leaving.leave(this.#identity(), running, because, { endsGrant: grantId });
      });
    },
    resolveChange: async () => await this.#changing(() => this.#options.resolveChange()),
    recordRemoval: async (step) => this.#recordRemoval(step.evidence),
    archiveData: async () => this.#archiveData(),
    recordHold: async (step, because) => {
      this.#options.reports.report({ kind: 'process.held', class: step.class, because });
      this.#recordIntent('held', because);
    },
  };

  async #start(founding: boolean, identity = this.#identity()): Promise<void> {
    const { child, ends, peers, reports, disk, layout, startOrder, startingWith, log, state } = this.#options;
    const order = startOrder(identity, founding);
    const intent = state.runIntent();
    if (intent.kind !== 'ok' || intent.value.intent !== 'run') this.#recordIntent('run', 'etcd is started');
    this.#tryToWrite(() => disk.replace(layout.commandLine, `${commandLine(order)}\n`, 0o644));
    ends.starting(child.view().life, startingWith(identity));
    await child.start(order);
    this.#tryToWrite(() => state.usedVersion.write({ version: order.version }));
    ends.started();
    peers.forget();
    const { life, pid } = child.view();
    log.info({ life, pid, version: order.version }, 'etcd was started');
    this.#tryToWrite(() => reports.report({ kind: 'process.started', life, pid: pid ?? 0, version: order.version }));
  }

  /** Whatever comes of it, what was heard of the cluster before counts no more. */
  async #changing(change: () => Promise<void>): Promise<void> {
    try {
      await change();
    } finally {
      this.#options.clusterWatch.forget();
      this.#options.membershipChanged();
    }
  }

  async #takeUp(memberId: MemberId): Promise<void> {
    const { effects, joining, ends } = this.#options;
    // For the new member: nothing replaces `removed` for the old one. What was seen of an earlier member says nothing of this one;
    // that is let go before the identity: killed right after it, nobody would.
    effects.do('join.intent', () => {
      this.#recordIntent('run', 'this node joins a cluster', memberId);
      ends.release();
    });
    await joining.takeUp(memberId);
  }

  /** What was said and seen of an earlier member of this node says nothing of the new one. */
  #forgetEarlierMember(): void {
    this.#options.peers.forget();
    this.#options.ends.release();
  }

  async #startJoiner(): Promise<void> {
    const { joining, effects } = this.#options;
    const identity = await joining.refreshArguments(this.#identity());
    await effects.doing('join.spawn', () => this.#start(false, identity));
  }

  #completeJoin(): void {
    const { joining, reports, membershipChanged } = this.#options;
    const { clusterId, memberId } = this.#identity();
    reports.report({ kind: 'member.joined', clusterId: formatId(clusterId), memberId: formatId(memberId) });
    joining.complete();
    membershipChanged();
  }

  async #stop(because: string): Promise<void> {
    const { child, state, stops, stopGraceMs, goingDown } = this.#options;
    const identity = state.knownIdentity();
    const order = { graceMs: stopGraceMs(), why: 'stop', because } as const;
    if (goingDown()) return void (await stops.shutdown(order));
    // A member that was removed leads nobody, and asking it would only provoke its panic.
    if (identity !== undefined && this.#isRemoved(identity)) return await child.stop(order);
    // An order that an earlier agent could not finish: the check is made anew.
    const force = because === forcedStop;
    await stops.end({ how: 'stop', order, force, evenIfSilent: force });
  }

  #setEmptyLogAside(because: string): void {
    const { archives, reports, log, clock } = this.#options;
    const { nodeId, ...identity } = this.#identity();
    const [clusterId, memberId] = [formatId(identity.clusterId), formatId(identity.memberId)];
    const at = timestamp(clock);
    const path = archives.moveEmptyLog({ nodeId, clusterId, memberId, at, reason: because, evidence: [] });
    log.warn({ path }, 'a log without any record was set aside');
    this.#tryToWrite(() => reports.report({ kind: 'data.archived', memberId, path, reason: 'emptyLog' }));
  }

  #completeFounding(): void {
    const { founding, reports } = this.#options;
    const identity = this.#identity();
    const clusterId = formatId(identity.clusterId);
    if (!reports.reported.foundedClusters.includes(clusterId)) {
      const memberId = formatId(identity.memberId);
      reports.report({ kind: 'cluster.founded', clusterId, memberId, foundingId: identity.initialClusterToken });
    }
    founding.complete();
  }

  /**
   * Tombstone, report, run intent. The tombstone keeps the evidence, so that a next agent goes on with it although nobody may
   * give it again; nothing is stopped or moved before all three are on disk.
   */
  #recordRemoval(evidence: readonly string[]): void {
    this.#options.quiet();
    const identity = this.#identity();
    const { effects } = this.#options;
    const stone =
      this.#tombstoneOf(identity) ?? effects.do('removal.tombstone', () => this.#writeTombstone(identity, evidence));
    effects.do('removal.report', () => this.#reportRemoval(identity, stone.evidence));
    effects.do('removal.intent', () => this.#recordIntent('removed', stone.evidence.join('; ')));
  }

  #writeTombstone(identity: IdentityRecord, evidence: readonly string[]): Tombstone {
    const { state, clock } = this.#options;
    const { clusterId, memberId } = identity;
    const stone: Tombstone = {
      clusterId,
      memberId,
      grantId: this.#endedGrant(memberId),
      at: timestamp(clock),
      evidence: [...evidence],
      archive: '',
      retired: state.leaveOf(identity)?.retires === true,
    };
    state.tombstones.write([...this.#tombstones(), stone]);
    return stone;
  }

  /** The grant that a removal has ended: that of our own leave, or else the one that the role carries now. */
  #endedGrant(memberId: MemberId): string {
    const leave = this.#options.state.leave.read();
    return leave.kind === 'ok' && leave.value.memberId === memberId ? leave.value.grantId : this.#options.grantId();
  }

  #reportRemoval(identity: IdentityRecord, evidence: readonly string[]): void {
    const { reports, ends } = this.#options;
    const memberId = formatId(identity.memberId);
    if (reports.reported.removedSelves.includes(memberId)) return;
    const end = ends.last;
    const self = identity.lastMembers.find((member) => member.id === identity.memberId);
    const member =
      self === undefined
        ? { memberId, name: identity.name, peerUrls: [identity.peerUrl], learner: false }
        : asReported(self);
    const exit = end === undefined || end.class !== 'removed' ? {} : { exit: reportedExit(end) };
    reports.report({ kind: 'member.removed', member, self: true, evidence: [...evidence], ...exit });
  }

  #archiveData(): void {
    const { archives, reports, state, log, clock, effects } = this.#options;
    const identity = this.#identity();
    const memberId = formatId(identity.memberId);
    const stone = this.#tombstoneOf(identity);
    if (stone === undefined) throw new NoIdentityError(`member ${memberId} has no tombstone, so its data is not moved`);
    const path = effects.do('removal.archive', () =>
      archives.moveData({
        nodeId: identity.nodeId,
        clusterId: formatId(identity.clusterId),
        memberId,
        at: stone.at,
        reason: 'this member was removed from its cluster',
        evidence: stone.evidence,
      }),
    );
    log.info({ path }, 'the data of the removed member was archived');
    if (!reports.reported.archivedPaths.includes(path)) {
      reports.report({ kind: 'data.archived', memberId, path, reason: 'removed' });
    }
    const isIt = (one: Tombstone) => one.memberId === stone.memberId && one.clusterId === stone.clusterId;
    effects.do('removal.archived', () =>
      state.tombstones.write(this.#tombstones().map((one) => (isIt(one) ? { ...one, archive: path } : one))),
    );
    for (const archive of archives.expired(this.#options.archiveBound(), clock.wallMs())) this.#removeArchive(archive);
  }

  /** Reported first, and once: what is gone cannot be told of any more. One that cannot be removed stands in nobody's way. */
  #removeArchive(archive: Archive): void {
    const { archives, reports, log } = this.#options;
    const { path } = archive;
    if (!reports.reported.removedArchives.includes(path)) {
      reports.report({ kind: 'data.archiveRemoved', path, because: 'newer complete archives are beyond the bound' });
      log.warn({ path }, 'an old archive is removed');
    }
    try {
      archives.remove(archive);
    } catch (error) {
      log.warn({ path, error: describeError(error) }, 'an old archive could not be removed');
    }
  }

  #isRemoved(identity: IdentityRecord): boolean {
    return this.#tombstoneOf(identity) !== undefined;
  }

  #tombstoneOf({ memberId, clusterId }: IdentityRecord): Tombstone | undefined {
    return this.#tombstones().find((stone) => stone.memberId === memberId && stone.clusterId === clusterId);
  }

  #tombstones(): readonly Tombstone[] {
    const reading = this.#options.state.tombstones.read();
    return reading.kind === 'ok' ? reading.value : [];
  }

  #recordIntent(intent: 'run' | 'held' | 'removed', because: string, newMember?: MemberId): void {
    const { state, clock } = this.#options;
    const identity = state.knownIdentity();
    const memberId = newMember ?? identity?.memberId;
    state.recordRunIntent({
      intent,
      clusterId: identity === undefined ? '' : formatId(identity.clusterId),
      memberId: memberId === undefined ? '' : formatId(memberId),
      because,
      at: timestamp(clock),
    });
  }

  #identity(): IdentityRecord {
    const identity = this.#options.state.knownIdentity();
    if (identity === undefined) throw new NoIdentityError('this node has no recorded identity');
    return identity;
  }

  /** Steps that keep etcd running are done even if the journal cannot be written; steps that change records are not. */
  #begin(step: Step, because: string): JournalEntry | undefined {
    if (!processSteps.has(step.kind)) return this.#options.journal.begin(step.kind, because);
    return this.#tryToWrite(() => this.#options.journal.begin(step.kind, because));
  }

  #end(entry: JournalEntry | undefined, state: 'done' | 'failed', detail: string): void {
    if (entry !== undefined) this.#tryToWrite(() => this.#options.journal.end(entry, state, detail));
  }

  #tryToWrite<T>(write: () => T): T | undefined {
    try {
      return write();
    } catch (error) {
      this.#options.log.warn({ error: describeError(error) }, 'a record could not be written');
      return undefined;
    }
  }
}

const processSteps: ReadonlySet<Step['kind']> = new Set([
  'askPeers',
  'startMember',
  'startJoiner',
  'stopEtcd',
  'restartStuck',
  'stopLocked',
]);
