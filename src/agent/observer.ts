import type { Clock } from '../base/clock.ts';
import { describeError, errnoOf } from '../base/errors.ts';
import type { DataDir, DataOfMember } from '../etcd/data-dir.ts';
import type { Evidence } from '../etcd/evidence.ts';
import { classifyExit, type EndOfEtcd, type ExitVerdict } from '../etcd/exit.ts';
import type { EtcdExit } from '../etcd/exit-reasons.ts';
import { formatId } from '../etcd/member.ts';
import type { ClusterWatch } from './change/cluster-watch.ts';
import type { Joining } from './change/joining.ts';
import type { Ends } from './ends.ts';
import type { ClusterFounding } from './founder.ts';
import type { Host } from './host.ts';
import type { Layout } from './layout.ts';
import type { LifeWatch } from './life-watch.ts';
import type { LogProgress } from './log-progress.ts';
import type { Membership } from './membership.ts';
import type {
  DataSeen,
  FoundingPhase,
  Identity,
  JoinSeen,
  Observed,
  PeersSeen,
  ProcessSeen,
  RoleSeen,
  RunIntent,
  StartPermission,
  StartProblem,
} from './observed.ts';
import { pauseNow } from './pause.ts';
import type { Peers } from './peers.ts';
import type { ChildEnd, ChildPort, ChildView } from './ports.ts';
import type { RemovalMoment, RemovalWatch } from './removal.ts';
import type { Holder } from './start-order.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord } from './state/schemas.ts';
import type { DataVolume } from './volume.ts';

/** Who can be asked is asked at this pace while a removal is in question. Unit: ms. */
const askAgainMs = 250;
/** And at this one once it stays unconfirmed, or while etcd does not become ready. Unit: ms. */
const askSlowlyMs = 2_000;
/**
 * And at this one where a removal would not be heard of otherwise: while etcd is down for another reason (held, stopped),
 * or runs and is cut off from the others. Unit: ms.
 */
const askRarelyMs = 60_000;
/** How long the end of etcd may stay unjudged while the peers are asked whether it was removed. Unit: ms. */
const judgeWithinMs = 3_000;
/** Deadline of one asking before a start, and while a removal is in question. Unit: ms. */
const peersWithinMs = 2_000;
/** Answers older than this do not allow a start. Unit: ms. */
const freshAnswersMs = 5_000;
/** What lies in the data directory is looked at again after this. Unit: ms. */
const dataSeenForMs = 5_000;

export interface ObserverOptions {
  readonly child: ChildPort;
  readonly watch: LifeWatch;
  readonly ends: Ends;
  readonly peers: Peers;
  readonly removal: RemovalWatch;
  readonly membership: Membership;
  readonly founding: ClusterFounding;
  readonly joining: Joining;
  readonly clusterWatch: ClusterWatch;
  readonly leftRecord: () => boolean;
  readonly state: AgentState;
  readonly progress: LogProgress;
  readonly volume: DataVolume;
  readonly layout: Layout;
  /** Reads what lies in the data directory; never throws. */
  readonly inspectData: () => Promise<DataDir>;
  readonly host: Host;
  readonly clock: Clock;
  readonly role: () => RoleSeen;
  /** The machine goes down. */
  readonly goingDown: () => boolean;
  /** What etcd would be started with now, as one comparable text, and what stands in the way. */
  readonly preflight: () => { readonly startingWith: string; readonly problems: readonly StartProblem[] };
  readonly isStuck: () => boolean;
  /** Enough liveness probes were missed in a row: whether the others make progress without us is asked. */
  readonly isUnresponsive: () => boolean;
  readonly portHolder: (port: number) => Holder | undefined;
}

/** Nobody asks for a start while etcd runs. */
const whileItRuns: StartPermission = { kind: 'now', because: 'etcd runs' };

/** Asks process, disk and cluster, and says what is known. Judges ends of etcd on the way. */
export class Observer {
  readonly #options: ObserverOptions;
  /** `life`, `down`: the newest life when it was looked at, and whether that was over. */
  #data:
    | {
        readonly seen: DataSeen;
        readonly found: DataDir;
        readonly atMs: number;
        readonly life: number;
        readonly down: boolean;
      }
    | undefined;
  /** When the newest end was first seen. Monotonic, ms. */
  #endSeen: { readonly life: number; readonly atMs: number } | undefined;

  /** The kernel's count of such kills when the living life was first seen. */
  #oomBefore: number | undefined;
  #oomLife = 0;

  /** Since when this agent knows that the latest join stands where it does. Monotonic, ms. */
  #joinSeen: { readonly operation: string; readonly stage: string; readonly atMs: number } | undefined;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  async observe(): Promise<Observed> {
    const { state, volume, removal, role, preflight } = this.#options;
    await this.#askPeersIfDue();
    const cluster = await this.#cluster();
    const { view, data } = await this.#viewAndData();
    // From here on nothing is awaited: a plan that is asked for beside a turn must not judge the same end again.
    if (view.phase !== 'down' && view.life !== this.#oomLife) {
      this.#oomLife = view.life;
      this.#oomBefore = this.#options.host.oomKills();
    }
    const identity = state.knownIdentity();
    const unjudged = this.#unjudgedEnd(view);
    if (unjudged !== undefined) this.#judge(unjudged, view, identity);
    else this.#judgeAgain(view, identity);
    const intent = this.#intent();
    // Certificates, the binary and every process of the machine are looked at only while a start may come.
    const ready = view.phase === 'down' ? preflight() : undefined;
    return {
      supervision: state.supervision(),
      volume: volume.look(),
      intent,
      paused: pauseNow(state, this.#options.clock) !== undefined,
      founding: this.#foundingPhase(),
      identity: identityOf(identity),
      data: this.#compared(data, view, identity),
      process: this.#process(view),
      removal: removal.look(this.#moment(view, identity)),
      peers: this.#peersSeen(identity),
      start: ready === undefined ? whileItRuns : this.#permission(view, ready.startingWith, intent),
      preflight: ready?.problems ?? [],
      role: role(),
      join: this.#join(),
      cluster,
      leftRecord: this.#options.leftRecord(),
    };
  }

  /** The cluster is heard only while this node joins, waits for its vote or leaves. */
  async #cluster(): Promise<Observed['cluster']> {
    const { clusterWatch, state, role, child } = this.#options;
    const identity = state.knownIdentity();
    return await clusterWatch.look({
      identity,
      removed: identity !== undefined && this.#isArchived(identity),
      full: state.supervision().kind === 'full',
      ready: child.view().phase === 'ready',
      role: role(),
      join: this.#join(),
    });
  }

  #isArchived({ clusterId, memberId }: IdentityRecord): boolean {
    const stones = this.#options.state.tombstones.read();
    if (stones.kind !== 'ok') return false;
    return stones.value.some((one) => one.memberId === memberId && one.clusterId === clusterId && one.archive !== '');
  }

  #join(): JoinSeen {
    const reading = this.#options.state.join.read();
    if (reading.kind !== 'ok' || reading.value.state === 'givenUp') return { kind: 'none' };
    const { state, clusterId, memberId, peerUrl, grantId, operation } = reading.value;
    // Counted from when this agent saw it first: other clocks, and the wall, may jump.
    const now = this.#options.clock.monotonicMs();
    const stage = state === 'started' ? 'added' : state;
    if (this.#joinSeen?.operation !== operation || this.#joinSeen.stage !== stage) {
      this.#joinSeen = { operation, stage, atMs: now };
    }
    const forMs = now - this.#joinSeen.atMs;
    return { kind: state, clusterId, memberId: memberId ?? undefined, peerUrl, grantId, forMs };
  }

  /** What lies in the data directory; looked at only while nothing runs on it. */
  async lookAtData(fresh = false): Promise<DataSeen> {
    const now = this.#options.clock.monotonicMs();
    const known = this.#data;
    const { phase, life } = this.#options.child.view();
    const down = phase === 'down';
    // What was seen of an etcd that ran says nothing about what it has left.
    const holds = down ? known?.down === true && known.life === life && now - known.atMs < dataSeenForMs : true;
    if (known !== undefined && !fresh && holds) return known.seen;
    const found = await this.#options.inspectData();
    const seen = this.#markedData(found);
    this.#data = { seen, found, atMs: now, life, down };
    return seen;
  }

  /** Why the data that lies there now must not be started, as far as is known; undefined if it may, or etcd runs. */
  async logRegression(): Promise<string | undefined> {
    const { child, state } = this.#options;
    const seen = this.#compared(await this.lookAtData(true), child.view(), state.knownIdentity());
    return seen.kind === 'member' ? seen.regression : undefined;
  }

  /** The end of the log against what the member had applied: what stands here, and what the others were told. */
  #compared(seen: DataSeen, view: ChildView, identity: IdentityRecord | undefined): DataSeen {
    const { progress, peers } = this.#options;
    const found = this.#data?.found;
    if (view.phase !== 'down' || seen.kind !== 'member' || found?.kind !== 'member' || identity === undefined)
      return seen;
    if (seen.memberId !== identity.memberId || seen.clusterId !== identity.clusterId) return seen;
    const noted = peers.latest?.noted;
    if (noted !== undefined) progress.heard(identity, noted);
    const regression = progress.regression(identity, found);
    return regression === undefined ? seen : { ...seen, regression };
  }

  /** The process as it is now, with what lies in the data directory; that of an etcd that is down was looked at after its end. */
  async #viewAndData(): Promise<{ readonly view: ChildView; readonly data: DataSeen }> {
    for (;;) {
      const data = await this.lookAtData();
      const view = this.#options.child.view();
      const looked = this.#data;
      if (view.phase !== 'down' || (looked?.down === true && looked.life === view.life)) return { view, data };
    }
  }

  /** Something was done to the data directory. */
  forgetData(): void {
    this.#data = undefined;
  }

  /** How soon the next look is due, beside whatever wakes the agent. Unit: ms; undefined: the idle turn is enough. */
  nextLookMs(): number | undefined {
    const { child, removal, state, peers, clock, membership } = this.#options;
    const view = child.view();
    const identity = state.knownIdentity();
    if (identity === undefined) return undefined;
    if (this.#unjudgedEnd(view) !== undefined) return askAgainMs;
    const unresponsive = view.phase === 'ready' && this.#options.isUnresponsive();
    if (view.phase === 'ready' && !unresponsive) return Math.max(100, membership.dueMs - clock.monotonicMs());
    const inQuestion =
      unresponsive || view.phase === 'starting' || (view.phase === 'down' && removal.latest === 'suspected');
    const askedAt = peers.latestAbout(identity.memberId)?.askedAtMs ?? 0;
    return inQuestion ? Math.max(100, askedAt + askSlowlyMs - clock.monotonicMs()) : undefined;
  }

  /** An end that has no verdict yet. */
  #unjudgedEnd(view: ChildView): ChildEnd | undefined {
    const end = view.end;
    if (view.phase !== 'down' || end === undefined || end.life <= (this.#options.ends.last?.life ?? 0))
      return undefined;
    if (this.#endSeen?.life !== end.life) this.#endSeen = { life: end.life, atMs: this.#options.clock.monotonicMs() };
    return end;
  }

  async #askPeersIfDue(): Promise<void> {
    const { child, state, peers } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined || isOnlyVoter(identity)) return;
    if (this.#shouldAskPeers(child.view(), identity)) await peers.ask(identity, peersWithinMs);
  }

  #shouldAskPeers(view: ChildView, { memberId }: IdentityRecord): boolean {
    const { peers, clock, removal, watch, membership } = this.#options;
    const sinceMs = clock.monotonicMs() - (peers.latestAbout(memberId)?.askedAtMs ?? Number.NEGATIVE_INFINITY);
    const unjudged = this.#unjudgedEnd(view);
    if (unjudged !== undefined) return speaksOfRemoval(unjudged, watch.evidence) && sinceMs >= askAgainMs;
    if (view.phase === 'starting' || (view.phase === 'ready' && this.#options.isUnresponsive()))
      return sinceMs >= askSlowlyMs;
    const mayMissIt = view.phase === 'down' || (view.phase === 'ready' && membership.silent);
    if (!mayMissIt || removal.latest === 'proven') return false;
    return sinceMs >= (removal.latest === 'suspected' ? askSlowlyMs : askRarelyMs);
  }

  #judge(end: ChildEnd, view: ChildView, identity: IdentityRecord | undefined): void {
    const { ends, watch, peers, clock, preflight } = this.#options;
    watch.end(end.life);
    const verdict = this.#named(classifyExit(this.#endOfEtcd(end, identity)));
    const waitedMs = clock.monotonicMs() - (this.#endSeen?.atMs ?? 0);
    // Right after a removal of the leader nobody can give a list that counts: there is a moment to ask again.
    const others = peers.latestAbout(identity?.memberId)?.others ?? 0;
    if (verdict.class === 'removalUnconfirmed' && waitedMs < judgeWithinMs && others > 0) return;
    ends.settle(end, verdict, view, preflight().startingWith);
    peers.forget();
  }

  /** A suspected removal that the peers have proven or refuted since. */
  #judgeAgain(view: ChildView, identity: IdentityRecord | undefined): void {
    const { ends, removal } = this.#options;
    if (view.phase !== 'down' || view.end === undefined || ends.last?.class !== 'removalUnconfirmed') return;
    const proof = removal.proof(this.#moment(view, identity));
    if (proof.kind === 'proven') ends.reclassify({ class: 'removed', because: proof.evidence.join('; ') });
  }

  /** Whoever has the port is named, and left alone. */
  #named(verdict: ExitVerdict): ExitVerdict {
    if (verdict.class !== 'portInUse') return verdict;
    const port = Number(/:(\d{1,5}): bind/.exec(verdict.because)?.[1]);
    const holder = Number.isInteger(port) ? this.#options.portHolder(port) : undefined;
    const whose =
      holder === undefined
        ? 'no process that listens there is seen from here'
        : `port ${port} is held by process ${holder.pid} (${holder.command})`;
    return { ...verdict, because: `${verdict.because}; ${whose}` };
  }

  /** An end that an earlier agent saw and could not write down; `evidence` is what the log of that life says. */
  judgeEarlier(end: ChildEnd, evidence: Evidence, startedAtMs: number | undefined): void {
    const { ends, state } = this.#options;
    ends.settleEarlier(end, classifyExit(this.#endOfEtcd(end, state.knownIdentity(), evidence)), startedAtMs);
  }

  #endOfEtcd(end: ChildEnd, identity: IdentityRecord | undefined, evidence = this.#options.watch.evidence): EndOfEtcd {
    const { host, layout, peers } = this.#options;
    return {
      exit: etcdExit(end),
      evidence,
      asked: end.asked,
      host: { freeBytes: host.freeBytes(layout.dataDir), oomKills: this.#oomKills() },
      lists: peers.latestAbout(identity?.memberId)?.lists ?? [],
      lastKnownVoters: identity?.lastVoters.map((voter) => voter.id) ?? [],
      ownId: identity?.memberId,
      clusterId: identity?.clusterId,
      ownRemovalJournalled: identity !== undefined && this.#options.state.hasLeft(identity),
    };
  }

  /** How many processes the kernel killed for memory since this life was first seen. */
  #oomKills(): number | undefined {
    const now = this.#options.host.oomKills();
    return now === undefined || this.#oomBefore === undefined ? undefined : now - this.#oomBefore;
  }

  #moment(view: ChildView, identity: IdentityRecord | undefined): RemovalMoment {
    const { watch, ends } = this.#options;
    return {
      identity,
      evidence: watch.evidence,
      processUp: view.phase !== 'down' && view.phase !== 'unknown',
      life: view.life,
      ready: view.phase === 'ready' || (view.phase !== 'down' && view.readyAtMs !== undefined),
      unconfirmedLife: ends.unconfirmedLife,
    };
  }

  #process(view: ChildView): ProcessSeen {
    switch (view.phase) {
      case 'down':
        return { kind: 'down' };
      case 'unknown':
        return { kind: 'unknown', because: view.because };
      default:
        return { kind: 'up', phase: view.phase, life: view.life, ill: this.#ill(view) };
    }
  }

  #ill(view: ChildView): '' | 'stuck' | 'dataLocked' {
    if (view.phase === 'starting' && this.#options.watch.evidence.dbLocked) return 'dataLocked';
    return (view.phase === 'starting' || view.phase === 'ready') && this.#options.isStuck() ? 'stuck' : '';
  }

  #permission(view: ChildView, startingWith: string, intent: RunIntent): StartPermission {
    if (this.#unjudgedEnd(view) !== undefined) {
      return { kind: 'later', inMs: askAgainMs, because: 'the other members are asked how etcd ended' };
    }
    return this.#options.ends.permission(startingWith, intent.kind === 'held');
  }

  #peersSeen(identity: IdentityRecord | undefined): PeersSeen {
    const { peers, clock } = this.#options;
    if (identity === undefined || isOnlyVoter(identity)) return { kind: 'nobody' };
    const latest = peers.latestAbout(identity.memberId);
    if (latest === undefined || clock.monotonicMs() - latest.askedAtMs > freshAnswersMs) return { kind: 'notAsked' };
    return { kind: 'asked', lists: latest.lists, silent: latest.silent };
  }

  #intent(): RunIntent {
    const recorded = this.#recordedIntent();
    const lasts = recorded.kind === 'stopped' || recorded.kind === 'removed';
    return this.#options.goingDown() && !lasts ? { kind: 'shutdown', because: 'the machine goes down' } : recorded;
  }

  #recordedIntent(): RunIntent {
    const reading = this.#options.state.runIntent();
    if (reading.kind === 'ok') {
      const { intent, because, memberId } = reading.value;
      const identity = this.#options.state.knownIdentity();
      // Written for the member before this one: a crash between its successor's identity and intent leaves it so.
      const ofAnother = identity !== undefined && memberId !== '' && memberId !== formatId(identity.memberId);
      if (intent === 'removed' && ofAnother) return { kind: 'run', because: 'an earlier member was removed' };
      return { kind: intent, because };
    }
    if (reading.kind === 'absent') return { kind: 'run', because: '' };
    // It is not known whether etcd may run: one that runs goes on, one that is down is not started.
    return { kind: 'unknown', because: reading.because };
  }

  #foundingPhase(): FoundingPhase {
    const reading = this.#options.state.founding.read();
    // Unreadable is not "never": whatever it was, it is over for this agent (supervision says so besides).
    if (reading.kind === 'absent') return 'none';
    if (reading.kind !== 'ok') return 'done';
    const { clusterId, state } = reading.value;
    // A cluster that ended with this node was founded once; that counts no more.
    return clusterId !== null && this.#options.state.retiredClusters().has(clusterId) ? 'none' : state;
  }

  #markedData(found: DataDir): DataSeen {
    try {
      return this.#dataSeen(found);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return { kind: 'unknown', because: `the mark of a founding cannot be read: ${describeError(error)}` };
    }
  }

  #dataSeen(found: DataDir): DataSeen {
    const { founding, joining } = this.#options;
    const begun = this.#foundingPhase() === 'started' || this.#join().kind === 'started';
    const carriesMark = () => founding.carriesMark() || joining.carriesMark();
    switch (found.kind) {
      case 'absent':
        return found;
      case 'empty':
        return carriesMark() ? { kind: 'prepared' } : { kind: 'empty' };
      case 'noWal':
        // etcd was ended before its first record: nothing was acknowledged, the founding goes on.
        if (begun && !found.hasSnapshots && carriesMark()) return { kind: 'prepared' };
        return { kind: 'logLost', because: 'there are files of etcd, but no write-ahead log' };
      case 'member':
        if (begun && wroteNothing(found) && carriesMark()) return { kind: 'emptyLog' };
        return { kind: 'member', clusterId: found.clusterId, memberId: found.memberId };
      case 'broken':
        return { kind: 'broken', because: found.why };
      case 'unreadable':
        return { kind: 'unknown', because: found.why };
      case 'notADirectory':
        return { kind: 'unknown', because: 'it is not a directory' };
    }
  }
}

/** Nobody else had a vote when the list was last read: there is nobody to ask. */
function isOnlyVoter({ memberId, lastVoters }: IdentityRecord): boolean {
  return lastVoters.every((voter) => voter.id === memberId);
}

/** Whether an end looks as if the member had been removed, so that the others are worth asking. */
function speaksOfRemoval(end: ChildEnd, evidence: Evidence): boolean {
  if (evidence.ownRemoval !== undefined) return false;
  const unaskedZero = end.asked.kind === 'none' && end.exit.kind === 'code' && end.exit.code === 0;
  return evidence.permanentlyRemoved || evidence.learnerPanic || unaskedZero;
}

/**
 * A founder's first write holds its list of voters as committed, together with its first vote: while nothing is committed
 * nothing was ever voted for, and etcd would find no voters in its log. Source: docs/etcd-facts.md, "silent disasters".
 */
function wroteNothing({ commit, hasSnapshots }: DataOfMember): boolean {
  return commit === 0n && !hasSnapshots;
}

function etcdExit({ exit }: ChildEnd): EtcdExit {
  switch (exit.kind) {
    case 'code':
      return exit;
    case 'signal':
      return { kind: 'signal', signal: exit.name };
    case 'unknown':
      return { kind: 'unknown' };
  }
}

/** The recorded member as the plan sees it. */
function identityOf(record: IdentityRecord | undefined): Identity | undefined {
  if (record === undefined) return undefined;
  const self = record.lastMembers.find(({ id }) => id === record.memberId);
  return { ...record, isLearner: self?.isLearner === true };
}
