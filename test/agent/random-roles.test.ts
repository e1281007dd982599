// Goal: roles that change at any time, on nodes whose agents and machines die at any time, come to what the last roles say.
// Method: a seeded story for a fleet of five; then all are granted a role, and the cluster has five voters.
//
//   ETCD_TEST_VERSIONS=all   many stories        SEED=…   other ones
import { expect, test } from 'vitest';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedFleet } from '../support/simulated-fleet.ts';

const names = ['n1', 'n2', 'n3', 'n4', 'n5'] as const;
const first = Number(process.env['SEED'] ?? 1) * 1_000;
const stories = process.env['ETCD_TEST_VERSIONS'] === 'all' ? 300 : 12;
/** How many orders and deaths a story has. */
const events = 12;

test(`A01 to A06 roles and deaths at random end as the last roles say (${stories} stories)`, async () => {
  const failures: string[] = [];
  for (let seed = first; seed < first + stories; seed++) {
    const told: string[] = [];
    try {
      await tell(seed, told);
    } catch (error) {
      failures.push([`seed ${seed}`, ...told, String(error)].join('\n  '));
    }
  }
  expect(failures).toEqual([]);
}, 1_200_000);

async function tell(seed: number, told: string[]): Promise<void> {
  const random = new SeededRandom(seed);
  const fleet = new SimulatedFleet(seed);
  await fleet.build(names, 3);
  for (let count = 0; count < events; count++) {
    told.push(`${Math.round(fleet.sim.clock.monotonicMs())} ms: ${happen(fleet, random)}`);
    await fleet.pass(random.pick([20, 50, 200, 1_000, 3_000, 12_000]));
  }
  for (const name of names) if (!hasRole(fleet, name)) fleet.grant(name);
  await fleet.settles(names.join(' '));
  fleet.checkEnd();
}

/** One order, or one death, on one node. */
function happen(fleet: SimulatedFleet, random: SeededRandom): string {
  const name = random.pick(names);
  const what = random.pick(['role', 'role', 'role', 'kill', 'kill', 'powerLoss']);
  if (what === 'role' && !hasRole(fleet, name)) {
    fleet.grant(name);
    return `grant ${name}`;
  }
  if (what === 'role') {
    const role = random.pick(['leaving', 'none'] as const);
    fleet.revoke(name, fleet.zeroTolerance(name), role);
    return `${role} ${name}`;
  }
  if (what === 'kill') fleet.kill(name, 'kill');
  // One machine at a time: what a lost quorum needs is another story.
  else if (fleet.nodes.every(({ alive }) => alive)) fleet.kill(name, 'powerLoss');
  return `${what} ${name}`;
}

function hasRole(fleet: SimulatedFleet, name: string): boolean {
  return fleet.node(name).role?.role === 'consensus-member';
}
