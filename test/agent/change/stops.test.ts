// Goal: a wanted stop of a voter is judged while it holds the change record, so of members that stop at one instant only as many go
// as the others can bear; who needs no record says so.
// Method: whole agents on the simulated cluster, given orders as the local API gives them.
import { afterEach, describe, expect, test } from 'vitest';
import type { CrashPoint } from '../../../src/agent/effects.ts';
import { type ChangeRecord, changeRecordKey, encodeChangeRecord } from '../../../src/etcd/change-record.ts';
import { type SimulatedAgent, SimulatedFleet } from '../simulated-agent.ts';

let fleet: SimulatedFleet;
afterEach(async () => {
  await fleet.close();
});

const stop = (agent: SimulatedAgent, { force = false, dryRun = false } = {}) =>
  fleet.sim.settle(agent.parts.operator.stop({ force, dryRun }), 120_000);
const recordThrough = (agent: SimulatedAgent) =>
  fleet.sim.settle(fleet.sim.client(agent.node.name).keys.get(changeRecordKey));

function accept(agent: SimulatedAgent, listHash: string): void {
  const memberId = (agent.node.memberId ?? 0n).toString(16);
  if (agent.role.kind !== 'known') expect.fail('it has a role');
  agent.role = { ...agent.role, accepted: [{ kind: 'quorum-loss', memberId, listHash }] };
}

/** It has read no list since it got its vote. */
function withoutVote({ parts: { state } }: SimulatedAgent): void {
  const identity = state.knownIdentity() ?? expect.fail('it is a member');
  const lastVoters = identity.lastVoters.filter(({ id }) => id !== identity.memberId);
  state.recordIdentity({ ...identity, lastVoters });
}

describe('a voter among others', () => {
  test('the leader hands over, stops under the record, and the record is gone afterwards', async () => {
    fleet = await SimulatedFleet.founded();
    const { leader } = fleet;
    const [other] = fleet.followers;
    const dry = await stop(leader, { dryRun: true });
    expect(dry).toMatchObject({ done: false });
    expect(dry.lines[0]).toMatch(
      /stopping n\d .* is allowed: 3 voters .* of which 2 would be up; it leads, so leadership is moved first/,
    );
    expect(leader.intent).toBe('run');
    expect(await stop(leader)).toMatchObject({ done: true });
    expect(leader.node.isRunning).toBe(false);
    expect(leader.intent).toBe('stopped');
    expect(fleet.sim.leader()).toBeDefined();
    expect(fleet.sim.leader()).not.toBe(leader.node);
    expect(await recordThrough(other)).toBeUndefined();
    await fleet.sim.run(30_000);
    expect(leader.plan).toBe('blocked stoppedByOperator');
    expect(leader.node.lives).toHaveLength(1);
  });

  test('the second of three is refused with numbers, unless it is forced', async () => {
    fleet = await SimulatedFleet.founded();
    const [one, other] = fleet.followers;
    await stop(one);
    await expect(stop(other)).rejects.toThrow(
      /it stays one of 3 voters, so 2 others must answer now and 1 does .*does not answer.*to accept that: quorum-loss/,
    );
    expect(other.node.isRunning).toBe(true);
    expect(other.intent).toBe('run');
    await expect(stop(other, { dryRun: true })).rejects.toThrow(/2 others must answer now and 1 does/);
    expect((await stop(other, { force: true })).lines[0]).toContain('(forced)');
    expect(other.node.isRunning).toBe(false);
    expect(other.facts.find(({ kind }) => kind === 'operator.command')?.data).toMatchObject({ detail: 'forced' });
  });

  test('a risk that the role accepts is taken without --force', async () => {
    fleet = await SimulatedFleet.founded();
    const [one, other] = fleet.followers;
    await stop(one);
    const said = await stop(other).catch((error: Error) => error.message);
    const listHash = /list ([0-9a-f]+)/.exec(String(said))?.[1] ?? '';
    accept(other, listHash);
    expect((await stop(other)).lines[0]).toContain('(accepted)');
  });

  test('of three that stop at the same instant one stops; the others are refused with numbers', async () => {
    for (const seed of [1, 2, 3, 4]) {
      fleet = await SimulatedFleet.founded(3, seed);
      const { agents, sim } = fleet;
      const orders = agents.map((agent) => agent.parts.operator.stop({ force: false, dryRun: false }));
      const results = await sim.settle(Promise.allSettled(orders), 120_000);
      expect(results.map(({ status }) => status).sort(), `seed ${seed}`).toEqual(['fulfilled', 'rejected', 'rejected']);
      expect(agents.filter(({ node }) => node.isRunning)).toHaveLength(2);
      for (const result of results) {
        if (result.status === 'rejected') expect(String(result.reason)).toMatch(/of 3 voters|the 3 voters/);
      }
      if (seed < 4) await fleet.close();
    }
  });

  test('it waits while somebody else holds the record, and is refused after 30 s', async () => {
    fleet = await SimulatedFleet.founded();
    const [one] = fleet.followers;
    const record: ChangeRecord = {
      clusterId: (one.parts.state.knownIdentity()?.clusterId ?? 0n).toString(16),
      operation: 'x',
      kind: 'remove',
      target: 'ff',
      by: 'n9',
      phase: 'sending',
      waitMs: 600_000,
      at: 'now',
    };
    const { keys } = fleet.sim.client(one.node.name);
    await fleet.sim.settle(keys.put(changeRecordKey, encodeChangeRecord(record)));
    const before = fleet.sim.clock.monotonicMs();
    await expect(stop(one)).rejects.toThrow(/for 30 s now n9 has begun a change \(remove ff, now\)/);
    expect(fleet.sim.clock.monotonicMs() - before).toBeGreaterThan(29_000);
    expect(one.node.isRunning).toBe(true);
    const order = one.parts.operator.stop({ force: false, dryRun: false });
    await fleet.sim.run(5_000);
    expect(one.node.isRunning).toBe(true);
    const key = (await fleet.sim.settle(keys.get(changeRecordKey))) ?? expect.fail('it stands');
    await fleet.sim.settle(keys.remove(key));
    expect(await fleet.sim.settle(order)).toMatchObject({ done: true });
  });

  test('without a quorum it is refused in words; forced, it stops without a record and says so', async () => {
    fleet = await SimulatedFleet.founded();
    const [one, other] = fleet.followers;
    fleet.leader.node.freeze();
    other.node.freeze();
    await expect(stop(one)).rejects.toThrow(/no quorum \(2 of 3 voters\) answers/);
    expect(one.intent).toBe('run');
    expect((await stop(one, { force: true })).lines[0]).toContain(
      'stopped without the change record and without a check',
    );
    expect(one.node.isRunning).toBe(false);
  });

  test('without a quorum the role may accept it, by the list that was read last', async () => {
    fleet = await SimulatedFleet.founded();
    const [one, other] = fleet.followers;
    fleet.leader.node.freeze();
    other.node.freeze();
    const said = String(await stop(one).catch((error: Error) => error.message));
    accept(one, /quorum-loss for this member, list ([0-9a-f]+)/.exec(said)?.[1] ?? '');
    expect((await stop(one)).lines[0]).toContain('without the change record');
    expect(one.node.isRunning).toBe(false);
  });

  test('a journal that cannot be written keeps no etcd up', async () => {
    fleet = await SimulatedFleet.founded();
    const [one] = fleet.followers;
    one.disk.fail({ step: 'write', errno: 'EIO', path: 'journal', times: 1_000 });
    expect(await stop(one)).toMatchObject({ done: true });
    expect(one.node.isRunning).toBe(false);
  });

  test('nobody takes leadership over: it stops all the same', async () => {
    fleet = await SimulatedFleet.founded();
    const { leader } = fleet;
    if (leader.parts.state.knownIdentity() === undefined) expect.fail('it is a member');
    for (let count = 0; count < 4; count++) fleet.sim.loseNextAnswer(leader.node.name, 'MoveLeader');
    expect(await stop(leader)).toMatchObject({ done: true });
    expect(leader.node.isRunning).toBe(false);
  });
});

describe('whoever needs no record', () => {
  test('a single voter', async () => {
    fleet = await SimulatedFleet.founded(1);
    const [alone] = fleet.agents;
    if (alone === undefined) expect.fail('there is one');
    expect((await stop(alone)).lines[0]).toContain('it is the only voter');
    expect(alone.node.isRunning).toBe(false);
    expect((await stop(alone)).lines[0]).toBe('etcd does not run');
  });

  test('a learner', async () => {
    fleet = await SimulatedFleet.founded();
    const [one] = fleet.followers;
    withoutVote(one);
    for (const agent of fleet.agents) if (agent !== one) agent.node.freeze();
    expect((await stop(one)).lines[0]).toContain('it has no vote');
    expect(one.node.isRunning).toBe(false);
  });

  test('but not a voter that has recorded nothing of its vote yet: the list of now decides', async () => {
    fleet = await SimulatedFleet.founded();
    const [one] = fleet.followers;
    withoutVote(one);
    expect((await stop(one)).lines[0]).toMatch(/3 voters .*of which 2 would be up/);
  });
});

describe('an agent that dies on the way', () => {
  const points: readonly CrashPoint[] = [
    { effect: 'stop.intent', moment: 'before' },
    { effect: 'stop.intent', moment: 'after' },
    { effect: 'change.moveLeader', moment: 'after' },
    { effect: 'record.sending', moment: 'after' },
    { effect: 'change.down', moment: 'before' },
    { effect: 'change.down', moment: 'after' },
    { effect: 'record.clear', moment: 'before' },
  ];

  test.each(points)('$moment $effect: the next one goes on, on a check of its own', async (point) => {
    fleet = await SimulatedFleet.founded();
    const { leader } = fleet;
    const [one] = fleet.followers;
    leader.killAt = point;
    await expect(stop(leader)).rejects.toThrow();
    expect(leader.killAt).toBeUndefined();
    await leader.end();
    leader.boot();
    const ordered = point.effect !== 'stop.intent' || point.moment === 'after';
    const settled = ordered ? 'blocked stoppedByOperator' : 'converged';
    await fleet.sim.until(() => leader.plan === settled, 90_000, settled);
    expect(leader.node.isRunning).toBe(!ordered);
    expect(leader.node.lives).toHaveLength(1);
    await fleet.sim.run(1_000);
    expect(await recordThrough(one)).toBeUndefined();
    const next = await stop(one).catch((error: Error) => error);
    if (ordered) expect(String(next)).toMatch(/2 others must answer now and 1 does/);
    else expect(next).toMatchObject({ done: true });
  });

  test('a forced stop is finished as a forced one', async () => {
    fleet = await SimulatedFleet.founded();
    const [one, other] = fleet.followers;
    await stop(other);
    one.killAt = { effect: 'change.down', moment: 'before' };
    await expect(stop(one, { force: true })).rejects.toThrow();
    await one.end();
    one.boot();
    await fleet.sim.until(() => one.plan === 'blocked stoppedByOperator', 90_000, 'it is stopped');
    expect(one.node.isRunning).toBe(false);
  });
});
