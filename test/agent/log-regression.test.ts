// Goal: a member whose data was put back from a copy is held before its first start, by what stands here or in its key, until an operator
// says otherwise; a member that only crashed is not.
// Method: whole agents on the simulated cluster; the disk of one is copied, written on, and put back.
import { afterEach, describe, expect, test } from 'vitest';
import { LogProgress } from '../../src/agent/log-progress.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import { silentLog } from '../../src/base/log.ts';
import { memberKeyOf } from '../../src/etcd/member-key.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type SimulatedAgent, SimulatedFleet } from './simulated-agent.ts';

let fleet: SimulatedFleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

async function write(from: SimulatedFleet, count: number): Promise<void> {
  const name = from.sim.leader()?.name ?? expect.fail('one leads');
  for (let number = 0; number < count; number++)
    await from.sim.settle(from.sim.client(name).keys.put(`key${number}`, 'value'));
}

/** One of three, with its data of two minutes ago; nothing runs on it. */
async function rolledBack(): Promise<{ readonly made: SimulatedFleet; readonly one: SimulatedAgent }> {
  const made = await SimulatedFleet.founded();
  fleet = made;
  const [one] = made.followers;
  await made.sim.run(5_000);
  const copy = one.node.copyDisk();
  await write(made, 50);
  await made.sim.run(120_000);
  await made.sim.settle(one.parts.operator.stop({ force: false, dryRun: false }));
  await one.end();
  one.node.restore(copy);
  return { made, one };
}

/** The leader remembers how far each had come, and would end one that is behind by its next heartbeat; the next leader does not. */
async function letAnotherLead(made: SimulatedFleet, one: SimulatedAgent): Promise<void> {
  const leader = made.sim.leader() ?? expect.fail('one leads');
  const target =
    made.agents.find(({ node }) => node !== leader && node !== one.node) ?? expect.fail('there is another');
  await made.sim.settle(made.sim.client(leader.name).moveLeader(target.node.memberId ?? 0n));
}

const start = (one: SimulatedAgent, acceptLogRegression?: string) => {
  const order = one.parts.operator.start({ dryRun: false, acceptLogRegression });
  return fleet?.sim.settle(order) ?? expect.fail('there is a fleet');
};
const idOf = (one: SimulatedAgent) => (one.node.memberId ?? 0n).toString(16);

describe('data that was put back', () => {
  test('is held with both numbers, whatever is ordered, until the word for this very member starts it', async () => {
    const { made, one } = await rolledBack();
    one.boot();
    await made.sim.run(15_000);
    const refused = await start(one).catch((error: Error) => error.message);
    expect(refused).toMatch(/its log ends at index \d+, but it had applied \d+/);
    await expect(start(one, 'ff')).rejects.toThrow(/this node is member [0-9a-f]+, not ff/);
    await made.sim.run(15_000);
    expect(one.node.lives).toHaveLength(1);

    await letAnotherLead(made, one);
    expect((await start(one, idOf(one))).lines[0]).toContain('went back and is accepted as it is: its log ends at');
    await made.sim.until(() => one.node.isServing, 30_000, 'it is started');
    const audited = one.facts.filter(({ kind }) => kind === 'operator.command').at(-1);
    expect(audited?.data).toMatchObject({ command: 'start', detail: expect.stringContaining('its log ends at index') });
  });

  test('is held by its key where its own record went back as well, and stays held when nobody answers any more', async () => {
    const { made, one } = await rolledBack();
    one.disk.remove(`${one.layout.stateDir}/progress`);
    one.orderToRun();
    one.boot();
    await made.sim.run(20_000);
    expect(one.plan).toBe('blocked logRegressed');
    for (const { node } of made.agents) if (node !== one.node) node.freeze();
    await one.end();
    one.boot();
    await made.sim.run(60_000);
    expect(one.plan).toBe('blocked logRegressed');
    expect(one.node.lives).toHaveLength(1);
  });

  test('that was accepted once counts anew: the next rollback is held again', async () => {
    const { made, one } = await rolledBack();
    one.orderToRun();
    one.boot();
    await made.sim.run(20_000);
    expect(one.plan).toBe('blocked logRegressed');
    await letAnotherLead(made, one);
    await start(one, idOf(one));
    await made.sim.until(() => one.node.isServing, 30_000, 'it is started');
    await made.sim.run(10_000);
    const copy = one.node.copyDisk();
    await write(made, 20);
    await made.sim.run(200_000);
    one.node.signal('SIGKILL');
    await one.end();
    one.node.restore(copy);
    one.boot();
    await made.sim.run(20_000);
    expect(one.plan).toBe('blocked logRegressed');
  });
});

test('a member that was killed, or stopped in order, is started as ever', async () => {
  fleet = await SimulatedFleet.founded();
  const { sim } = fleet;
  const [one] = fleet.followers;
  await write(fleet, 20);
  await sim.run(130_000);
  one.node.signal('SIGKILL');
  await sim.until(() => one.node.lives.length === 2 && one.node.isServing, 30_000, 'it is restarted');
  await sim.settle(one.parts.operator.stop({ force: false, dryRun: false }));
  await expect(start(one, idOf(one))).rejects.toThrow('nothing to accept');
  await start(one);
  await sim.until(() => one.node.isServing, 30_000, 'it is started');
  expect(one.died).toBeUndefined();
});

test('a key that cannot be read says nothing', async () => {
  const { made, one } = await rolledBack();
  one.disk.remove(`${one.layout.stateDir}/progress`);
  const through = made.sim.client(made.sim.leader()?.name ?? 'n1');
  await made.sim.settle(through.keys.put(memberKeyOf(one.node.memberId ?? 0n), '{"index": "many"}'));
  one.orderToRun();
  one.boot();
  await made.sim.until(() => one.node.lives.length === 2, 60_000, 'it is started');
});

test('the file is written at most each minute, for this member only, and never over what cannot be trusted', () => {
  const disk = new MemoryDisk(new SeededRandom(1));
  const clock = new FakeClock();
  const layout = { stateDir: '/state', identityCopy: '/copy', memberDir: '/member', runIntentCopy: '/intent' };
  disk.ensureDirectory('/state');
  const state = new AgentState({ disk, layout: layout as never });
  let applied = 10n;
  const beforeLast = () => ({ raftTerm: 3n, raftAppliedIndex: applied }) as never;
  const progress = new LogProgress({ state, clock, log: silentLog, beforeLast });
  const self = { clusterId: 0xc1n, memberId: 0xa3n };
  progress.keep(self);
  applied = 20n;
  progress.keep(self);
  expect(state.progress.read()).toMatchObject({ value: { term: 3n, appliedIndex: 10n, accepted: null } });
  progress.keep(self, 'now');
  expect(state.progress.read()).toMatchObject({ value: { appliedIndex: 20n } });
  clock.advanceSync(60_000);
  applied = 30n;
  progress.keep(self);
  expect(state.progress.read()).toMatchObject({ value: { appliedIndex: 30n } });
  const data = { last: { index: 25n, term: 3n }, term: 3n, commit: 25n } as never;
  expect(progress.regression(self, data)).toContain('index 25, but it had applied 30');
  expect(progress.regression({ ...self, memberId: 0xa4n }, data)).toBeUndefined();
  state.distrust('test', 'not to be trusted');
  applied = 40n;
  progress.keep(self, 'now');
  expect(state.progress.read()).toMatchObject({ value: { appliedIndex: 30n } });
  state.distrust('test', undefined);
  disk.fail({ step: 'write', errno: 'ENOSPC' });
  progress.keep(self, 'now');
  expect(progress.regression(self, data)).toContain('applied 30');
});
