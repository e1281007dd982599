// Goal: nobody takes out a voter that lives; an order that is refused has done nothing; and a pause forbids every change of the membership.
// Method: whole agents on the simulated cluster, given orders as the local API gives them.
import { describe, expect, test } from 'vitest';
import { formatId } from '../../../src/etcd/member.ts';
import type { FleetNode } from '../../support/simulated-fleet/fleet-node.ts';
import { followersOf, leaderOf } from '../../support/simulated-fleet/flow.ts';
import {
  atFirst,
  fleetOf,
  letSay,
  putRecord,
  stopNode,
  strangersRecord,
  timesBegun,
} from '../../support/simulated-fleet/moments.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

const orderFor = ({ etcd }: FleetNode) => ({
  memberId: formatId(etcd.memberId ?? 0n),
  dryRun: false,
  acceptZeroTolerance: false,
  withoutRecord: false,
});
const evict = (fleet: SimulatedFleet, by: FleetNode, member: FleetNode) =>
  fleet.sim.settle(by.parts.memberOrders.evict(orderFor(member)), 120_000);
const replace = (fleet: SimulatedFleet, member: FleetNode) =>
  fleet.sim.settle(member.parts.memberOrders.replace(orderFor(member)), 120_000);
const pause = (fleet: SimulatedFleet, { parts }: FleetNode) =>
  fleet.sim.settle(parts.operator.pause({ forMs: 3_600_000, reason: 'a test' }));

describe('a refused `replace` leaves the volume as it was', () => {
  /** etcd of a follower is stopped, and another volume lies where its own was. */
  async function withForeignVolume(): Promise<{ readonly fleet: SimulatedFleet; readonly node: FleetNode }> {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    await stopNode(fleet, node);
    node.disk.replace(node.layout.volumeMarker, 'another\n');
    await fleet.until(() => node.plan.startsWith('blocked volumeMissing'), 'the volume is missed');
    return { fleet, node };
  }

  function expectAsItWas({ disk, layout, plan, state }: FleetNode, fleet: SimulatedFleet): void {
    expect(new TextDecoder().decode(disk.read(layout.volumeMarker))).toBe('another\n');
    expect(state.volume.read()).toMatchObject({ kind: 'ok', value: { marker: expect.stringMatching(/^marker-n\d$/) } });
    expect(plan).toMatch(/^blocked volumeMissing/);
    expect(fleet.memberNames).toBe('n1 n2 n3');
  }

  test('when somebody else changes the cluster', async () => {
    const { fleet, node } = await withForeignVolume();
    await fleet.sim.settle(putRecord(fleet, strangersRecord(fleet)));
    await expect(replace(fleet, node)).rejects.toThrow('n9 has begun a change');
    await fleet.pass(5_000);
    expectAsItWas(node, fleet);
  });

  test('when the others could not go on without it; done, it has a new marker', async () => {
    const { fleet, node } = await withForeignVolume();
    const other = fleet.node(followersOf(fleet).find((name) => name !== node.name) ?? '');
    await letSay(fleet, other, 'stopping');
    await expect(replace(fleet, node)).rejects.toThrow(/is being stopped/);
    await fleet.pass(5_000);
    expectAsItWas(node, fleet);
    await letSay(fleet, other, 'active');
    expect(await replace(fleet, node)).toMatchObject({ done: true });
    await fleet.until(() => !node.plan.startsWith('blocked volumeMissing'), 'the new volume is its own');
    expect(fleet.memberNames).not.toContain(node.name);
  });
});

describe('members evict', () => {
  test('of a voter that comes back between the first look and the record is refused', async () => {
    const fleet = await fleetOf(4);
    const [by, dead] = followersOf(fleet).map((name) => fleet.node(name)) as [FleetNode, FleetNode];
    dead.etcd.freeze();
    await fleet.pass(10_000);
    atFirst(fleet, { node: by.name, effect: 'record.create', moment: 'before' }, () => dead.etcd.thaw());
    await expect(evict(fleet, by, dead)).rejects.toThrow(/member [0-9a-f]+ answers/);
    expect(timesBegun(fleet, by.name, 'change.remove')).toBe(0);
    expect(fleet.memberNames).toBe('n1 n2 n3 n4');
    expect(fleet.changeRecord).toBeUndefined();
  });

  test('of a voter that comes back while the machine of the order is suspended is refused', async () => {
    const fleet = await fleetOf(4);
    const [by, dead] = followersOf(fleet).map((name) => fleet.node(name)) as [FleetNode, FleetNode];
    dead.etcd.freeze();
    await fleet.pass(10_000);
    atFirst(fleet, { node: by.name, effect: 'record.sending', moment: 'after' }, () => {
      dead.etcd.thaw();
      fleet.sim.clock.jumpWall(60_000);
    });
    await expect(evict(fleet, by, dead)).rejects.toThrow(/answers|is connected to/);
    expect(fleet.memberNames).toBe('n1 n2 n3 n4');
    expect(fleet.changeRecord).toBeUndefined();
  });

  test('of a voter that stays away is done', async () => {
    const fleet = await fleetOf(4);
    const [by, dead] = followersOf(fleet).map((name) => fleet.node(name)) as [FleetNode, FleetNode];
    dead.etcd.freeze();
    await fleet.pass(10_000);
    expect(await evict(fleet, by, dead)).toMatchObject({ done: true });
    expect(fleet.memberNames).not.toContain(dead.name);
  });

  test('of a learner that answers is done: its own agent may be what is dead', async () => {
    const fleet = await fleetOf(4, 3);
    const n4 = fleet.node('n4');
    fleet.grant('n4');
    await fleet.until(() => n4.etcd.isRunning, 'the learner is started');
    await pause(fleet, n4);
    await fleet.until(() => n4.plan.startsWith('blocked paused'), 'the learner serves, and does not ask for its vote');
    expect(await evict(fleet, fleet.node(leaderOf(fleet)), n4)).toMatchObject({ done: true });
    expect(fleet.memberNames).toBe('n1 n2 n3');
  });
});

describe('while membership changes are paused', () => {
  test('evict and replace are refused', async () => {
    const fleet = await fleetOf(4);
    const [by, dead] = followersOf(fleet).map((name) => fleet.node(name)) as [FleetNode, FleetNode];
    await stopNode(fleet, dead);
    for (const node of [by, dead]) await pause(fleet, node);
    await expect(evict(fleet, by, dead)).rejects.toThrow(/paused membership changes until .*members evict is refused/);
    await expect(replace(fleet, dead)).rejects.toThrow(/paused membership changes until .*replace is refused/);
    expect(fleet.memberNames).toBe('n1 n2 n3 n4');
    await fleet.sim.settle(by.parts.operator.resume());
    expect(await evict(fleet, by, dead)).toMatchObject({ done: true });
  });

  test('retire is refused', async () => {
    const fleet = await fleetOf(1);
    const n1 = fleet.node('n1');
    const clusterId = formatId(n1.state.knownIdentity()?.clusterId ?? 0n);
    await pause(fleet, n1);
    const retire = () => fleet.sim.settle(n1.parts.memberOrders.retire({ clusterId, dryRun: false }));
    await expect(retire()).rejects.toThrow(/paused membership changes until .*retire is refused/);
    await fleet.pass(10_000);
    expect(n1.etcd.isServing).toBe(true);
    await fleet.sim.settle(n1.parts.operator.resume());
    expect(await retire()).toMatchObject({ done: true });
  });
});
