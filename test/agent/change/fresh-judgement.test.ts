// Goal: what was heard before leadership was moved, or before the machine was suspended, ends no etcd and removes no member: the others are
// heard anew right before the act, and the change record is written anew.
// Method: whole agents on the simulated cluster; a survivor freezes, or the wall clock goes on, at one moment of the change.
import { describe, expect, test } from 'vitest';
import type { FleetNode } from '../../support/simulated-fleet/fleet-node.ts';
import { followersOf, leaderOf, without } from '../../support/simulated-fleet/flow.ts';
import {
  atFirst,
  fleetOf,
  putRecord,
  stopNode,
  strangersRecord,
  timesBegun,
} from '../../support/simulated-fleet/moments.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

/** So long a laptop's lid is closed. Unit: ms. */
const asleepMs = 60_000;

/** Leadership is offered to it first: all are active and have applied the same. */
function firstTarget(fleet: SimulatedFleet): FleetNode {
  const followers = fleet.nodes.filter(({ name }) => name !== leaderOf(fleet));
  const [first] = followers.sort((a, b) => ((a.etcd.memberId ?? 0n) < (b.etcd.memberId ?? 0n) ? -1 : 1));
  return first ?? expect.fail('there is a follower');
}

function intentOf({ state }: FleetNode): string {
  const intent = state.runIntent();
  return intent.kind === 'ok' ? intent.value.intent : intent.kind;
}

/** Nothing was done to etcd, and all that was written for the stop is taken back: the record too, though it was held through who froze. */
async function expectUntouched(fleet: SimulatedFleet, node: FleetNode): Promise<void> {
  expect(timesBegun(fleet, node.name, 'change.down')).toBe(0);
  expect(node.etcd.isServing).toBe(true);
  expect(node.etcd.lives).toHaveLength(1);
  expect(intentOf(node)).toBe('run');
  await fleet.until(() => fleet.changeRecord === undefined, 'the record is cleared', 10_000);
}

describe('a survivor freezes while leadership is moved', () => {
  test('the stop is refused when the first target hangs and the second takes over', async () => {
    const fleet = await fleetOf(3);
    const leader = fleet.node(leaderOf(fleet));
    const frozen = firstTarget(fleet);
    atFirst(fleet, { node: leader.name, effect: 'change.moveLeader', moment: 'before' }, () => frozen.etcd.freeze());
    await expect(stopNode(fleet, leader)).rejects.toThrow(/2 others must answer now and 1 does/);
    expect(timesBegun(fleet, leader.name, 'change.moveLeader')).toBe(2);
    expect([leader.name, frozen.name]).not.toContain(leaderOf(fleet));
    await expectUntouched(fleet, leader);
  });

  test('the stop is refused when it freezes right after a hand-over that was quick', async () => {
    const fleet = await fleetOf(3);
    const leader = fleet.node(leaderOf(fleet));
    const frozen = fleet.node(followersOf(fleet).find((name) => name !== firstTarget(fleet).name) ?? '');
    atFirst(fleet, { node: leader.name, effect: 'change.moveLeader', moment: 'after' }, () => frozen.etcd.freeze());
    await expect(stopNode(fleet, leader)).rejects.toThrow(/2 others must answer now and 1 does/);
    expect(timesBegun(fleet, leader.name, 'change.moveLeader')).toBe(1);
    await expectUntouched(fleet, leader);
  });

  test.each(['before', 'after'] as const)(
    'MemberRemove is not sent when it freezes %s MoveLeader, and is once it is back',
    async (moment) => {
      const fleet = await fleetOf(4);
      const leader = leaderOf(fleet);
      const rest = fleet.nodes.filter((node) => node.name !== leader && node !== firstTarget(fleet));
      const frozen = (moment === 'before' ? firstTarget(fleet) : rest[0]) ?? expect.fail('there are three others');
      const isFrozen = atFirst(fleet, { node: leader, effect: 'change.moveLeader', moment }, () =>
        frozen.etcd.freeze(),
      );
      const wanted = without(fleet, leader);
      fleet.revoke(leader);
      await fleet.until(isFrozen, 'leadership is being moved');
      await fleet.pass(30_000);
      expect(timesBegun(fleet, leader, 'change.remove')).toBe(0);
      expect(fleet.changesInLog('removeMember')).toBe(0);
      expect(fleet.node(leader).plan).toMatch(
        /^blocked changeRefused.*3 voters would remain with quorum 2 and 2 that answer/,
      );
      frozen.etcd.thaw();
      await fleet.settles(wanted);
    },
  );
});

describe('a machine that was suspended once the record said `sending`', () => {
  test('hears the others anew and writes the record anew before it stops etcd', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    atFirst(fleet, { node: node.name, effect: 'record.sending', moment: 'after' }, () =>
      fleet.sim.clock.jumpWall(asleepMs),
    );
    expect(await stopNode(fleet, node)).toMatchObject({ done: true });
    expect(timesBegun(fleet, node.name, 'record.sending')).toBe(2);
    expect(fleet.changeRecord).toBeUndefined();
  });

  test('does not stop etcd when another voter has died meanwhile', async () => {
    const fleet = await fleetOf(3);
    const [name, other] = followersOf(fleet);
    atFirst(fleet, { node: name, effect: 'record.sending', moment: 'after' }, () => {
      fleet.sim.clock.jumpWall(asleepMs);
      fleet.node(other).etcd.freeze();
    });
    await expect(stopNode(fleet, fleet.node(name))).rejects.toThrow(/2 others must answer now and 1 does/);
    await expectUntouched(fleet, fleet.node(name));
  });

  test('does not stop etcd when somebody has waited its record out meanwhile', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    atFirst(fleet, { node: node.name, effect: 'record.sending', moment: 'after' }, () => {
      fleet.sim.clock.jumpWall(asleepMs);
      void putRecord(fleet, strangersRecord(fleet));
    });
    await expect(stopNode(fleet, node)).rejects.toThrow('was taken over; it was not sent');
    expect(timesBegun(fleet, node.name, 'change.down')).toBe(0);
    expect(node.etcd.isServing).toBe(true);
    expect(fleet.changeRecord).toContain('"by":"n9"');
  });

  test('does not remove itself when somebody has waited its record out meanwhile', async () => {
    const fleet = await fleetOf(4);
    const [name] = followersOf(fleet);
    const isAsleep = atFirst(fleet, { node: name, effect: 'record.sending', moment: 'after' }, () => {
      fleet.sim.clock.jumpWall(asleepMs);
      void putRecord(fleet, strangersRecord(fleet));
    });
    fleet.revoke(name);
    await fleet.until(isAsleep, 'it is suspended');
    await fleet.pass(30_000);
    expect(timesBegun(fleet, name, 'change.remove')).toBe(0);
    expect(fleet.memberNames).toBe('n1 n2 n3 n4');
  });
});
