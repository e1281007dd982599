// Goal: an agent can run on the simulation: child and cluster behave as its ports promise.
// Method: the ports in the hands of the test, with the agent's own reader of the log behind them.
import { describe, expect, test } from 'vitest';
import { LifeWatch } from '../../../src/agent/life-watch.ts';
import type { StartOrder } from '../../../src/agent/ports.ts';
import { etcdArguments } from '../../../src/etcd/flags.ts';
import { parseVersion } from '../../../src/etcd/known-versions.ts';
import { SimulatedChild, type SimulatedKeeper } from './child.ts';
import { SimulatedCluster } from './cluster.ts';
import { LogBook } from './log-book.ts';
import type { SimulatedNode } from './node.ts';
import { dataDirOf, SimulatedClusterPort } from './port.ts';

const book = new LogBook();

/** The command line that the agent itself would make. */
function orderFor(
  sim: SimulatedCluster,
  node: SimulatedNode,
  list: readonly string[],
  state: 'new' | 'existing',
): StartOrder {
  const members = list.map((name) => ({ name, peerUrls: [sim.node(name).peerUrl] }));
  const { args, problems } = etcdArguments(
    {
      name: node.name,
      dataDir: node.dataDir,
      listenPeerUrls: [node.peerUrl],
      advertisePeerUrls: [node.peerUrl],
      listenClientUrls: [node.clientUrl],
      advertiseClientUrls: [node.clientUrl],
      listenMetricsUrls: [],
      initial: { state, members, token: 'token' },
      flags: {},
    },
    parseVersion('3.5.30') ?? expect.fail(),
  );
  expect(problems).toEqual([]);
  return { binary: '/usr/bin/etcd', arguments: args };
}

function childOf(keeper: SimulatedKeeper): { readonly child: SimulatedChild; readonly watch: LifeWatch } {
  const watch = new LifeWatch();
  const child = new SimulatedChild({
    keeper,
    onLine: (life, line) => void watch.take(life, line),
    onChange: () => {},
  });
  child.recover();
  return { child, watch };
}

describe('the child', () => {
  test('it starts, gets ready, outlives its agent, is adopted, stops when asked', async () => {
    const sim = new SimulatedCluster({ seed: 1, book });
    const node = sim.addNode('n1');
    const keeper = sim.keeper('n1');
    const first = childOf(keeper);
    expect(first.child.view()).toMatchObject({ phase: 'down', life: 0, end: undefined });
    await first.child.start(orderFor(sim, node, ['n1'], 'new'));
    expect(first.child.view()).toMatchObject({ phase: 'starting', life: 1, adopted: false });
    await expect(first.child.start(orderFor(sim, node, ['n1'], 'new'))).rejects.toThrow(/runs on n1 already/);
    await sim.until(() => first.child.view().phase === 'ready');
    expect(first.watch.evidence).toMatchObject({ served: true, version: '3.5.30', memberId: node.memberId });
    first.child.close();

    const second = childOf(keeper);
    expect(second.child.view()).toMatchObject({ phase: 'ready', life: 1, adopted: true, pid: node.life?.pid });
    expect(second.watch.evidence).toEqual(first.watch.evidence);
    await second.child.stop({ graceMs: 20_000, why: 'stop', because: 'a test' });
    expect(second.child.view().phase).toBe('stopping');
    await sim.until(() => second.child.view().phase === 'down');
    expect(second.child.view().end).toMatchObject({
      life: 1,
      exit: { kind: 'signal', name: 'SIGTERM' },
      asked: { kind: 'signalled', signal: 'SIGTERM', afterGrace: false, why: 'stop' },
    });
    expect(dataDirOf(node)).toMatchObject({ kind: 'member', memberId: node.memberId });
  });

  test('one that is frozen outlives TERM and is killed after the grace', async () => {
    const sim = new SimulatedCluster({ seed: 2, book });
    const node = sim.addNode('n1');
    const { child } = childOf(sim.keeper('n1'));
    await child.start(orderFor(sim, node, ['n1'], 'new'));
    await sim.until(() => child.view().phase === 'ready');
    node.freeze();
    expect(child.activity()?.state).toBe('T');
    await child.stop({ graceMs: 20_000, why: 'stuck', because: 'a test' });
    await sim.run(19_000);
    expect(child.view().phase).toBe('stopping');
    await sim.until(() => child.view().phase === 'down', 2_000);
    expect(child.view().end).toMatchObject({
      exit: { kind: 'signal', name: 'SIGKILL' },
      asked: { kind: 'signalled', signal: 'SIGKILL', afterGrace: true, why: 'stuck' },
    });
    expect(child.activity()).toBeUndefined();
  });
});

describe('the cluster', () => {
  test('each call of the port, asked from a node', async () => {
    const sim = new SimulatedCluster({ seed: 3, book });
    const names = ['n1', 'n2', 'n3'];
    for (const name of names) sim.addNode(name);
    sim.found(names);
    await sim.until(() => names.every((name) => sim.node(name).isServing));
    const leader = sim.leader() ?? expect.fail('one leads');
    const [other] = sim.nodes.filter((node) => node !== leader);
    if (other === undefined) expect.fail('two follow');
    const port = new SimulatedClusterPort(sim, leader);
    const list = await sim.settle(port.memberList(other.clientUrl, { linearizable: true, timeoutMs: 5_000 }));
    expect(list.members.map(({ id }) => id)).toContain(leader.memberId);
    expect(await sim.settle(port.status(other.clientUrl, 1_000))).toMatchObject({
      memberId: other.memberId,
      leader: leader.memberId,
    });
    expect(await sim.settle(port.peerCluster(other.peerUrl, 1_000))).toMatchObject({ clusterId: list.clusterId });
    expect(await sim.settle(port.isLeader(1_000))).toBe(true);
    await sim.settle(port.moveLeader(leader.clientUrl, other.memberId ?? 0n, 3_000));
    expect(await sim.settle(port.isLeader(1_000))).toBe(false);
    await expect(sim.settle(port.peerCluster('http://10.9.9.9:2380', 1_000))).rejects.toThrow(/nobody answers/);
    await expect(port.status('http://10.9.9.9:2379', 1_000)).rejects.toThrow(/nobody has the address/);
  });
});
