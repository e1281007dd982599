// Goal: a learner gets its vote as soon as it has shown that it is up, whoever else is slow; one whose etcd is dead gets none, although etcd
// itself would give it.
// Method: whole agents on the simulated cluster; a voter is frozen, or etcd of the learner is killed on the way to its vote.
import { describe, expect, test } from 'vitest';
import { followersOf } from '../../support/simulated-fleet/flow.ts';
import { atFirst, fleetOf } from '../../support/simulated-fleet/moments.ts';
import { write } from '../../support/simulated-fleet/orders.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

/** Longer than anybody waits for anything. Unit: ms. */
const longMs = 170_000;
/** So many entries that a learner which lacks a few stays what etcd calls in sync. */
const longLog = 500;

test.each([1, 2])('with one of five voters frozen a learner has its vote within a minute (seed %i)', async (seed) => {
  const fleet = await fleetOf(6, 5, seed);
  fleet.node(followersOf(fleet)[1]).etcd.freeze();
  fleet.grant('n6');
  await fleet.until(() => fleet.memberNames === 'n1 n2 n3 n4 n5 n6', 'n6 votes', 60_000);
  expect(fleet.changesInLog('promoteMember')).toBe(1);
});

describe('a learner that had caught up and whose etcd is dead is promoted by nobody', () => {
  /** etcd of n4 is killed when its agent is about to have it promoted; it does not start again. */
  async function killedOnItsWay(moment: 'agentLives' | 'agentDead'): Promise<SimulatedFleet> {
    const fleet = await fleetOf(4, 3);
    const n4 = fleet.node('n4');
    // The call goes through the others, and is made with the record held.
    const isOnItsWay = atFirst(fleet, { node: 'n4', effect: 'record.create', moment: 'after' }, () => {});
    await write(fleet, longLog);
    const isPromoting = () => fleet.changeRecord?.includes('"kind":"promote"') === true;
    fleet.grant('n4');
    await fleet.until(() => isOnItsWay() && n4.etcd.isServing, 'the learner serves');
    const hasDied = moment === 'agentDead' ? fleet.dieAndStayDown('n4', 'record.create', 4 * longMs) : () => true;
    const before = fleet.onPass;
    fleet.onPass = (passed) => {
      before(passed);
      if (passed.node !== 'n4' || passed.effect !== 'record.create' || passed.moment !== 'after') return;
      n4.cannotStart = 'its binary is gone';
      n4.etcd.signal('SIGKILL');
    };
    await fleet.until(() => hasDied() && !n4.etcd.isRunning && isPromoting(), 'it dies with the record held');
    return fleet;
  }

  test.each(['agentLives', 'agentDead'] as const)('%s', async (moment) => {
    const fleet = await killedOnItsWay(moment);
    await fleet.pass(longMs);
    expect(fleet.node('n4').alive).toBe(moment === 'agentLives');
    expect(fleet.memberNames).toBe('n1 n2 n3 n4(learner)');
    expect(fleet.changesInLog('promoteMember')).toBe(0);
    // It is etcd's own readiness that it had: asked now, etcd gives it the vote.
    const leader = fleet.sim.client(fleet.sim.leader()?.name ?? '');
    await fleet.sim.settle(leader.promoteMember(fleet.node('n4').etcd.memberId ?? 0n));
    expect(fleet.memberNames).toBe('n1 n2 n3 n4');
  });
});
