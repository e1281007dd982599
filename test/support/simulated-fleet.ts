import { sha256 } from '../../src/agent/change/hearing.ts';
import type { EffectName } from '../../src/agent/effects.ts';
import { type AcceptedRisk, listHash } from '../../src/etcd/accepted-risk.ts';
import { changeRecordKey } from '../../src/etcd/change-record.ts';
import { formatId, type Member, sameUrls } from '../../src/etcd/member.ts';
import { SeededRandom } from './seeded-random.ts';
import { SimulatedCluster } from './simulated-cluster/cluster.ts';
import { LogBook } from './simulated-cluster/log-book.ts';
import { type CrashPlan, orderAt, type Passed } from './simulated-fleet/crash.ts';
import { FleetNode } from './simulated-fleet/fleet-node.ts';

const book = new LogBook();

/** Time between two looks at what is waited for. Unit: ms. */
const lookMs = 100;
/** etcd takes no learner before its members have been connected for 5 s. Unit: ms. */
export const settleMs = 5_500;
/** A killed agent is started again after up to so much, as systemd does. Unit: ms. */
const restartMs = 3_000;
/** A machine that lost its power is back after up to so much. Unit: ms. */
const rebootMs = 8_000;

/**
 * Whole agents, each on a machine with a disk in memory, over one simulated cluster and one clock. A role document is set for
 * each; agents die where a {@link CrashPlan} says so, and the next ones are booted by themselves.
 */
export class SimulatedFleet {
  readonly sim: SimulatedCluster;
  readonly nodes: FleetNode[] = [];
  /** Every crash point that was passed, in order. */
  readonly passed: Passed[] = [];
  /** The plans by which an agent was killed, in order. */
  readonly crashes: CrashPlan[] = [];
  /** Told of every crash point; a test changes the world there. */
  onPass: (passed: Passed) => void = () => {};
  readonly #random: SeededRandom;
  readonly #plans: CrashPlan[] = [];
  readonly #awayMs = new Map<CrashPlan, number>();
  readonly #violations: string[] = [];
  #grants = 0;
  /** The plan that is about to kill an agent of a node. */
  readonly #dying = new Map<string, CrashPlan>();
  readonly #howItDies = new Map<string, 'kill' | 'powerLoss'>();

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.sim = new SimulatedCluster({ seed, book });
  }

  node(name: string): FleetNode {
    const found = this.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`there is no node ${name}`);
    return found;
  }

  /** The first `founders` of `names` are members of a running cluster; the others are empty. All have an agent. */
  async build(names: readonly string[], founders: number): Promise<void> {
    for (const name of names) this.nodes.push(this.#newNode(name));
    const founding = names.slice(0, founders);
    this.sim.found(founding);
    await this.sim.until(() => founding.every((name) => this.sim.node(name).isServing));
    await this.sim.until(() => this.members().every(({ name }) => name !== ''));
    const members = this.members().map(plain);
    for (const name of founding) {
      const { peerUrl, clientUrl, disk } = this.sim.node(name);
      if (disk === undefined) throw new Error(`${name} did not start`);
      const { clusterId, memberId } = disk;
      const initialCluster = this.sim.initialCluster(founding);
      const addresses = { name, peerUrl, clientUrl, initialCluster, initialClusterToken: 'token' };
      const known = { lastVoters: members, lastMembers: members };
      this.node(name).becomeMember({ clusterId, memberId, grantId: '', ...addresses, ...known });
      this.grant(name);
    }
    for (const node of this.nodes) node.boot();
    await this.pass(settleMs);
  }

  // --- orders

  /** The role document of a node asks for a member, under a new grant. */
  grant(name: string): void {
    this.#setRole(name, 'consensus-member', `grant-${++this.#grants}`, []);
  }

  /** The role document asks the node to leave, or not to be a member. */
  revoke(name: string, accepted: readonly AcceptedRisk[] = [], role: 'leaving' | 'none' = 'leaving'): void {
    this.#setRole(name, role, this.node(name).role?.grantId ?? '', accepted);
  }

  /** The word with which somebody accepts that not one more voter may fail once this node has left the list of now. */
  zeroTolerance(name: string): readonly AcceptedRisk[] {
    const memberId = this.sim.node(name).memberId ?? 0n;
    const hash = listHash(this.#clusterId(), this.members(), sha256);
    return [{ kind: 'zero-tolerance', memberId: formatId(memberId), listHash: hash }];
  }

  /** The agent is killed there; the next one comes by itself. */
  crashAt(plan: CrashPlan): void {
    this.#plans.push(plan);
  }

  /** The agent dies now, or with it its whole machine; the next one comes by itself. */
  kill(name: string, how: 'kill' | 'powerLoss'): void {
    this.#howItDies.set(name, how);
    this.node(name).kill();
  }

  /** A machine on which etcd has ended goes down, and boots again. What was not synced fares as in a power loss. */
  reboot(name: string): void {
    if (this.node(name).etcd.isRunning) throw new Error(`etcd runs on ${name}`);
    this.kill(name, 'powerLoss');
  }

  /** The agent is killed right after its first such effect, and the next one comes only after `awayMs`. Returns whether it has died. */
  dieAndStayDown(name: string, effect: EffectName, awayMs: number): () => boolean {
    const occurrence = this.passed.filter((one) => one.node === name && one.effect === effect).length / 2 + 1;
    const plan: CrashPlan = { node: name, effect, moment: 'after', occurrence, how: 'kill', depth: 0 };
    this.#plans.push(plan);
    this.#awayMs.set(plan, awayMs);
    return () => !this.#awayMs.has(plan);
  }

  // --- what is

  /** The list as the leader has applied it; empty while nobody leads. */
  members(): readonly Member[] {
    const machine = this.sim.leader()?.etcd?.raft?.machine;
    return machine === undefined ? [] : [...machine.members.values()];
  }

  /** `n1 n2 n3(learner)`, sorted; by address, so that an unstarted member has a name as well. */
  get memberNames(): string {
    return this.members()
      .map((member) => `${this.#ownerOf(member)?.name}${member.isLearner ? '(learner)' : ''}`)
      .sort()
      .join(' ');
  }

  /** The change record as it stands in etcd. */
  get changeRecord(): string | undefined {
    return this.sim.leader()?.etcd?.raft?.machine.keys.get(changeRecordKey)?.value;
  }

  /** How often a change of this kind stands in the log of the cluster. */
  changesInLog(kind: 'addMember' | 'promoteMember' | 'removeMember'): number {
    const log = this.sim.leader()?.etcd?.raft?.data.log ?? [];
    return log.filter(({ command }) => command.kind === kind).length;
  }

  // --- time

  /** Lets time pass until `holds`. Throws if that takes too long, or if something happened that never may. */
  async until(holds: () => boolean, what: string, withinMs = 180_000): Promise<void> {
    const untilMs = this.sim.clock.monotonicMs() + withinMs;
    while (!holds()) {
      if (this.sim.clock.monotonicMs() > untilMs)
        throw new Error(`not within ${withinMs} ms: ${what}\n${this.describe()}`);
      await this.sim.clock.advance(lookMs);
      this.check();
    }
  }

  /** Gives an order to whatever agent is there, again every few seconds, until `holds`. */
  async insist(order: () => unknown, holds: () => boolean): Promise<void> {
    const untilMs = this.sim.clock.monotonicMs() + 180_000;
    while (!holds()) {
      if (this.sim.clock.monotonicMs() > untilMs) throw new Error(`an order came to nothing\n${this.describe()}`);
      if (this.nodes.every(({ alive }) => alive)) void Promise.resolve(order()).catch(() => {});
      for (let look = 0; look < 50 && !holds(); look++) await this.pass(lookMs);
    }
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.sim.clock.monotonicMs() + ms;
    await this.until(() => this.sim.clock.monotonicMs() >= untilMs, 'time');
  }

  /** The members are these (or one of these lists), every agent is content, and nothing is left in between. */
  async settles(...wanted: readonly string[]): Promise<void> {
    const isSo = () => wanted.includes(this.memberNames) && this.#isQuiet();
    await this.until(isSo, `the members are ${wanted.join(' or ')}`);
  }

  /** Throws if something happened that never may. */
  check(): void {
    const owners = this.members().map((member) => this.#ownerOf(member));
    if (new Set(owners).size < owners.length) this.#violations.push(`two members of one node: ${this.memberNames}`);
    if (this.members().filter(({ isLearner }) => isLearner).length > 1) this.#violations.push('two learners at once');
    for (const { name, ended } of this.nodes)
      if (ended !== undefined) throw new Error(`the agent of ${name} ended`, { cause: ended });
    if (this.#violations.length > 0) throw new Error(`${this.#violations.join('; ')}\n${this.describe()}`);
  }

  /** What holds once all is over: no data is gone, each removal was told once, each address is the configured one, no record stands. */
  checkEnd(): void {
    this.check();
    const wrong: string[] = [];
    for (const node of this.nodes) {
      for (const id of node.data.lost()) wrong.push(`the data of member ${id} of ${node.name} is gone`);
      const told = node.factsOf('member.removed').filter(({ data }) => data['self'] === true);
      const ids = told.map(({ data }) => JSON.stringify(data['member']));
      if (new Set(ids).size < ids.length) wrong.push(`${node.name} reported one removal twice`);
      const stones = node.state.tombstones.read();
      const count = stones.kind === 'ok' ? stones.value.length : 0;
      if (ids.length !== count) wrong.push(`${node.name} has ${count} tombstones and reported ${ids.length} removals`);
    }
    for (const { peerUrls, id } of this.members()) {
      const node = this.nodes.find(({ peerUrl }) => sameUrls(peerUrls, [peerUrl]));
      const isRecorded = node?.state.knownIdentity()?.peerUrl === node?.peerUrl;
      if (node === undefined || !isRecorded) wrong.push(`no node has ${peerUrls.join()} of member ${formatId(id)}`);
    }
    if (this.changeRecord !== undefined) wrong.push(`the change record stands: ${this.changeRecord}`);
    if (wrong.length > 0) throw new Error(`${wrong.join('; ')}\n${this.describe()}`);
  }

  /** The state of all, for a failure that is looked into. */
  describe(): string {
    const nodes = this.nodes.map((node) => {
      const agent = node.alive ? node.plan : 'no agent';
      return `  ${node.name} etcd ${node.etcd.isServing ? 'serves' : node.etcd.isRunning ? 'runs' : 'is down'}; ${agent}; ${node.alive ? (node.parts.agent.failing?.because ?? '') : ''}`;
    });
    const at = `at ${Math.round(this.sim.clock.monotonicMs())} ms: ${this.memberNames}; record ${this.changeRecord ?? 'none'}`;
    return [at, ...nodes].join('\n');
  }

  #isQuiet(): boolean {
    return this.changeRecord === undefined && this.nodes.every((node) => node.alive && this.#isContent(node));
  }

  /** Converged, or refused for good; with its etcd running exactly if it is a member. */
  #isContent(node: FleetNode): boolean {
    const { plan, etcd, role } = node;
    const isMember = this.members().some((member) => node.owns(member));
    if (isMember !== etcd.isServing || (!isMember && etcd.isRunning)) return false;
    return (
      plan.startsWith('converged') ||
      plan.startsWith('blocked changeRefused') ||
      (role === undefined && plan.startsWith('blocked roleUnknown'))
    );
  }

  #ownerOf(member: Member): FleetNode | undefined {
    return this.nodes.find((node) => node.owns(member));
  }

  #newNode(name: string): FleetNode {
    return new FleetNode({
      sim: this.sim,
      name,
      random: this.#random.fork(),
      endpoints: () => this.sim.nodes.map(({ clientUrl }) => clientUrl),
      atCrashPoint: (passed) => this.#at(passed),
      onDeath: (node) => this.#died(node),
      onViolation: (what) => this.#violations.push(what),
    });
  }

  #at(passed: Passed) {
    this.passed.push(passed);
    this.onPass(passed);
    for (const plan of this.#plans) {
      const order = orderAt(plan, passed);
      if (order === undefined) continue;
      this.#dying.set(passed.node, plan);
      return order;
    }
    return undefined;
  }

  #died(node: FleetNode): void {
    const plan = this.#dying.get(node.name);
    if (plan !== undefined) this.crashes.push(plan);
    this.#dying.delete(node.name);
    const how = plan?.how ?? this.#howItDies.get(node.name) ?? 'kill';
    const awayMs = plan === undefined ? undefined : this.#awayMs.get(plan);
    if (plan !== undefined) this.#awayMs.delete(plan);
    // The machine goes on after the agent's stack has been left.
    this.sim.clock.after(0, () => {
      node.down(how);
      const soonMs = 100 + this.#random.below(how === 'kill' ? restartMs : rebootMs);
      this.sim.clock.after(awayMs ?? soonMs, () => node.boot());
    });
  }

  #setRole(
    name: string,
    role: 'consensus-member' | 'leaving' | 'none',
    grantId: string,
    accepted: readonly AcceptedRisk[],
  ) {
    const node = this.node(name);
    const clusterId = this.#clusterId();
    node.role = { kind: 'known', role, grantId, spent: false, clusterId, hasEndpoints: true, accepted };
    node.wake();
  }

  #clusterId(): bigint {
    const clusterId = this.sim.leader()?.etcd?.raft?.clusterId ?? this.nodes[0]?.etcd.disk?.clusterId;
    if (clusterId === undefined) throw new Error('there is no cluster');
    return clusterId;
  }
}

function plain({ id, name, peerUrls, clientUrls, isLearner }: Member) {
  return { id, name, peerUrls: [...peerUrls], clientUrls: [...clientUrls], isLearner };
}
