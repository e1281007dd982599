import type { Clock } from '../../../src/base/clock.ts';
import type { ClusterId, MemberId } from '../../../src/etcd/member.ts';
import { FakeClock } from '../fake-clock.ts';
import { SeededRandom } from '../seeded-random.ts';
import type { PeerView } from './bootstrap.ts';
import { SimulatedKeeper } from './child.ts';
import { SimulatedClient, type SimulatedClientOptions } from './client.ts';
import type { SimulatedEtcd } from './etcd.ts';
import { EventQueue } from './event-queue.ts';
import { LogBook } from './log-book.ts';
import { SimulatedNode } from './node.ts';
import type { Raft } from './raft.ts';
import { Trace } from './trace.ts';
import type { World } from './world.ts';

export interface SimulatedClusterOptions {
  /** The same seed and the same orders give the same run. */
  readonly seed: number;
  /** Default: one of its own. */
  readonly clock?: FakeClock;
  /** etcd's version on every node. Default 3.5.30. */
  readonly version?: string;
  /** Shared by many runs: reading it takes some 10 ms. */
  readonly book?: LogBook;
  /** Default true. */
  readonly writesLogs?: boolean;
}

/**
 * Nodes with etcd on them, a network between them, and time that is moved by hand. What an agent can see of etcd is right
 * (test/conformance puts the same questions to a real one); how etcd does it inside is not simulated. Not there at all:
 *
 * - heartbeats and votes one by one: an election is won or lost at one instant, votes are never split
 * - snapshots and compaction of the log: a joiner is given the whole log
 * - writes that are not synced: an entry is durable once it stands in the log
 * - leases, watches, authentication, alarms, quota, cluster version and refusals between versions, downgrade
 * - TLS, names, ports that are taken, a locked directory, damaged files, a slow disk, load that is shed
 * - the HTTP sides: the child counts as ready once etcd serves; a peer URL answers who is in the cluster, and nothing else
 * - a cut in one direction as TCP meets it: messages are lost that way, the other way goes on
 * - a forced new cluster that is met by its old leader's heartbeat before it has removed the others (seen: panic, code 2)
 */
export class SimulatedCluster {
  readonly clock: FakeClock;
  readonly trace = new Trace();
  readonly nodes: SimulatedNode[] = [];
  readonly #world: SimulatedWorld;
  readonly #version: string;

  constructor(options: SimulatedClusterOptions) {
    this.clock = options.clock ?? new FakeClock();
    this.#version = options.version ?? '3.5.30';
    this.#world = new SimulatedWorld(this.clock, this.nodes, this.trace, options);
  }

  /** A node with an empty disk, on which nothing runs. */
  addNode(name: string, version = this.#version): SimulatedNode {
    const node = new SimulatedNode(name, this.nodes.length + 1, version, this.#world);
    this.nodes.push(node);
    return node;
  }

  /** Throws if there is none. */
  node(name: string): SimulatedNode {
    const found = this.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`there is no node ${name}`);
    return found;
  }

  /** Starts etcd as a founder on each of these nodes: the first `count` that were added, or those named. */
  found(names: readonly string[], token = 'token', flags: readonly string[] = []): void {
    const list = this.initialCluster(names);
    for (const name of names) this.start(name, { initialCluster: list, state: 'new', token, flags });
  }

  /** Starts etcd on a node; list, state and token count only without data. */
  start(
    name: string,
    how: {
      readonly initialCluster: string;
      readonly state: 'new' | 'existing';
      readonly token?: string;
      readonly flags?: readonly string[];
    },
  ): void {
    const node = this.node(name);
    node.start([
      ...[`--name=${name}`, `--data-dir=${node.dataDir}`],
      ...[`--initial-advertise-peer-urls=${node.peerUrl}`, `--advertise-client-urls=${node.clientUrl}`],
      ...[`--initial-cluster=${how.initialCluster}`, `--initial-cluster-state=${how.state}`],
      `--initial-cluster-token=${how.token ?? 'token'}`,
      ...(how.flags ?? []),
    ]);
  }

  /** Starts etcd again on its data. */
  restart(name: string, flags: readonly string[] = []): void {
    this.start(name, { initialCluster: this.initialCluster([name]), state: 'existing', flags });
  }

  /** `n1=http://10.0.0.1:2380,n2=…` */
  initialCluster(names: readonly string[]): string {
    return names.map((name) => `${name}=${this.node(name).peerUrl}`).join(',');
  }

  /** A client of one node; `from` says where it runs, for the network between. */
  client(name: string, options: SimulatedClientOptions = {}): SimulatedClient {
    return new SimulatedClient(this.node(name), this.#world, options);
  }

  /** Holds the child of one node: agents come and go, it stays. */
  keeper(name: string): SimulatedKeeper {
    return new SimulatedKeeper(this.node(name), this.#world.queue);
  }

  /** What a peer URL answers without a quorum; undefined: nothing does. */
  peerView(peerUrl: string, from?: SimulatedNode): PeerView | undefined {
    return this.#world.peerView(from, peerUrl);
  }

  /** The node whose client side has this URL. */
  nodeAt(clientUrl: string): SimulatedNode | undefined {
    return this.nodes.find((node) => node.clientUrl === clientUrl);
  }

  /** Packets from one node to the other vanish; `both` (the default) also those back. */
  cut(from: string, to: string, how: 'both' | 'oneWay' = 'both'): void {
    this.#world.cut(from, to, how);
  }

  heal(from: string, to: string): void {
    this.#world.heal(from, to);
  }

  healAll(): void {
    this.#world.healAll();
  }

  /** The next answer to this call on this node gets lost on its way, after the call was done. */
  loseNextAnswer(name: string, call: string): void {
    this.#world.lostAnswers.add(`${name} ${call}`);
  }

  /** The node that leads: with the highest term, if several believe it. */
  leader(): SimulatedNode | undefined {
    let leading: SimulatedNode | undefined;
    for (const node of this.nodes) {
      const raft = node.etcd?.raft;
      if (!node.isRunning || raft?.role !== 'leader') continue;
      if (leading === undefined || raft.term > (leading.etcd?.raft?.term ?? 0)) leading = node;
    }
    return leading;
  }

  /** Lets time pass. */
  async run(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  /** Lets time pass until `isSo`, at most `withinMs`. Throws if it is not so by then. */
  async until(isSo: () => boolean, withinMs = 30_000, what = 'what was waited for'): Promise<void> {
    const end = this.clock.monotonicMs() + withinMs;
    while (!isSo()) {
      const left = end - this.clock.monotonicMs();
      if (left <= 0) throw new Error(`${what} did not come within ${withinMs} ms of the simulation`);
      await this.clock.advance(Math.min(left, Math.max(this.clock.nextTimerInMs ?? left, 0)));
    }
  }

  /** Lets time pass until a promise has settled, and gives what it came to. */
  async settle<T>(promise: Promise<T>, withinMs = 60_000): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    promise.then(done, done);
    await this.clock.advance(0);
    await this.until(() => settled, withinMs, 'an answer');
    return await promise;
  }
}

/** What the simulated processes see. */
class SimulatedWorld implements World {
  readonly queue: EventQueue;
  readonly random: SeededRandom;
  readonly book: LogBook;
  readonly writesLogs: boolean;
  readonly lostAnswers = new Set<string>();
  readonly #clock: Clock;
  readonly #nodes: readonly SimulatedNode[];
  readonly #trace: Trace;
  readonly #cuts = new Set<string>();
  #proposals = 0;
  #assessing = false;

  constructor(clock: Clock, nodes: readonly SimulatedNode[], trace: Trace, options: SimulatedClusterOptions) {
    this.#clock = clock;
    this.#nodes = nodes;
    this.#trace = trace;
    this.queue = new EventQueue(clock);
    this.random = new SeededRandom(options.seed);
    this.book = options.book ?? new LogBook();
    this.writesLogs = options.writesLogs ?? true;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  latencyMs(): number {
    return 1 + this.random.below(3);
  }

  nextProposal(): number {
    return ++this.#proposals;
  }

  note(who: string, what: string): void {
    this.#trace.note(this.queue.nowMs(), who, what);
  }

  rafts(): readonly Raft[] {
    return this.#running().flatMap((etcd) => etcd.raft ?? []);
  }

  raftOf(clusterId: ClusterId, id: MemberId): Raft | undefined {
    return this.etcdOf(clusterId, id)?.raft;
  }

  etcdOf(clusterId: ClusterId, id: MemberId): SimulatedEtcd | undefined {
    for (const { etcd } of this.#nodes) {
      if (etcd?.running === true && etcd.raft?.id === id && etcd.raft.clusterId === clusterId) return etcd;
    }
    return undefined;
  }

  linked(from: Raft, to: Raft): boolean {
    const [one, other] = [this.#processOf(from), this.#processOf(to)];
    if (one === undefined || other === undefined || one.frozen || other.frozen) return false;
    return this.open(one.node, other.node) && (dials(one, other) || dials(other, one));
  }

  open(from: SimulatedNode | undefined, to: SimulatedNode | undefined): boolean {
    if (from === undefined || to === undefined || this.#cuts.size === 0) return true;
    return !this.#cuts.has(`${from.name}>${to.name}`);
  }

  peerView(from: SimulatedNode | undefined, peerUrl: string): PeerView | undefined {
    for (const { etcd, node } of this.#running().map((etcd) => ({ etcd, node: etcd.node }))) {
      if (!etcd.args.listenPeerUrls.includes(peerUrl) || etcd.raft === undefined || etcd.frozen) continue;
      if (!this.open(from, node) || !this.open(node, from)) continue;
      return { clusterId: etcd.raft.clusterId, members: etcd.members };
    }
    return undefined;
  }

  cut(from: string, to: string, how: 'both' | 'oneWay'): void {
    this.note(from, `cut ${how} ${to}`);
    this.#cuts.add(`${from}>${to}`);
    if (how === 'both') this.#cuts.add(`${to}>${from}`);
    this.changed();
  }

  heal(from: string, to: string): void {
    this.note(from, `heal ${to}`);
    this.#cuts.delete(`${from}>${to}`);
    this.#cuts.delete(`${to}>${from}`);
    this.changed();
  }

  healAll(): void {
    this.note('', 'heal all');
    this.#cuts.clear();
    this.changed();
  }

  /** All look at the world once more, after what happens at this moment. */
  changed(): void {
    if (this.#assessing) return;
    this.#assessing = true;
    this.queue.after(0, () => {
      this.#assessing = false;
      const running = this.#running();
      for (const etcd of running) etcd.links.assess();
      for (const etcd of running) etcd.raft?.assess();
      for (const etcd of running) this.#tellRemoved(etcd, running);
    });
  }

  #tellRemoved(etcd: SimulatedEtcd, running: readonly SimulatedEtcd[]): void {
    const { raft } = etcd;
    if (raft === undefined || etcd.frozen) return;
    for (const other of running) {
      const peer = other.raft;
      if (peer === undefined || peer === raft) continue;
      if (peer.clusterId !== raft.clusterId) this.#noteMismatch(etcd, other);
      else if (peer.machine.removed.has(raft.id) && this.linked(raft, peer) && this.linked(peer, raft)) {
        etcd.toldRemoved(peer.id);
      }
    }
  }

  #noteMismatch(etcd: SimulatedEtcd, other: SimulatedEtcd): void {
    const meets = etcd.members.some(({ peerUrls }) => peerUrls.some((url) => other.args.listenPeerUrls.includes(url)));
    if (meets) etcd.noteOtherCluster(other);
  }

  #processOf(raft: Raft): SimulatedEtcd | undefined {
    for (const { etcd } of this.#nodes) if (etcd?.raft === raft && etcd.running) return etcd;
    return undefined;
  }

  #running(): readonly SimulatedEtcd[] {
    return this.#nodes.flatMap(({ etcd }) => (etcd?.running === true ? [etcd] : []));
  }
}

/** Whether one process has the other among its members, at an address where that listens. */
function dials(one: SimulatedEtcd, other: SimulatedEtcd): boolean {
  const known = one.knownMember(other.id);
  return known?.peerUrls.some((url) => other.args.listenPeerUrls.includes(url)) === true;
}
