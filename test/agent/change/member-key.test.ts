// Goal: each agent tells the others what its member is about, and nobody that drains, stops or is paused is given leadership.
// Method: whole agents on the simulated cluster; the keys are read as another agent reads them.
import { afterEach, describe, expect, test } from 'vitest';
import { activityOf } from '../../../src/agent/change/member-key-writer.ts';
import { decodeMemberKey, memberKeyOf } from '../../../src/etcd/member-key.ts';
import { type SimulatedAgent, SimulatedFleet } from '../simulated-agent.ts';

let fleet: SimulatedFleet;
afterEach(async () => {
  await fleet.close();
});

async function keyOf(agent: SimulatedAgent) {
  const through = fleet.agents.find(({ node }) => node.isServing) ?? expect.fail('one is up');
  const found = await fleet.sim.settle(
    fleet.sim.client(through.node.name).keys.get(memberKeyOf(agent.node.memberId ?? 0n)),
  );
  return { said: decodeMemberKey(found?.value ?? ''), revision: found?.modRevision };
}

describe('the key', () => {
  test('is written when etcd is ready, each minute, and on change', async () => {
    fleet = await SimulatedFleet.founded();
    const [one] = fleet.followers;
    const first = await keyOf(one);
    expect(first.said).toMatchObject({ nodeId: one.node.name, activity: 'active', agentVersion: '0.1.0' });
    await fleet.sim.run(40_000);
    await fleet.sim.settle(one.parts.operator.pause({ forMs: 30_000, reason: 'a test' }));
    await fleet.sim.run(2_000);
    const paused = await keyOf(one);
    expect(paused.said).toMatchObject({ activity: 'paused', etcdVersion: '3.5.30' });
    await fleet.sim.run(45_000);
    expect((await keyOf(one)).said).toMatchObject({ activity: 'active' });
    const { revision } = await keyOf(one);
    await fleet.sim.run(50_000);
    expect((await keyOf(one)).revision).toBe(revision);
    await fleet.sim.run(25_000);
    expect((await keyOf(one)).revision).not.toBe(revision);
  });

  test('has what the member had applied at the poll before last, so never what may be ahead of its log', async () => {
    fleet = await SimulatedFleet.founded();
    const [one] = fleet.followers;
    await fleet.sim.run(70_000);
    const latest = one.parts.status.latest?.raftAppliedIndex ?? expect.fail('it was asked');
    const before = one.parts.status.beforeLast?.raftAppliedIndex ?? expect.fail('it was asked twice');
    expect(before).toBeLessThan(latest);
    await fleet.sim.settle(one.parts.operator.pause({ forMs: 30_000, reason: 'a test' }));
    await fleet.sim.run(1_000);
    expect((await keyOf(one)).said).toMatchObject({ index: before.toString(), term: '2' });
  });

  test('that cannot be written costs nothing, and is written once it can be', async () => {
    fleet = await SimulatedFleet.founded();
    const { leader, followers } = fleet;
    for (const { node } of followers) node.freeze();
    await fleet.sim.settle(leader.parts.operator.pause({ forMs: 3_600_000, reason: 'a test' }));
    await fleet.sim.run(30_000);
    expect(leader.died).toBeUndefined();
    expect(leader.plan).toBe('converged');
    for (const { node } of followers) node.thaw();
    await fleet.sim.run(40_000);
    expect((await keyOf(leader)).said).toMatchObject({ activity: 'paused' });
  });

  test('says `stopping` before a stop, and a stop that is refused says nothing', async () => {
    fleet = await SimulatedFleet.founded();
    const [one, other] = fleet.followers;
    await fleet.sim.settle(one.parts.operator.stop({ force: false, dryRun: false }));
    expect((await keyOf(one)).said).toMatchObject({ activity: 'stopping' });
    await expect(fleet.sim.settle(other.parts.operator.stop({ force: false, dryRun: false }))).rejects.toThrow();
    await fleet.sim.run(1_000);
    expect((await keyOf(other)).said).toMatchObject({ activity: 'active' });
    await fleet.sim.settle(one.parts.operator.start({ dryRun: false }));
    await fleet.sim.run(15_000);
    expect((await keyOf(one)).said).toMatchObject({ activity: 'active' });
  });
});

describe('leadership goes to nobody', () => {
  test.each(['paused', 'draining'] as const)('that is %s', async (activity) => {
    for (const seed of [1, 2, 3]) {
      fleet = await SimulatedFleet.founded(3, seed);
      const { leader } = fleet;
      const [busy, free] = fleet.followers;
      if (activity === 'paused') await fleet.sim.settle(busy.parts.operator.pause({ forMs: 60_000, reason: 'a test' }));
      else if (busy.role.kind === 'known') busy.role = { ...busy.role, role: 'leaving' };
      busy.parts.agent.wake();
      await fleet.sim.run(2_000);
      expect((await keyOf(busy)).said).toMatchObject({ activity });
      await fleet.sim.settle(leader.parts.operator.stop({ force: false, dryRun: false }));
      await fleet.sim.run(100);
      expect(fleet.sim.leader()?.name).toBe(free.node.name);
      if (seed < 3) await fleet.close();
    }
  });

  test('that stops at the same instant', async () => {
    fleet = await SimulatedFleet.founded(5);
    const { leader, sim } = fleet;
    const [stopping] = fleet.followers;
    const orders = [stopping, leader].map((agent) => agent.parts.operator.stop({ force: false, dryRun: false }));
    await sim.settle(Promise.all(orders), 120_000);
    await sim.run(100);
    expect(sim.leader()).toBeDefined();
    expect([leader.node, stopping.node]).not.toContain(sim.leader());
  });
});

test('activityOf: who stops or leaves is no target, whatever else it is', () => {
  const identity = { clusterId: 1n, memberId: 2n, name: 'n1', peerUrl: '', isLearner: false, lastVoters: [] };
  const role = { kind: 'unknown', because: '' } as const;
  const base = { intent: { kind: 'run', because: '' }, role, identity, paused: false } as const;
  expect(activityOf(base, false)).toBe('active');
  expect(activityOf({ ...base, paused: true }, false)).toBe('paused');
  expect(activityOf({ ...base, paused: true }, true)).toBe('draining');
  expect(activityOf({ ...base, paused: true, intent: { kind: 'stopped', because: '' } }, true)).toBe('stopping');
  expect(activityOf({ ...base, intent: { kind: 'shutdown', because: '' } }, false)).toBe('stopping');
});
