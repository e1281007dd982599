// Goal: a member is asked for its Status as long as it stays a member, and by nobody while it is being removed: in flight at its removal that
// call kills etcd. A leave that stays refused asks the others less and less often.
// Method: whole agents on the simulated cluster; what was asked is read from its trace.
import { describe, expect, test } from 'vitest';
import { formatId } from '../../../src/etcd/member.ts';
import type { FleetNode } from '../../support/simulated-fleet/fleet-node.ts';
import { followersOf, without } from '../../support/simulated-fleet/flow.ts';
import { atFirst, fleetOf, putRecord, strangersRecord, timesBegun } from '../../support/simulated-fleet/moments.ts';
import { startEtcd, stopEtcd, write } from '../../support/simulated-fleet/orders.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

/** The own etcd is asked for its Status every 30 s. Unit: ms. */
const statusMs = 65_000;

/** The applied index of the agent's newest Status goes on with the log. */
async function expectAskedAgain(fleet: SimulatedFleet, node: FleetNode): Promise<void> {
  const before = node.parts.status.latest?.raftAppliedIndex ?? 0n;
  await write(fleet, 20);
  await fleet.pass(statusMs);
  expect(node.parts.status.latest?.raftAppliedIndex).toBeGreaterThan(before + 19n);
}

/** How often a call was answered by one node within `ms`. */
async function answered(fleet: SimulatedFleet, name: string, call: string, ms: number): Promise<number> {
  fleet.sim.trace.keep();
  await fleet.pass(ms);
  return fleet.sim.trace.lines.filter((line) => line.includes(` ${name} `) && line.includes(`${call} at`)).length;
}

describe('the Status of the own member is asked again', () => {
  test('after a MemberRemove that etcd refused: not all have been connected for 5 s', async () => {
    const fleet = await fleetOf(3);
    const [leaves, other] = followersOf(fleet);
    const node = fleet.node(leaves);
    fleet.node(other).etcd.signal('SIGKILL');
    await fleet.until(
      () => fleet.node(other).etcd.lives.length === 2 && fleet.node(other).etcd.isServing,
      'it is back',
    );
    fleet.revoke(leaves, fleet.zeroTolerance(leaves));
    await fleet.until(
      () => node.parts.agent.failing?.because.includes('connected for 5 s') === true,
      'etcd refuses',
      10_000,
    );
    expect(timesBegun(fleet, leaves, 'change.remove')).toBe(1);
    fleet.grant(leaves);
    await fleet.settles('n1 n2 n3');
    await expectAskedAgain(fleet, node);
    expect(fleet.changesInLog('removeMember')).toBe(0);
  });

  test('after a MemberRemove whose fate was unknown, and that did not come to be', async () => {
    const fleet = await fleetOf(4);
    const node = fleet.node(followersOf(fleet)[0]);
    const isSent = atFirst(fleet, { node: node.name, effect: 'change.remove', moment: 'before' }, () => {
      for (const { name } of fleet.nodes) if (name !== node.name) fleet.sim.cut(node.name, name);
      fleet.grant(node.name);
    });
    fleet.revoke(node.name);
    await fleet.until(isSent, 'it is sent, and does not arrive');
    await fleet.pass(28_000);
    fleet.sim.healAll();
    await fleet.settles('n1 n2 n3 n4');
    expect(fleet.changesInLog('removeMember')).toBe(0);
    await expectAskedAgain(fleet, node);
  });

  test('after its peer URL was changed', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    node.peerUrl = 'http://10.0.1.1:2380';
    // An agent reads this address only when it starts.
    fleet.kill(node.name, 'kill');
    await stopEtcd(fleet, node);
    await startEtcd(fleet, node);
    const isRegistered = () => fleet.members().some(({ peerUrls }) => peerUrls.includes(node.peerUrl));
    await fleet.until(isRegistered, 'the new address is registered');
    await fleet.settles('n1 n2 n3');
    await expectAskedAgain(fleet, node);
  });
});

describe('others', () => {
  test('do not ask for the Status of a member that a `remove` record in phase `sending` names', async () => {
    const fleet = await fleetOf(3);
    const [goes, asks] = followersOf(fleet);
    const target = formatId(fleet.node(goes).etcd.memberId ?? 0n);
    const said = async () => {
      const { members } = await fleet.sim.settle(fleet.node(asks).parts.memberOrders.members());
      return members.find(({ memberId }) => memberId === target)?.answers;
    };
    await fleet.sim.settle(putRecord(fleet, strangersRecord(fleet, { target, phase: 'checking' })));
    expect(await said()).toBe('counts');
    await fleet.sim.settle(putRecord(fleet, strangersRecord(fleet, { target, kind: 'down' })));
    expect(await said()).toBe('counts');
    await fleet.sim.settle(putRecord(fleet, strangersRecord(fleet, { target })));
    expect(await said()).toBe('silent');
  });

  test('count it again once that record could be taken over, although its owner is away', async () => {
    const fleet = await fleetOf(4);
    const [dies, leaves] = followersOf(fleet);
    const hasDied = fleet.dieAndStayDown(dies, 'record.sending', 600_000);
    fleet.revoke(dies);
    await fleet.until(hasDied, 'it dies with its record');
    const wanted = without(fleet, leaves);
    fleet.revoke(leaves);
    await fleet.until(() => fleet.memberNames === wanted, 'another one leaves', 60_000);
  });

  test('are asked about 20 times a minute at most by a leave that stays refused', async () => {
    const fleet = await fleetOf(3);
    const [leaves, asked] = followersOf(fleet);
    fleet.revoke(leaves);
    await fleet.until(() => fleet.node(leaves).plan.startsWith('blocked changeRefused'), 'it is refused');
    await fleet.pass(30_000);
    // Each hearing asks for two, one after the other, and the own agent for two a minute.
    expect(await answered(fleet, asked, 'Status', 60_000)).toBeLessThanOrEqual(2 * 20 + 2);
    expect(fleet.node(leaves).plan).toMatch(/^blocked changeRefused.*2 voters would remain with quorum 2/);
  });
});
