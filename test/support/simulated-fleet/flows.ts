import { SimulatedFleet, settleMs } from '../simulated-fleet.ts';
import type { FleetNode } from './fleet-node.ts';
import { type Flow, leaderOf, without } from './flow.ts';
import { operatorFlows } from './operator-flows.ts';

/** What roles alone bring about. */
const roleFlows: readonly Flow[] = [
  {
    name: 'join',
    nodes: ['n1', 'n2', 'n3', 'n4'],
    founders: 3,
    async run(fleet) {
      fleet.grant('n4');
      await fleet.settles('n1 n2 n3 n4');
    },
  },
  {
    name: 'the leader leaves and comes back',
    nodes: ['n1', 'n2', 'n3'],
    founders: 3,
    async run(fleet) {
      const leader = leaderOf(fleet);
      fleet.revoke(leader, fleet.zeroTolerance(leader));
      await fleet.settles(without(fleet, leader));
      fleet.grant(leader);
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'three members are replaced one after the other',
    nodes: ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'],
    founders: 3,
    async run(fleet) {
      for (const [old, fresh] of [
        ['n1', 'n4'],
        ['n2', 'n5'],
        ['n3', 'n6'],
      ] as const) {
        const before = fleet.memberNames;
        fleet.grant(fresh);
        await fleet.settles(`${before} ${fresh}`);
        fleet.revoke(old);
        await fleet.settles(without(fleet, old));
        await fleet.pass(settleMs);
      }
    },
  },
  {
    name: 'a join is cancelled while its learner is added',
    nodes: ['n1', 'n2', 'n3', 'n4'],
    founders: 3,
    async run(fleet) {
      let isCancelled = false;
      fleet.onPass = ({ effect }) => {
        if (effect !== 'change.addLearner' || isCancelled) return;
        isCancelled = true;
        fleet.revoke('n4', [], 'none');
      };
      fleet.grant('n4');
      await fleet.until(() => isCancelled, 'the learner is about to be added');
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'a join is cancelled before its learner has run',
    nodes: ['n1', 'n2', 'n3', 'n4'],
    founders: 3,
    async run(fleet) {
      fleet.grant('n4');
      await fleet.until(() => fleet.memberNames.includes('n4'), 'n4 is in the list');
      fleet.revoke('n4', [], 'none');
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'a join is cancelled while its learner runs',
    nodes: ['n1', 'n2', 'n3', 'n4'],
    founders: 3,
    async run(fleet) {
      fleet.grant('n4');
      await fleet.until(() => fleet.node('n4').etcd.isServing, 'the learner serves');
      fleet.revoke('n4', [], 'none');
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'three to one and back',
    nodes: ['n1', 'n2', 'n3'],
    founders: 3,
    async run(fleet) {
      for (const name of ['n3', 'n2']) {
        fleet.revoke(name, fleet.zeroTolerance(name));
        await fleet.settles(without(fleet, name));
      }
      for (const name of ['n2', 'n3']) {
        const before = fleet.memberNames;
        fleet.grant(name);
        await fleet.settles(`${before} ${name}`);
      }
    },
  },
  {
    name: 'two join and one leaves at the same instant',
    nodes: ['n1', 'n2', 'n3', 'n4', 'n5'],
    founders: 3,
    async run(fleet) {
      fleet.grant('n4');
      fleet.grant('n5');
      fleet.revoke('n1');
      await fleet.settles('n2 n3 n4 n5');
    },
  },
  {
    name: 'two of three are to leave at once',
    nodes: ['n1', 'n2', 'n3'],
    founders: 3,
    async run(fleet) {
      const [one, other] = [fleet.zeroTolerance('n1'), fleet.zeroTolerance('n2')];
      fleet.revoke('n1', one);
      fleet.revoke('n2', other);
      await fleet.settles('n1 n3', 'n2 n3');
      const stays = fleet.memberNames === 'n1 n3' ? 'n1' : 'n2';
      const isRefused = () => /^blocked changeRefused.*1 voter would remain/.test(fleet.node(stays).plan);
      await fleet.until(isRefused, `${stays} is refused`);
    },
  },
  {
    name: 'a learner whose etcd cannot start gives its slot back, and joins later',
    nodes: ['n1', 'n2', 'n3'],
    founders: 1,
    async run(fleet) {
      const n2 = fleet.node('n2');
      n2.cannotStart = 'its binary is gone';
      fleet.grant('n2');
      await fleet.until(() => n2.plan.startsWith('blocked preflight'), 'n2 has a learner and cannot start it');
      fleet.grant('n3');
      await leaping(fleet, n2, 'blocked preflight', () => n2.plan.startsWith('blocked joinExpired'));
      await fleet.until(() => fleet.memberNames === 'n1 n3', 'n3 has the slot');
      n2.cannotStart = '';
      await leaping(fleet, n2, 'blocked joinExpired', () => fleet.memberNames === 'n1 n2 n3');
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'whoever dies with the change record is followed by another node',
    nodes: ['n1', 'n2', 'n3', 'n4', 'n5'],
    founders: 4,
    async run(fleet) {
      // Long enough that the other has waited its record out.
      const hasDied = fleet.dieAndStayDown('n1', 'record.sending', 60_000);
      fleet.revoke('n1');
      await fleet.until(() => hasDied() || !fleet.memberNames.includes('n1'), 'n1 has died with the record');
      fleet.grant('n5');
      await fleet.settles('n2 n3 n4 n5');
    },
  },
];

/** Every flow. All of their crash points are tried. */
export const flows: readonly Flow[] = [...roleFlows, ...operatorFlows];

/** Runs one flow on a fleet of its own. `prepare` plans what is to go wrong. */
export async function runFlow(
  flow: Flow,
  seed: number,
  prepare: (fleet: SimulatedFleet) => void,
): Promise<SimulatedFleet> {
  const fleet = new SimulatedFleet(seed);
  await fleet.build(flow.nodes, flow.founders);
  prepare(fleet);
  await flow.run(fleet);
  fleet.checkEnd();
  return fleet;
}

/** Ten minutes at once, from whenever the node's latest agent has said `plan`, until `holds`. */
async function leaping(fleet: SimulatedFleet, node: FleetNode, plan: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 24 && !holds(); tries++) {
    if (fleet.nodes.every(({ alive }) => alive) && node.plan.startsWith(plan)) fleet.sim.clock.leap(601_000);
    for (let looks = 0; looks < 50 && !holds(); looks++) await fleet.pass(100);
  }
  if (!holds()) throw new Error(`ten minutes changed nothing: ${node.plan}`);
}
