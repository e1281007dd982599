// Goal: an agent that dies at any effect of a leave or a join goes on by itself, on real etcd as on the simulated one.
// Method: a fleet of three; the third leaves and joins over and over, each time its agent kills itself before or after one effect (a test
// mode of the agent). A seeded, printed sample of all points; all of them with ETCD_TEST_CRASH_POINTS=all.
import { describe, expect } from 'vitest';
import { fullRun, newestBinary } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const change = (effect: string) => [
  'record.create',
  'change.journal',
  'record.sending',
  effect,
  'change.done',
  'record.clear',
];
const leaving = [
  ...change('change.remove'),
  ...['leave.intend', 'leave.removed', 'removal.tombstone', 'removal.report', 'removal.intent', 'removal.archive'],
  'removal.archived',
].map((effect) => `${effect} N 1`);
const joining = [
  ...[
    'join.intend',
    'join.intent',
    'join.claim',
    'join.added',
    'join.identity',
    'join.mark',
    'join.started',
    'join.spawn',
  ],
  ...['join.done', ...change('change.addLearner')],
].map((effect) => `${effect} N 1`);
/** The second change of a join. */
const promoting = change('change.promote').map((effect) => `${effect} N ${effect === 'change.promote' ? 1 : 2}`);

const both = (points: readonly string[]) =>
  points.flatMap((point) => [point.replace(' N ', ' before '), point.replace(' N ', ' after ')]);
const leavePoints = both(leaving);
const joinPoints = both([...joining, ...promoting]);

const seed = Number(process.env['ETCD_TEST_SEED'] ?? Date.now() % 1_000_000);
const all = process.env['ETCD_TEST_CRASH_POINTS'] === 'all';
/** A third of them. */
const share = (points: readonly string[]) => (all ? points.length : Math.ceil(points.length / 3));

const binary = newestBinary();

describe(`etcd ${binary.version}`, () => {
  test.runIf(fullRun || all)(
    'A01 A02 A03 A04 A05 an agent that dies at an effect of a leave or a join is followed by one that goes on',
    {
      timeout: 2_400_000,
    },
    async ({ fleet: make }) => {
      const random = new SeededRandom(seed);
      const leaves = shuffled(leavePoints, random).slice(0, share(leavePoints));
      const joins = shuffled(joinPoints, random).slice(0, share(joinPoints));
      process.stderr.write(`seed ${seed}: leave: ${leaves.join(', ')}; join: ${joins.join(', ')}\n`);
      const fleet = await make({ binary });
      const node = fleet.node('n3');
      node.writeRole({ role: 'consensus-member', grantId: 'first', endpoints: others(fleet, node) });
      const archives = new Set<string>();
      for (let round = 0; round < Math.max(leaves.length, joins.length); round++) {
        await dyingAt(node, leaves[round], () => node.post('/v1/leave', { acceptZeroTolerance: true }));
        await left(fleet, node);
        await oneEtcd(node, 0);
        archives.add(await lastArchive(node));
        await dyingAt(node, joins[round], () => node.post('/v1/join', { endpoints: others(fleet, node) }));
        await joined(fleet);
        await oneEtcd(node, 1);
      }
      // Each membership has ended in an archive of its own, and was reported once.
      expect(archives.size).toBe(Math.max(leaves.length, joins.length));
      const removals = (await node.events()).filter(
        ({ kind, data }) => kind === 'member.removed' && data['self'] === true,
      );
      expect(removals).toHaveLength(archives.size);
      const record = await etcdctl(fleet.node('n1'), 'get', '/etcd-node-agent/v1/change', '--print-value-only');
      expect(record.trim()).toBe('');
    },
  );
});

/** Gives the order to an agent that will die at the point; a next one is started once it has. */
async function dyingAt(node: FleetNode, point: string | undefined, order: () => Promise<unknown>): Promise<void> {
  if (point === undefined) {
    await order();
    return;
  }
  await node.endAgent('SIGKILL');
  await node.startAgent({ environment: { ETCD_NODE_AGENT_CRASH_AT: point } });
  node.mark(`it dies at ${point}`);
  const ordered = await heeded(node, order);
  await eventually(() => !node.agentRuns(), { withinMs: 60_000, what: `the agent dies at ${point}` });
  await node.startAgent();
  // What an operator does whose order had no answer.
  if (!ordered) expect(await heeded(node, order), 'an order that is given again').toBe(true);
}

/** Whether the agent said yes, asked again while it refuses; false once it is dead, when it may have heeded it or not. */
async function heeded(node: FleetNode, order: () => Promise<unknown>): Promise<boolean> {
  const answer = await eventually(
    async () => {
      try {
        await order();
        return 'yes';
      } catch (error) {
        if (!node.agentRuns()) return 'dead';
        throw error;
      }
    },
    { withinMs: 20_000, everyMs: 250, what: 'the order is taken' },
  );
  return answer === 'yes';
}

async function left(fleet: Fleet, node: FleetNode): Promise<void> {
  await node.until(
    ({ process: { intent, phase }, plan }) => intent === 'removed' && phase === 'down' && plan.kind === 'converged',
    'it has left',
    60_000,
  );
  await fleet.node('n1').until(({ cluster }) => cluster?.members.length === 2, 'two are left');
}

async function joined(fleet: Fleet): Promise<void> {
  for (const each of fleet.nodes) {
    await each.until(
      ({ process, member, cluster, plan }) =>
        process.phase === 'ready' &&
        member?.learner === false &&
        cluster?.members.length === 3 &&
        plan.kind === 'converged',
      'three vote',
      90_000,
    );
  }
  await Promise.all(fleet.nodes.map((each) => each.knowsEverybody(3)));
}

async function oneEtcd(node: FleetNode, count: 0 | 1): Promise<void> {
  // A keeper and its etcd.
  await eventually(() => node.processes().length === count * 2, { what: `${count} etcd on its data` });
}

async function lastArchive(node: FleetNode): Promise<string> {
  const archived = (await node.events()).filter(({ kind }) => kind === 'data.archived').at(-1);
  return String(archived?.data['path']);
}

function others(fleet: Fleet, node: FleetNode): readonly string[] {
  return fleet.nodes.filter((other) => other !== node).map(({ clientUrl }) => clientUrl);
}

function shuffled(points: readonly string[], random: SeededRandom): readonly string[] {
  return points
    .map((point) => ({ point, at: random.fraction() }))
    .sort((a, b) => a.at - b.at)
    .map(({ point }) => point);
}
