// Goal: what the simulation does beyond the answers of test/conformance is sound, and every run can be repeated.
// Method: random schedules of crashes, freezes and cuts against raft's own promises; then single stories with the classes that
// the agent draws from the log.
import { describe, expect, test } from 'vitest';
import { EtcdCallError } from '../../../src/etcd/call.ts';
import type { Evidence } from '../../../src/etcd/evidence.ts';
import { classifyExit } from '../../../src/etcd/exit.ts';
import { entriesOf } from '../../../src/etcd/log-assembler.ts';
import { evidenceOf } from '../../etcd/samples.ts';
import { SeededRandom } from '../seeded-random.ts';
import { SimulatedCluster } from './cluster.ts';
import { LogBook } from './log-book.ts';
import type { SimulatedNode } from './node.ts';
import { isAtLeast, versionOf } from './refusals.ts';

const book = new LogBook();
const names = ['n1', 'n2', 'n3'] as const;

async function founded(seed: number, version = '3.5.30', flags: readonly string[] = []): Promise<SimulatedCluster> {
  const sim = new SimulatedCluster({ seed, version, book });
  sim.trace.keep();
  for (const name of [...names, 'n4']) sim.addNode(name);
  sim.found(names, 'token', flags);
  await sim.until(() => names.every((name) => sim.node(name).isServing));
  return sim;
}

/** Thirty random disturbances with writes between them; then all is well again. Gives the keys that were acknowledged. */
async function disturbed(sim: SimulatedCluster, seed: number): Promise<readonly string[]> {
  const random = new SeededRandom(seed ^ 0x5eed);
  const acknowledged: string[] = [];
  for (let step = 0; step < 30; step++) {
    const name = random.pick(names);
    const node = sim.node(name);
    const other = random.pick(names);
    const key = `/k${step}`;
    const acts: readonly (() => void)[] = [
      () => node.signal('SIGKILL'),
      () => node.signal('SIGTERM'),
      () => !node.isRunning && sim.restart(name),
      () => !node.isRunning && sim.restart(name),
      () => name !== other && sim.cut(name, other, random.chance(0.5) ? 'both' : 'oneWay'),
      () => sim.healAll(),
      () => node.isRunning && node.freeze(),
      () => node.frozen && node.thaw(),
      () =>
        void sim
          .client(name)
          .moveLeader(sim.node(other).memberId ?? 0n)
          .catch(isCallError),
    ];
    acts[random.below(acts.length)]?.();
    for (const writer of names) {
      const write = sim.client(writer).keys.put(`${key}${writer}`, 'v', { deadlineMs: 1_500 });
      write.then(() => acknowledged.push(`${key}${writer}`), isCallError);
    }
    await sim.run(random.below(1_500));
  }
  sim.healAll();
  for (const name of names) {
    const node = sim.node(name);
    if (node.frozen) node.thaw();
    // One that was told to stop while it was frozen may end only now.
    await sim.run(100);
    if (node.isRunning) continue;
    sim.restart(name);
  }
  await sim.run(20_000);
  for (const name of names) if (!sim.node(name).isRunning) sim.restart(name);
  await sim.until(() => names.every((name) => sim.node(name).isServing), 60_000, `seed ${seed}: all serve again`);
  return acknowledged;
}

function isCallError(error: unknown): void {
  if (!(error instanceof EtcdCallError)) throw error;
}

describe('random schedules', () => {
  test('one leader a term, equal committed logs, no acknowledged write lost', async () => {
    const started = performance.now();
    const runs = 60;
    let writes = 0;
    for (let seed = 1; seed <= runs; seed++) {
      const sim = await founded(seed);
      const acknowledged = await disturbed(sim, seed);
      writes += acknowledged.length;
      const leaders = new Map<string, string>();
      for (const line of sim.trace.lines) {
        const [, leader, term] = /leader ([1-9a-f][0-9a-f]*) term (\d+)$/.exec(line) ?? [];
        if (leader === undefined || term === undefined) continue;
        expect(leaders.get(term) ?? leader, `seed ${seed}, term ${term}`).toBe(leader);
        leaders.set(term, leader);
      }
      const [first, ...others] = names.map((name) => sim.node(name).disk);
      for (const disk of others) {
        const common = Math.min(disk?.commit ?? 0, first?.commit ?? 0);
        // Copies of an entry are the entry itself; each founder made the first three.
        const isOther = (index: number) => index >= 3 && index < common;
        const differs = disk?.log.findIndex((entry, index) => isOther(index) && entry !== first?.log[index]);
        expect(differs, `seed ${seed}`).toBe(-1);
      }
      const keys = await sim.settle(sim.client('n2').keys.list('/k'));
      const found = new Set(keys.map(({ key }) => key));
      expect(
        acknowledged.filter((key) => !found.has(key)),
        `seed ${seed}`,
      ).toEqual([]);
    }
    expect(writes).toBeGreaterThan(runs * 10);
    const aMinute = Math.round((runs / (performance.now() - started)) * 60_000);
    say(`${runs} schedules, ${writes} acknowledged writes, ${aMinute} schedules a minute`);
  });

  test('the same seed and schedule give the same trace, another seed another one', async () => {
    const hashOf = async (seed: number) => {
      const sim = await founded(seed);
      await disturbed(sim, seed);
      return `${sim.trace.hash} ${sim.trace.count}`;
    };
    const first = await hashOf(11);
    say(`the trace of seed 11 is ${first}`);
    expect(await hashOf(11)).toBe(first);
    expect(await hashOf(12)).not.toBe(first);
  });
});

describe('how etcd ends, read from its log as the agent reads it', () => {
  const versions = ['3.4.23', '3.5.16', '3.5.30', '3.7.3'];

  test.each(versions)('etcd %s: removed, with a Status in the way or without', async (version) => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 25; seed++) {
      const sim = await founded(seed, version, ['--strict-reconfig-check=false']);
      const { leader, victim } = pair(sim);
      const victimId = victim.memberId ?? 0n;
      const removal = sim.client(leader.name).removeMember(victimId);
      const hammer = seed % 2 === 0;
      for (let call = 0; hammer && call < 15; call++) {
        sim.client(victim.name).status({ deadlineMs: 500 }).catch(isCallError);
        await sim.run(2);
      }
      await sim.settle(removal);
      await sim.until(() => !victim.isRunning, 3_000);
      const evidence = evidenceOfNode(victim);
      const { exit } = victim.life ?? {};
      seen.add(`${exit?.kind === 'code' ? exit.code : exit?.name}${evidence.learnerPanic ? ' panic' : ''}`);
      expect(evidence.permanentlyRemoved || evidence.ownRemoval !== undefined, `seed ${seed}`).toBe(true);
      expect(classOf(victim), `seed ${seed}`).toBe(
        evidence.ownRemoval === undefined ? 'removalUnconfirmed' : 'removed',
      );
    }
    expect([...seen].sort()).toEqual(['0', '2 panic']);
  });

  test.each(versions)('etcd %s: killed, stopped, stale, refused', async (version) => {
    const sim = await founded(3, version);
    const { leader, victim } = pair(sim);
    await sim.settle(sim.client(leader.name).keys.put('/a', 'x'));
    await sim.run(1_000);
    victim.signal('SIGKILL');
    expect(classOf(victim)).toBe('killed');
    victim.wipe();
    sim.start(victim.name, { initialCluster: sim.initialCluster(names), state: 'existing' });
    await sim.until(() => !victim.isRunning);
    expect(classOf(victim)).toBe('staleIdentity');
    victim.wipe();
    sim.start(victim.name, { initialCluster: sim.initialCluster(names), state: 'new' });
    await sim.until(() => !victim.isRunning);
    expect(classOf(victim)).toBe('bootstrapRefused');
    leader.signal('SIGTERM');
    await sim.until(() => !leader.isRunning);
    expect(leader.life?.exit).toEqual({ kind: 'signal', name: 'SIGTERM' });
    expect(evidenceOfNode(leader)).toMatchObject({ served: true, signalReceived: 'terminated', version });
  });

  test('removed while it was down, nobody reachable: it waits, and ends within a second of a peer', async () => {
    const sim = await founded(4, '3.5.30', ['--strict-reconfig-check=false']);
    const { leader, victim, other } = pair(sim);
    victim.signal('SIGKILL');
    await sim.settle(sim.client(leader.name).removeMember(victim.memberId ?? 0n));
    for (const name of [leader.name, other.name]) sim.cut(victim.name, name);
    sim.restart(victim.name);
    await sim.run(60_000);
    expect(victim.isRunning).toBe(true);
    expect(victim.isServing).toBe(false);
    sim.heal(victim.name, other.name);
    await sim.until(() => !victim.isRunning, 1_000);
  });

  test('one that is killed has forgotten its newest commits and no entry; one that is stopped forgets nothing', async () => {
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const sim = await founded(10);
      await sim.settle(sim.client('n1').keys.put('/a', 'x'));
      await sim.run(100);
      const { victim: node } = pair(sim);
      node.signal(signal);
      await sim.until(() => !node.isRunning);
      const disk = node.disk ?? expect.fail('it has a disk');
      expect(disk.log.at(-1)?.command).toMatchObject({ kind: 'put', key: '/a' });
      expect(disk.log.length - disk.commit).toBe(signal === 'SIGKILL' ? 1 : 0);
    }
  });

  test('the same founders with the same token get the same ids again: lost disks are taken in without a word', async () => {
    const sim = await founded(5);
    await sim.settle(sim.client('n3').keys.put('/a', 'x'));
    const before = names.map((name) => sim.node(name).memberId);
    for (const name of names) sim.node(name).signal('SIGKILL');
    for (const name of ['n1', 'n2'] as const) sim.node(name).wipe();
    sim.found(['n1', 'n2'].slice(0, 0));
    for (const name of ['n1', 'n2']) sim.start(name, { initialCluster: sim.initialCluster(names), state: 'new' });
    await sim.until(() => ['n1', 'n2'].every((name) => sim.node(name).isServing));
    expect(names.map((name) => sim.node(name).memberId)).toEqual(before);
    expect(await sim.settle(sim.client('n1').keys.get('/a'))).toBeUndefined();
  });
});

describe('the network', () => {
  test('a leader that reaches nobody steps down; the majority goes on; reads on the minority are never old', async () => {
    const sim = await founded(6);
    const { leader, victim, other } = pair(sim);
    sim.cut(leader.name, victim.name);
    sim.cut(leader.name, other.name);
    const read = sim.client(leader.name).linearizableRead({ deadlineMs: 2_500 });
    await expect(sim.settle(read)).rejects.toThrow(EtcdCallError);
    await sim.until(() => leader.etcd?.raft?.role === 'follower', 3_000);
    await sim.until(() => sim.leader() !== undefined && sim.leader() !== leader, 5_000);
    await sim.settle(sim.client(other.name).keys.put('/a', 'x', { deadlineMs: 2_000 }));
    sim.healAll();
    await sim.until(() => leader.etcd?.raft?.leader === sim.leader()?.memberId, 3_000);
    expect((await sim.settle(sim.client(leader.name).keys.get('/a')))?.value).toBe('x');
  });

  test('a follower that hears the leader and is not heard keeps following and does not count', async () => {
    const sim = await founded(7);
    const { leader, victim, other } = pair(sim);
    sim.cut(victim.name, leader.name, 'oneWay');
    sim.cut(other.name, leader.name, 'oneWay');
    await sim.run(500);
    expect(victim.etcd?.raft?.leader).toBe(leader.memberId);
    await sim.until(() => leader.etcd?.raft?.role === 'follower', 3_000);
  });

  test('what an agent on a node that is cut off asks gets no answer; a machine besides still does', async () => {
    const sim = await founded(8);
    sim.cut('n1', 'n2');
    const cutOff = sim.client('n2', { from: sim.node('n1') });
    await expect(sim.settle(cutOff.serializableRead({ deadlineMs: 300 }))).rejects.toThrow(/DEADLINE_EXCEEDED/);
    await sim.settle(sim.client('n2').serializableRead({ deadlineMs: 300 }));
    expect(sim.peerView(sim.node('n2').peerUrl, sim.node('n1'))).toBeUndefined();
    expect(sim.peerView(sim.node('n2').peerUrl)?.members).toHaveLength(3);
  });

  test('an answer that is lost on its way leaves the change done', async () => {
    const sim = await founded(9, '3.5.30', ['--strict-reconfig-check=false']);
    sim.loseNextAnswer('n1', 'MemberAdd');
    const add = sim.client('n1').addLearner(sim.node('n4').peerUrl, { deadlineMs: 1_000 });
    await expect(sim.settle(add)).rejects.toThrow(EtcdCallError);
    const list = await sim.settle(sim.client('n1').memberList({ linearizable: true }));
    expect(list.members).toHaveLength(4);
  });
});

test('versions are ordered by number', () => {
  expect(isAtLeast(versionOf('3.10.0'), [3, 9, 9])).toBe(true);
  expect(isAtLeast(versionOf('3.5.29'), [3, 5, 30])).toBe(false);
});

function say(text: string): void {
  process.stdout.write(`simulated cluster: ${text}\n`);
}

function pair(sim: SimulatedCluster): {
  readonly leader: SimulatedNode;
  readonly victim: SimulatedNode;
  readonly other: SimulatedNode;
} {
  const leader = sim.leader();
  const [victim, other] = names.map((name) => sim.node(name)).filter((node) => node !== leader);
  if (leader === undefined || victim === undefined || other === undefined) throw new Error('three nodes, one leads');
  return { leader, victim, other };
}

function evidenceOfNode(node: SimulatedNode): Evidence {
  return evidenceOf(entriesOf(node.life?.lines ?? []));
}

function classOf(node: SimulatedNode): string {
  const exit = node.life?.exit;
  if (exit === undefined) throw new Error(`${node.name} runs`);
  return classifyExit({
    exit: exit.kind === 'code' ? exit : { kind: 'signal', signal: exit.name },
    evidence: evidenceOfNode(node),
    asked: { kind: 'none' },
    host: { freeBytes: undefined, oomKills: undefined },
    lists: [],
    lastKnownVoters: [],
    ownId: undefined,
    clusterId: undefined,
    ownRemovalJournalled: false,
  }).class;
}
