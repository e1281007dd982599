// Goal: a role document alone takes a node into the cluster, to its vote, out of it and back, whatever the others do meanwhile.
// Method: whole agents on a simulated cluster and clock; no crashes here (crash-points.test.ts has those).
import { describe, expect, test } from 'vitest';
import { type Flow, leaderOf, without } from '../support/simulated-fleet/flow.ts';
import { flows, runFlow } from '../support/simulated-fleet/flows.ts';
import { crashPointsOf } from '../support/simulated-fleet/sweep.ts';
import { SimulatedFleet } from '../support/simulated-fleet.ts';

const seeds = [1, 2, 3] as const;

describe.each(seeds)('seed %i', (seed) => {
  test.each(flows.map((flow) => [flow.name, flow] as const))('%s', async (_name, flow) => {
    await runFlow(flow, seed, () => {});
  });
});

describe('one after the other', () => {
  test.each(seeds)(
    'agents that want a change at the same instant send theirs while no other record stands (seed %i)',
    async (seed) => {
      const flow = flowNamed('two join and one leaves at the same instant');
      const fleet = await runFlow(flow, seed, () => {});
      let holder = '';
      for (const { node, effect, moment } of fleet.passed) {
        if (effect === 'record.sending' && moment === 'after') {
          expect(holder, `${node} sends while a record stands`).toBe('');
          holder = node;
        }
        if (effect === 'record.clear' && moment === 'before' && holder === node) holder = '';
      }
      expectChanges(fleet, { addMember: 5, promoteMember: 2, removeMember: 1 });
    },
  );

  test.each(seeds)('of two that are to leave three, the second is refused with numbers (seed %i)', async (seed) => {
    const fleet = await runFlow(flowNamed('two of three are to leave at once'), seed, () => {});
    const stays = fleet.memberNames.includes('n1') ? 'n1' : 'n2';
    expect(fleet.node(stays).plan).toMatch(/1 voter would remain with quorum 1 and 1 that answer/);
    expect(fleet.changesInLog('removeMember')).toBe(1);
  });
});

describe('a reply that is lost after the commit makes no second change', () => {
  test.each([
    ['MemberAdd', { addMember: 4, promoteMember: 1, removeMember: 0 }],
    ['MemberPromote', { addMember: 4, promoteMember: 1, removeMember: 0 }],
  ] as const)('%s', async (call, counts) => {
    const fleet = await fleetOf(['n1', 'n2', 'n3', 'n4'], 3);
    fleet.sim.loseNextAnswer(leaderOf(fleet), call);
    fleet.grant('n4');
    await fleet.settles('n1 n2 n3 n4');
    fleet.checkEnd();
    expectChanges(fleet, counts);
  });

  test('MemberRemove', async () => {
    const fleet = await fleetOf(['n1', 'n2', 'n3', 'n4'], 4);
    const leaves = fleet.nodes.map(({ name }) => name).find((name) => name !== leaderOf(fleet)) ?? '';
    fleet.sim.loseNextAnswer(leaderOf(fleet), 'MemberRemove');
    const wanted = without(fleet, leaves);
    fleet.revoke(leaves);
    await fleet.settles(wanted);
    fleet.checkEnd();
    expectChanges(fleet, { addMember: 4, promoteMember: 0, removeMember: 1 });
  });

  test('MoveLeader', async () => {
    const fleet = await fleetOf(['n1', 'n2', 'n3', 'n4'], 4);
    const leader = leaderOf(fleet);
    fleet.sim.loseNextAnswer(leader, 'MoveLeader');
    const wanted = without(fleet, leader);
    fleet.revoke(leader);
    await fleet.settles(wanted);
    fleet.checkEnd();
    expectChanges(fleet, { addMember: 4, promoteMember: 0, removeMember: 1 });
    const moves = fleet.passed.filter(({ effect, moment }) => effect === 'change.moveLeader' && moment === 'before');
    expect(moves).toHaveLength(1);
  });
});

test('a join whose role is taken back at any of its crash points leaves no learner behind', async () => {
  const points = await crashPointsOf(flowNamed('join'), 1);
  expect(points.length).toBeGreaterThan(30);
  for (const point of points) {
    const cancelled: Flow = {
      name: 'cancelled',
      nodes: ['n1', 'n2', 'n3', 'n4'],
      founders: 3,
      async run(fleet) {
        let isCancelled = false;
        fleet.onPass = ({ effect, occurrence, moment }) => {
          if (effect !== point.effect || occurrence !== point.occurrence || moment !== point.moment) return;
          isCancelled = true;
          fleet.revoke('n4', [], 'none');
        };
        fleet.grant('n4');
        await fleet.until(() => isCancelled, `${point.effect} is passed`);
        await fleet.settles('n1 n2 n3');
      },
    };
    await runFlow(cancelled, 1, () => {});
  }
});

test('a node whose grant was taken back and given anew in mid-join becomes a member once', async () => {
  const fleet = await fleetOf(['n1', 'n2', 'n3', 'n4'], 3);
  fleet.grant('n4');
  await fleet.until(() => fleet.memberNames.includes('n4'), 'n4 is in the list');
  fleet.revoke('n4', [], 'none');
  await fleet.pass(150);
  fleet.grant('n4');
  await fleet.settles('n1 n2 n3 n4');
  fleet.checkEnd();
});

async function fleetOf(names: readonly string[], founders: number): Promise<SimulatedFleet> {
  const fleet = new SimulatedFleet(4);
  await fleet.build(names, founders);
  return fleet;
}

function flowNamed(name: string): Flow {
  return flows.find((flow) => flow.name === name) ?? expect.fail(`there is no flow "${name}"`);
}

function expectChanges(
  fleet: SimulatedFleet,
  counts: { readonly addMember: number; readonly promoteMember: number; readonly removeMember: number },
): void {
  for (const [kind, count] of Object.entries(counts)) {
    expect(fleet.changesInLog(kind as keyof typeof counts), kind).toBe(count);
  }
}
