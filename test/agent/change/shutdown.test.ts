// Goal: when the machine goes down etcd is stopped in order, whatever the others do, and is started again by the next boot and by nobody
// before it.
// Method: whole agents on the simulated cluster, given the order as the local API gives it.
import { afterEach, expect, test } from 'vitest';
import { changeRecordKey } from '../../../src/etcd/change-record.ts';
import { type SimulatedAgent, SimulatedFleet } from '../simulated-agent.ts';

let fleet: SimulatedFleet;
afterEach(async () => {
  await fleet.close();
});

const shutdown = (agent: SimulatedAgent, dryRun = false) =>
  fleet.sim.settle(agent.parts.operator.shutdown({ dryRun }), 120_000);

test('the leader hands over and stops; neither its agent nor the next one starts etcd, and a reboot does', async () => {
  fleet = await SimulatedFleet.founded();
  const { leader, sim } = fleet;
  expect(await shutdown(leader, true)).toMatchObject({ done: false, dryRun: true });
  expect(leader.node.isRunning).toBe(true);

  expect((await shutdown(leader)).lines.slice(0, 2)).toEqual(['leadership was handed over', 'etcd is stopped']);
  expect(leader.node.isRunning).toBe(false);
  expect(leader.intent).toBe('run');
  expect(sim.leader()).toBeDefined();
  await sim.run(60_000);
  expect(leader.plan).toBe('blocked shuttingDown');
  await leader.end();
  leader.boot();
  await sim.run(60_000);
  expect(leader.plan).toBe('blocked shuttingDown');
  expect(leader.node.lives).toHaveLength(1);

  await leader.end();
  leader.bootId = 'boot-2';
  leader.boot();
  await sim.until(() => leader.node.isServing, 30_000, 'the next boot starts it');
});

test('an agent that is killed right after the word was given is followed by one that stops etcd', async () => {
  fleet = await SimulatedFleet.founded();
  const [one] = fleet.followers;
  one.killAt = { effect: 'shutdown.mark', moment: 'after' };
  await expect(shutdown(one)).rejects.toThrow('killed');
  await one.end();
  one.boot();
  await fleet.sim.until(() => !one.node.isRunning, 30_000, 'it is stopped');
  await fleet.sim.run(5_000);
  expect(one.plan).toBe('blocked shuttingDown');
});

test('it is never refused and takes no record: not when the others are away, and not for longer than 8 s', async () => {
  fleet = await SimulatedFleet.founded();
  const { leader, sim, followers } = fleet;
  for (const { node } of followers) node.freeze();
  const before = sim.clock.monotonicMs();
  const { lines } = await shutdown(leader);
  expect(lines.slice(0, 2)).toEqual([expect.stringContaining('the others elect'), 'etcd is stopped']);
  expect(sim.clock.monotonicMs() - before).toBeLessThan(14_000);
  expect(leader.node.isRunning).toBe(false);
  for (const { node } of followers) node.thaw();
  await sim.run(10_000);
  const [one] = followers;
  expect(await sim.settle(sim.client(one.node.name).keys.get(changeRecordKey))).toBeUndefined();
  expect((await shutdown(one)).done).toBe(true);
  expect((await shutdown(one)).lines[0]).toBe('etcd does not run');
});

test('a disk that refuses keeps no machine up, and `start` takes the word back', async () => {
  fleet = await SimulatedFleet.founded();
  const [one] = fleet.followers;
  one.disk.fail({ step: 'write', errno: 'ENOSPC', times: 1_000 });
  const { lines } = await shutdown(one);
  expect(lines.join()).toContain('ENOSPC');
  expect(one.node.isRunning).toBe(false);
  await fleet.sim.run(20_000);
  expect(one.plan).toBe('blocked shuttingDown');
  one.disk.heal();
  await fleet.sim.settle(one.parts.operator.start({ dryRun: false }));
  await fleet.sim.until(() => one.node.isServing, 30_000, 'it is started');
});

test('what an operator stopped stays stopped by that word', async () => {
  fleet = await SimulatedFleet.founded();
  const [one] = fleet.followers;
  await fleet.sim.settle(one.parts.operator.stop({ force: false, dryRun: false }));
  await shutdown(one);
  await fleet.sim.run(15_000);
  expect(one.plan).toBe('blocked stoppedByOperator');
});
