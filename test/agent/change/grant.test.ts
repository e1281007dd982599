// Goal: what a removal ends is the grant under which it was planned; how long a join may take is measured by no wall clock.
// Method: whole agents on the simulated cluster; the role document changes, or the wall clock jumps, at one moment of the change.
import { describe, expect, test } from 'vitest';
import { memberKeyOf } from '../../../src/etcd/member-key.ts';
import { followersOf } from '../../support/simulated-fleet/flow.ts';
import { atFirst, fleetOf } from '../../support/simulated-fleet/moments.ts';
import { stopEtcd } from '../../support/simulated-fleet/orders.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

const yearsMs = 10 * 365 * 86_400_000;
const minuteMs = 60_000;

describe('a grant that is given anew while the removal under the old one is made is not spent by it', () => {
  /** The turn has seen the role, and tells the others of it before it makes its plan. */
  async function whileItDecides(fleet: SimulatedFleet, name: string): Promise<void> {
    const key = memberKeyOf(fleet.node(name).etcd.memberId ?? 0n);
    const said = () => fleet.sim.leader()?.etcd?.raft?.machine.keys.get(key)?.value ?? '';
    for (let ms = 0; ms < 1_000 && !said().includes('draining'); ms++) await fleet.sim.run(1);
    expect(said()).toContain('draining');
    expect(fleet.changeRecord).toBeUndefined();
    fleet.grant(name);
  }

  async function whileItIsSent(fleet: SimulatedFleet, name: string): Promise<void> {
    const isSent = atFirst(fleet, { node: name, effect: 'change.remove', moment: 'before' }, () => fleet.grant(name));
    await fleet.until(isSent, 'MemberRemove is sent');
  }

  test.each([
    ['while it decides', whileItDecides],
    ['while it is sent', whileItIsSent],
  ] as const)('%s', async (_when, giveAnew) => {
    const fleet = await fleetOf(4);
    const [name] = followersOf(fleet);
    const node = fleet.node(name);
    const [before, grantId] = [node.etcd.memberId, node.role?.grantId];
    fleet.revoke(name);
    await giveAnew(fleet, name);
    await fleet.until(() => node.etcd.memberId !== before, 'it joins anew under the new grant', 60_000);
    await fleet.settles('n1 n2 n3 n4');
    expect(node.role?.grantId).not.toBe(grantId);
    expect(node.state.tombstones.read()).toMatchObject({ kind: 'ok', value: [{ memberId: before, grantId }] });
    fleet.checkEnd();
  });
});

describe('a learner that never starts', () => {
  /** n4 has a learner in the list, and cannot start it. */
  async function withLearner(): Promise<SimulatedFleet> {
    const fleet = await fleetOf(4, 3);
    const n4 = fleet.node('n4');
    n4.cannotStart = 'its binary is gone';
    fleet.grant('n4');
    await fleet.until(() => n4.plan.startsWith('blocked preflight'), 'n4 has a learner and cannot start it');
    return fleet;
  }
  const isGone = (fleet: SimulatedFleet) => fleet.memberNames === 'n1 n2 n3';
  const pass = async (fleet: SimulatedFleet, minutes: number) => {
    for (let done = 0; done < minutes; done++) await fleet.pass(minuteMs);
  };

  test.each([
    ['forward by 10 years', yearsMs],
    ['back by 10 years', -yearsMs],
  ])('keeps and loses its slot by no jump of the wall clock: %s', async (_how, byMs) => {
    const fleet = await withLearner();
    fleet.sim.clock.jumpWall(byMs);
    await pass(fleet, 9);
    expect(fleet.memberNames).toBe('n1 n2 n3 n4(learner)');
    await fleet.until(() => isGone(fleet), 'its time is over', 2 * minuteMs);
    expect(fleet.node('n4').plan).toMatch(/^blocked joinExpired|^act/);
    // Its rest is measured the same way.
    fleet.node('n4').cannotStart = '';
    fleet.sim.clock.jumpWall(-byMs);
    await pass(fleet, 9);
    expect(isGone(fleet)).toBe(true);
    await fleet.until(() => fleet.memberNames === 'n1 n2 n3 n4', 'it joins after its rest', 3 * minuteMs);
  });
});

describe('a voter of three whose etcd was stopped', () => {
  test('does not leave to two unless somebody accepts that none may fail then', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    await stopEtcd(fleet, node);
    fleet.revoke(node.name);
    await fleet.pass(2 * minuteMs);
    expect(fleet.memberNames).toBe('n1 n2 n3');
    expect(node.plan).toMatch(/^blocked changeRefused.*zero-tolerance/);
    fleet.revoke(node.name, fleet.zeroTolerance(node.name));
    await fleet.until(() => !fleet.memberNames.includes(node.name), 'it leaves', minuteMs);
  });
});
