// Goal: changes go through an address that leads to its member; an address of another cluster blocks nothing; who is being stopped is no
// survivor; and the peer URL that is registered is the one that is configured.
// Method: whole agents on the simulated cluster, whose members advertise what the test says.
import { describe, expect, test } from 'vitest';
import { formatId } from '../../../src/etcd/member.ts';
import type { FleetNode } from '../../support/simulated-fleet/fleet-node.ts';
import { followersOf, leaderOf, without } from '../../support/simulated-fleet/flow.ts';
import { fleetOf, letSay, stopNode, timesBegun } from '../../support/simulated-fleet/moments.ts';
import { startEtcd, stopEtcd } from '../../support/simulated-fleet/orders.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

const otherUrl = 'http://10.0.1.1:2380';

/** The member advertises these, as if its etcd had been started so. */
async function advertise(
  fleet: SimulatedFleet,
  { etcd, name }: FleetNode,
  clientUrls: readonly string[],
): Promise<void> {
  const id = etcd.memberId ?? 0n;
  etcd.etcd?.propose({ kind: 'publish', id, name, clientUrls }, Number.POSITIVE_INFINITY, () => {});
  const isKnown = () =>
    fleet.members().some((member) => member.id === id && member.clientUrls.length === clientUrls.length);
  await fleet.until(isKnown, 'it is published');
}

describe('a leader that advertises a dead client URL before a good one', () => {
  test.each(['leave', 'join', 'stop'] as const)('a %s goes through the good one', async (what) => {
    const fleet = await fleetOf(5, 4);
    const leader = fleet.node(leaderOf(fleet));
    const [name] = followersOf(fleet);
    await advertise(fleet, leader, ['http://10.9.9.9:2379', leader.etcd.clientUrl]);
    // All agents read the list anew.
    await fleet.pass(70_000);
    if (what === 'leave') {
      const wanted = without(fleet, name);
      fleet.revoke(name);
      await fleet.until(() => fleet.memberNames === wanted, 'it leaves', 10_000);
      await fleet.settles(wanted);
    } else if (what === 'join') {
      fleet.grant('n5');
      await fleet.until(() => fleet.memberNames === 'n1 n2 n3 n4 n5', 'it joins and votes', 20_000);
    } else {
      expect(await stopNode(fleet, fleet.node(name))).toMatchObject({ done: true });
      expect(fleet.changeRecord).toBeUndefined();
    }
  });
});

describe('an endpoint of another cluster', () => {
  /** A cluster of one beside the fleet. Its address is returned. */
  async function foreignUrl(fleet: SimulatedFleet): Promise<string> {
    const foreign = fleet.sim.addNode('n9');
    fleet.sim.found(['n9'], 'another');
    await fleet.sim.until(() => foreign.isServing, 30_000, 'the other cluster serves');
    return foreign.clientUrl;
  }

  test('beside good ones blocks no hearing, also if it answers first', async () => {
    const fleet = await fleetOf(4, 3);
    const others = fleet.nodes.map(({ etcd }) => etcd);
    const clusterId = formatId(others[0]?.disk?.clusterId ?? 0n);
    const urls = [await foreignUrl(fleet), ...others.map(({ clientUrl }) => clientUrl)];
    for (const etcd of others) etcd.freeze();
    const preview = fleet.node('n4').parts.memberOrders.previewJoin(urls, clusterId);
    preview.catch(() => {});
    await fleet.sim.run(300);
    for (const etcd of others) etcd.thaw();
    expect(await fleet.sim.settle(preview)).toMatchObject({ allowed: true });
    fleet.grant('n4');
    await fleet.settles('n1 n2 n3 n4');
  });

  test('alone is told to be what it is', async () => {
    const fleet = await fleetOf(4, 3);
    const clusterId = formatId(fleet.node('n1').etcd.disk?.clusterId ?? 0n);
    const preview = fleet.node('n4').parts.memberOrders.previewJoin([await foreignUrl(fleet)], clusterId);
    await expect(fleet.sim.settle(preview)).rejects.toThrow(/belongs to cluster [0-9a-f]+, and this node to cluster/);
  });
});

test('a survivor whose agent says that it stops it is not counted, though it answers', async () => {
  const fleet = await fleetOf(3);
  const [name, stops] = followersOf(fleet).map((one) => fleet.node(one)) as [FleetNode, FleetNode];
  await letSay(fleet, stops, 'stopping');
  await expect(stopNode(fleet, name)).rejects.toThrow(/2 others must answer now and 1 does.*is being stopped/);
  expect(name.etcd.isServing).toBe(true);
  await letSay(fleet, stops, 'active');
  expect(await stopNode(fleet, name)).toMatchObject({ done: true });
});

describe('the registered peer URL', () => {
  const registeredOf = (fleet: SimulatedFleet, { etcd }: FleetNode) =>
    fleet.members().find(({ id }) => id === etcd.memberId)?.peerUrls;

  test('of an adopted member becomes the configured one', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    await stopEtcd(fleet, node);
    // `adopt` has written down what is configured, and the list as it was.
    const identity = node.state.knownIdentity() ?? expect.fail('it is a member');
    node.state.recordIdentity({ ...identity, peerUrl: otherUrl, initialCluster: `${node.name}=${otherUrl}` });
    node.peerUrl = otherUrl;
    fleet.kill(node.name, 'kill');
    await startEtcd(fleet, node);
    await fleet.until(() => registeredOf(fleet, node)?.join() === otherUrl, 'it is registered', 120_000);
    await fleet.settles('n1 n2 n3');
    fleet.checkEnd();
  });

  test('that is one of several stays beside the others when another one was configured before', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    const urls = [otherUrl, node.peerUrl];
    const identity = node.state.knownIdentity() ?? expect.fail('it is a member');
    node.state.recordIdentity({ ...identity, peerUrl: otherUrl });
    await fleet.sim.settle(fleet.sim.client(leaderOf(fleet)).updateMember(node.etcd.memberId ?? 0n, urls));
    await fleet.pass(150_000);
    expect(registeredOf(fleet, node)).toEqual(urls);
    expect(node.state.knownIdentity()?.peerUrl).toBe(node.peerUrl);
    expect(timesBegun(fleet, node.name, 'change.updateUrls')).toBe(0);
  });

  test('that is one of several is no drift', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    const urls = [otherUrl, node.peerUrl];
    await fleet.sim.settle(fleet.sim.client(leaderOf(fleet)).updateMember(node.etcd.memberId ?? 0n, urls));
    await fleet.pass(150_000);
    expect(node.state.knownIdentity()?.lastMembers.find(({ id }) => id === node.etcd.memberId)?.peerUrls).toEqual(urls);
    expect(node.plan).toMatch(/^converged/);
    expect(registeredOf(fleet, node)).toEqual(urls);
    expect(timesBegun(fleet, node.name, 'change.updateUrls')).toBe(0);
  });
});
