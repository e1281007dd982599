/** One life of one simulated etcd process: from its start to its exit, with what it writes to its log. */
import type { CancelTimer } from '../../../src/base/clock.ts';
import { formatId, type Member, type MemberId } from '../../../src/etcd/member.ts';
import type { StartArguments } from './arguments.ts';
import { bootstrap, forceNewCluster } from './bootstrap.ts';
import { Links } from './links.ts';
import { type Applied, type Command, type Entry, Machine } from './machine.ts';
import type { SimulatedNode } from './node.ts';
import { type MemberData, Raft } from './raft.ts';
import { Reads } from './reads.ts';
import { isAtLeast, noLeaderInTime, type Refusal, refusals, type Version } from './refusals.ts';
import type { World } from './world.ts';

/** How a process ended. */
export type ProcessExit =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly name: string };

/** etcd gives a request up after this. Unit: ms. */
export const requestTimeoutMs = 7_000;

const removedText = 'the member has been permanently removed from the cluster';

/** What a proposal or a read came to. */
export type Outcome = Applied;

export class SimulatedEtcd {
  readonly node: SimulatedNode;
  readonly args: StartArguments;
  readonly version: Version;
  readonly world: World;
  raft: Raft | undefined;
  /** Connections to peers as this process sees them. */
  readonly links: Links;
  /** It answers its clients. */
  serving = false;
  /** Its client side is open; before it serves, calls wait. */
  listening = false;
  running = true;
  /** Linearizable reads. */
  readonly reads: Reads;
  /** Calls that it works on: each is told when the process ends. */
  readonly calls = new Set<(refusal: Refusal) => void>();
  /** The members that were told to a joiner before it has a log. */
  #view: readonly Member[] = [];
  readonly #waiters = new Map<number, (outcome: Outcome) => void>();
  #blocked: Proposal[] = [];
  /** Calls that arrived before it serves, or while it is frozen. */
  #inbox: (() => void)[] = [];
  #ending = false;
  readonly #strangers = new Set<SimulatedEtcd>();
  #serves: CancelTimer = () => {};

  constructor(node: SimulatedNode, args: StartArguments, world: World) {
    this.node = node;
    this.args = args;
    this.version = node.version;
    this.world = world;
    this.links = new Links(this, world);
    this.reads = new Reads(this, world);
    const bindMs = 25 + world.random.below(35);
    world.queue.after(bindMs, () => this.#whenThawed(() => this.#bind()));
  }

  get frozen(): boolean {
    return this.node.frozen;
  }

  get id(): MemberId {
    return this.raft?.id ?? 0n;
  }

  /** Its own list; for a joiner without a log the one that it was told. */
  get members(): readonly Member[] {
    const { raft } = this;
    return raft === undefined || raft.applied === 0 ? this.#view : [...raft.machine.members.values()];
  }

  /** The member of this id, by its own list. */
  knownMember(id: MemberId): Member | undefined {
    const { raft } = this;
    if (raft !== undefined && raft.applied > 0) return raft.machine.members.get(id);
    return this.#view.find((member) => member.id === id);
  }

  /** A process of another cluster lives at an address that it dials; said once. */
  noteOtherCluster(other: SimulatedEtcd) {
    const { raft } = this;
    if (raft === undefined || other.raft === undefined || this.#strangers.has(other)) return;
    this.#strangers.add(other);
    this.log('request cluster ID mismatch', {
      'local-member-id': formatId(raft.id),
      'local-member-cluster-id': formatId(raft.clusterId),
      'remote-peer-server-name': formatId(other.raft.id),
      'remote-peer-cluster-id': formatId(other.raft.clusterId),
    });
  }

  /** Puts a change into the log, wherever the leader is. Without a leader it waits until `untilMs`, and is then never proposed. */
  propose(command: Command, untilMs: number, done: (outcome: Outcome) => void) {
    const { raft, world } = this;
    if (raft === undefined) return;
    if (raft.leader === 0n) {
      this.#blocked.push({ command, untilMs, done });
      return;
    }
    if (raft.role === 'leader' && (raft.transferee !== undefined || raft.departed)) {
      return done({ kind: 'refused', refusal: refusals.proposalDropped });
    }
    const proposal = world.nextProposal();
    this.#waiters.set(proposal, done);
    if (raft.role === 'leader') return raft.append(command, proposal);
    const { leader } = raft;
    world.queue.after(world.latencyMs(), () => {
      const leading = world.raftOf(raft.clusterId, leader);
      const arrives = leading !== undefined && !raft.halted && world.linked(raft, leading);
      // What finds no leader there, or one that hands over, is lost without a word.
      if (!arrives || leading.role !== 'leader' || leading.transferee !== undefined || leading.departed) return;
      if (leading.progress.has(raft.id)) leading.append(command, proposal);
    });
  }

  /** Calls back once everything is applied that was committed when it was asked, as a quorum confirms. */
  readIndex(done: (refusal: Refusal | undefined) => void) {
    this.reads.read(done);
  }

  /** Runs now, or once it serves and is not frozen. `untilMs`: what is late by then may be dropped unseen. */
  whenServing(untilMs: number, serve: () => void) {
    if (this.serving && !this.frozen) return serve();
    this.#inbox.push(() => {
      const late = this.world.queue.nowMs() > untilMs;
      if (!late || this.world.random.chance(0.5)) serve();
    });
  }

  thawed() {
    if (this.serving) this.#runInbox();
  }

  /** TERM or INT, as etcd takes it: before it serves it just dies; after, it hands over and closes. */
  terminate(signal: 'SIGTERM' | 'SIGINT') {
    const { world, raft } = this;
    if (!this.serving) {
      world.queue.after(3 + world.random.below(14), () =>
        this.#whenThawed(() => this.end({ kind: 'signal', name: signal })),
      );
      return;
    }
    this.#whenThawed(() => {
      this.log('received signal; shutting down', { signal: signal === 'SIGTERM' ? 'terminated' : 'interrupt' });
      this.serving = false;
      this.listening = false;
      for (const drop of [...this.calls]) drop(refusals.serverStopped);
      const close = () => this.#whenThawed(() => this.#close(signal));
      if (raft?.role !== 'leader' || raft.machine.voters.length < 2) {
        world.queue.after(5 + world.random.below(20), close);
        return;
      }
      this.#transferBeforeEnd(raft, close);
    });
  }

  /** QUIT: every goroutine to the log, then code 2. */
  dump() {
    this.world.queue.after(25 + this.world.random.below(60), () =>
      this.#whenThawed(() => {
        this.write('SIGQUIT: quit');
        this.write('PC=0x4759a1 m=0 sigcode=0');
        this.write('goroutine 0 gp=0x1c2f4a0 m=0 mp=0x1c304a0 [idle]:');
        this.end({ kind: 'code', code: 2 });
      }),
    );
  }

  /** A call of Status while it is not among its own members: etcd panics. */
  panicAsUnknownToItself() {
    this.log('failed to find local ID in cluster members', this.#ids());
    for (const line of this.world.book.trace(this.version, 'IsLocalMemberLearner')) this.write(line);
    this.end({ kind: 'code', code: 2 });
  }

  /** A peer that knows it as removed refuses its connections. */
  toldRemoved(by: MemberId) {
    if (this.#ending) return;
    this.#ending = true;
    this.world.queue.after(8 + this.world.random.below(25), () =>
      this.#whenThawed(() => {
        const error = `failed to dial ${formatId(by)} on stream MsgApp v2 (${removedText})`;
        this.log('peer says removed', { 'peer-id': formatId(by), error });
        this.#endAsRemoved();
      }),
    );
  }

  /** One line of its log by the text of a recorded one. */
  log(like: string, fields: Readonly<Record<string, unknown>> = {}, message?: string) {
    if (this.world.writesLogs) {
      this.write(this.world.book.line(this.version, this.world.wallMs(), like, fields, message));
    }
  }

  write(line: string) {
    if (this.running) this.node.wrote(line);
  }

  end(exit: ProcessExit) {
    if (!this.running) return;
    this.running = false;
    this.serving = false;
    this.listening = false;
    this.#serves();
    this.raft?.stop(!(exit.kind === 'code' ? exit.code === 2 : exit.name === 'SIGKILL'));
    this.world.note(this.node.name, `ends ${exit.kind === 'code' ? exit.code : exit.name}`);
    this.node.ended(exit);
    for (const drop of [...this.calls]) drop(refusals.connectionLost);
    this.calls.clear();
    this.#inbox = [];
    this.world.changed();
  }

  #bind() {
    const { node, args } = this;
    const restored = node.disk;
    this.log('starting an etcd server', {
      'etcd-version': node.version.join('.'),
      'member-initialized': restored !== undefined,
      name: args.name,
      'data-dir': node.dataDir,
    });
    if (restored !== undefined) return this.#restart(restored);
    const begun = bootstrap(args, (peerUrl) => this.world.peerView(node, peerUrl));
    if (begun.kind === 'refused') {
      this.log('discovery failed', { error: begun.error });
      return this.#endSoon({ kind: 'code', code: 1 });
    }
    this.#view = begun.view;
    node.disk = begun.data;
    this.log('starting local member', {
      'local-member-id': formatId(begun.data.memberId),
      'cluster-id': formatId(begun.data.clusterId),
    });
    const isAlone = begun.data.log.length === 1;
    this.#startRaft(begun.data, isAlone ? 50 + this.world.random.below(850) : 300 + this.world.random.below(1_200));
  }

  #restart(data: MemberData) {
    this.log('restarting local member', {
      'local-member-id': formatId(data.memberId),
      'cluster-id': formatId(data.clusterId),
      'commit-index': data.commit,
    });
    if (this.args.forceNewCluster) {
      const machine = this.#machine();
      for (const entry of data.log.slice(0, data.commit)) machine.apply(entry.command);
      forceNewCluster(data, [...machine.members.values()]);
    }
    this.#startRaft(data, 1_000 + this.world.random.below(900));
  }

  #machine(): Machine {
    const { version, args } = this;
    const [, minor] = version;
    const repaired = isAtLeast(version, minor === 6 ? [3, 6, 12] : [3, 5, 31]);
    return new Machine({ spoilsLearners: !repaired, maxLearners: args.maxLearners });
  }

  #startRaft(data: MemberData, firstElectionMs: number) {
    const etcd = this;
    const raft = new Raft(data, this.#machine(), this.world, {
      get frozen() {
        return etcd.frozen;
      },
      onApplied: (_index, entry, applied) => this.#onApplied(entry, applied),
      onLeader: (before, now) => this.#onLeader(before, now),
      onPanic: (text) => this.#onPanic(text),
    });
    this.raft = raft;
    this.listening = true;
    raft.start(firstElectionMs);
    if (!raft.departed) this.#publish();
  }

  #publish() {
    const { raft, args, world } = this;
    if (raft === undefined || !this.running || this.#ending || this.serving) return;
    const { clientUrls, name } = args;
    const until = world.queue.nowMs() + requestTimeoutMs;
    let published = false;
    this.propose({ kind: 'publish', id: raft.id, name, clientUrls }, until, (outcome) => {
      if (outcome.kind === 'refused' || published || this.#ending) return;
      published = true;
      this.#serves = world.queue.after(2 + world.random.below(8), () => this.#whenThawed(() => this.#serve()));
    });
    world.queue.after(requestTimeoutMs, () => {
      if (published || !this.running || this.#ending) return;
      this.log('failed to publish local member to cluster through raft', { 'local-member-id': formatId(raft.id) });
      this.#publish();
    });
  }

  #serve() {
    if (!this.running || this.#ending || this.raft?.departed === true) return;
    if (isAtLeast(this.version, [3, 5, 0])) this.log('ready to serve client requests');
    this.log('serving client traffic insecurely; this is strongly discouraged!', {
      address: this.args.clientUrls[0]?.replace(/^https?:\/\//, ''),
    });
    this.serving = true;
    this.world.note(this.node.name, 'serves');
    this.node.changed();
    this.#runInbox();
  }

  #onApplied(entry: Entry, applied: Applied) {
    if (applied.kind === 'done') this.#logMembership(entry.command);
    const waiter = this.#waiters.get(entry.proposal);
    if (entry.proposal !== 0 && waiter !== undefined) {
      this.#waiters.delete(entry.proposal);
      waiter(applied);
    }
    this.reads.applied();
    const { command } = entry;
    if (command.kind === 'removeMember' && applied.kind === 'done' && command.id === this.id) this.#applyOwnRemoval();
  }

  /** Its own log says so: it ends after a second, unless a peer tells it before. */
  #applyOwnRemoval() {
    const { raft, world } = this;
    if (raft !== undefined) raft.departed = true;
    world.changed();
    world.queue.after(1_000, () =>
      this.#whenThawed(() => {
        if (this.#ending) return;
        this.#ending = true;
        this.#endAsRemoved();
      }),
    );
  }

  #endAsRemoved() {
    if (!this.running) return;
    this.log('server error', { error: removedText });
    this.log('data-dir used by this member must be removed');
    // Before it has served, the listener may be told first that the server is stopping.
    const listenerFirst = isAtLeast(this.version, [3, 5, 18]) && !this.serving && this.world.random.chance(0.5);
    if (listenerFirst) this.log('listener failed: stopping', { error: 'server is stopping' });
    this.#endSoon({ kind: 'code', code: listenerFirst ? 1 : 0 });
  }

  #onPanic(text: string) {
    if (text.startsWith('tocommit')) {
      this.log('tocommit', {}, text);
      const [, ...frames] = this.world.book.trace(this.version, 'tocommit');
      this.write(`panic: ${text}`);
      for (const frame of frames) this.write(frame);
    } else {
      this.write(`panic: ${text}`);
      this.write('');
      this.write('goroutine 132 [running]:');
    }
    this.end({ kind: 'code', code: 2 });
  }

  #onLeader(before: MemberId, now: MemberId) {
    const { raft } = this;
    if (raft === undefined) return;
    const [self, old, next] = [raft.id, before, now].map(formatId);
    this.world.note(this.node.name, `leader ${next} term ${raft.term}`);
    if (before === 0n) this.log('elected leader', {}, `raft.node: ${self} elected leader ${next} at term ${raft.term}`);
    else if (now === 0n) this.log('lost leader', {}, `raft.node: ${self} lost leader ${old} at term ${raft.term}`);
    if (now === 0n) return;
    // Reads that waited are refused; proposals that waited are made.
    this.reads.leaderChanged();
    const blocked = this.#blocked;
    this.#blocked = [];
    const nowMs = this.world.queue.nowMs();
    this.world.queue.after(0, () => {
      for (const { command, untilMs, done } of blocked) {
        if (this.running && untilMs > nowMs) this.propose(command, untilMs, done);
      }
    });
  }

  #logMembership(command: Command) {
    const ids = this.#ids();
    switch (command.kind) {
      case 'addMember':
        return this.log('added member', {
          ...ids,
          'added-peer-id': formatId(command.member.id),
          'added-peer-peer-urls': command.member.peerUrls,
          'added-peer-is-learner': command.member.isLearner,
        });
      case 'removeMember':
        return this.log('removed member', {
          ...ids,
          'removed-remote-peer-id': formatId(command.id),
          'removed-remote-peer-urls': [],
        });
      case 'promoteMember':
        return this.log('promote member', { ...ids, 'promoted-member-id': formatId(command.id) });
      default:
        return undefined;
    }
  }

  #ids(): Readonly<Record<string, string>> {
    const { raft } = this;
    const data = raft?.data ?? this.node.disk;
    return { 'cluster-id': formatId(data?.clusterId ?? 0n), 'local-member-id': formatId(data?.memberId ?? 0n) };
  }

  #transferBeforeEnd(raft: Raft, close: () => void) {
    const { world } = this;
    const target = this.links.longestConnected(raft.machine.voters.map(({ id }) => id));
    if (target === undefined) {
      world.queue.after(5 + world.random.below(20), close);
      return;
    }
    raft.transfer(target);
    const until = world.queue.nowMs() + requestTimeoutMs;
    const poll = () => {
      if (!this.running) return;
      if (raft.leader !== target && world.queue.nowMs() < until) world.queue.after(100, poll);
      else close();
    };
    world.queue.after(100, poll);
  }

  #close(signal: string) {
    if (!this.running) return;
    this.log('closed etcd server', { name: this.args.name, 'data-dir': this.node.dataDir });
    this.end({ kind: 'signal', name: signal });
  }

  #endSoon(exit: ProcessExit) {
    this.#ending = true;
    this.serving = false;
    this.world.queue.after(2 + this.world.random.below(10), () => this.#whenThawed(() => this.end(exit)));
  }

  #runInbox() {
    const inbox = this.#inbox;
    this.#inbox = [];
    for (const run of inbox) run();
  }

  /** A frozen process does nothing; what was due is done when it goes on. */
  #whenThawed(act: () => void) {
    if (!this.running) return;
    if (this.frozen) this.node.onThaw(() => this.running && act());
    else act();
  }
}

interface Proposal {
  readonly command: Command;
  readonly untilMs: number;
  readonly done: (outcome: Outcome) => void;
}

/** What a proposal ends with that nobody could take in time. */
export function lateProposal(etcd: SimulatedEtcd): Refusal {
  return etcd.raft?.leader === 0n ? noLeaderInTime(etcd.version) : refusals.requestTimedOut;
}
