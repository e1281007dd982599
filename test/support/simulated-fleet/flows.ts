import { SimulatedFleet, settleMs } from '../simulated-fleet.ts';

/** One story of roles, from a settled fleet to a settled fleet. It must come out the same whatever dies on the way. */
export interface Flow {
  readonly name: string;
  readonly nodes: readonly string[];
  /** So many of them are members at the beginning. */
  readonly founders: number;
  /** Gives the orders, and waits for the wanted end state. Throws if that does not come. */
  run(fleet: SimulatedFleet): Promise<void>;
}

/** Every flow that changes the membership. All of their crash points are tried. */
export const flows: readonly Flow[] = [
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
    name: 'an operator stops the etcd that leads, and starts it again',
    nodes: ['n1', 'n2', 'n3'],
    founders: 3,
    async run(fleet) {
      const node = fleet.node(leaderOf(fleet));
      const isStopped = () => {
        const intent = node.state.runIntent();
        return intent.kind === 'ok' && intent.value.intent === 'stopped';
      };
      // An order that dies with its agent is given again, as a person would.
      await fleet.insist(
        () => isStopped() || node.parts.operator.stop({ force: false, dryRun: false }),
        () => isStopped() && !node.etcd.isRunning && fleet.changeRecord === undefined && node.alive,
      );
      await fleet.insist(
        () => !isStopped() || node.parts.operator.start({ dryRun: false }),
        () => !isStopped(),
      );
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'a learner whose etcd cannot start gives its slot back, and joins later',
    nodes: ['n1', 'n2', 'n3', 'n4', 'n5'],
    founders: 3,
    async run(fleet) {
      const n4 = fleet.node('n4');
      const later = () => fleet.sim.clock.jumpWall(601_000);
      n4.cannotStart = 'its binary is gone';
      fleet.grant('n4');
      await fleet.until(() => n4.plan.startsWith('blocked preflight'), 'n4 has a learner and cannot start it');
      fleet.grant('n5');
      await fleet.insist(
        () => n4.plan.startsWith('blocked preflight') && later(),
        () => n4.plan.startsWith('blocked joinExpired'),
      );
      await fleet.until(() => fleet.memberNames === 'n1 n2 n3 n5', 'n5 has the slot');
      n4.cannotStart = '';
      await fleet.insist(
        () => n4.plan.startsWith('blocked joinExpired') && later(),
        () => fleet.memberNames === 'n1 n2 n3 n4 n5',
      );
      await fleet.settles('n1 n2 n3 n4 n5');
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

/** The node that leads now. */
export function leaderOf(fleet: SimulatedFleet): string {
  const leader = fleet.sim.leader();
  if (leader === undefined) throw new Error('nobody leads');
  return leader.name;
}

/** The list of now without one. */
export function without(fleet: SimulatedFleet, name: string): string {
  return fleet.memberNames
    .split(' ')
    .filter((one) => one !== name)
    .join(' ');
}
