// Goal: one list that lacks this member is no proof that it was removed, also where its role says that it leaves: a stale peer that was forced
// into a cluster of its own has the right cluster id. A removal of its own whose answer was lost is proven by the others.
// Method: whole agents on the simulated cluster; etcd of one node is started with --force-new-cluster, and its agent is gone.
import { afterEach, describe, expect, test } from 'vitest';
import { leaderOf, without } from '../../support/simulated-fleet/flow.ts';
import { fleetOf } from '../../support/simulated-fleet/moments.ts';
import { type SimulatedAgent, SimulatedFleet } from '../simulated-agent.ts';

/** Longer than anybody waits for anything. Unit: ms. */
const longMs = 180_000;

describe('a peer that was forced into a cluster of its own', () => {
  let fleet: SimulatedFleet;
  afterEach(async () => {
    await fleet.close();
  });

  /** etcd of `agent` goes on alone, with nobody to look after it. */
  async function forceAlone(agent: SimulatedAgent): Promise<void> {
    await agent.end();
    agent.node.signal('SIGKILL');
    fleet.sim.restart(agent.node.name, ['--force-new-cluster']);
    await fleet.sim.until(() => agent.node.isServing, 30_000, 'it serves alone');
  }

  function leaves({ role, ...agent }: SimulatedAgent): SimulatedAgent['role'] {
    return role.kind === 'known' ? { ...role, role: 'leaving' } : expect.fail(`${agent.node.name} has a role`);
  }

  test.each([3, 2])('is no proof for one of %i voters whose role becomes `leaving`', async (size) => {
    fleet = await SimulatedFleet.founded(size);
    const [leaving, forced, ...silent] = fleet.agents;
    if (leaving === undefined || forced === undefined) expect.fail('there are two');
    for (const { node } of silent) node.freeze();
    await forceAlone(forced);
    leaving.role = leaves(leaving);
    leaving.parts.agent.wake();
    await fleet.sim.run(longMs);
    expect(leaving.parts.state.tombstones.read()).toMatchObject({ kind: 'absent' });
    expect(leaving.intent).toBe('run');
    expect(leaving.facts.map(({ kind }) => kind)).not.toContain('member.removed');
    expect(leaving.facts.map(({ kind }) => kind)).not.toContain('data.archived');
    expect(leaving.parts.agent.refusals.map(({ because }) => because).join()).toContain('this node has not removed it');
  });
});

describe('a MemberRemove of ours whose answer and agent were lost', () => {
  test.each([4, 2])('is proven by the others (%i voters)', async (size) => {
    const fleet = await fleetOf(size);
    const [name = ''] = without(fleet, leaderOf(fleet)).split(' ');
    const node = fleet.node(name);
    // Its machine loses its power once the removal is committed: before its agent, or its own log, knows of that.
    const wanted = without(fleet, name);
    const plan = {
      node: name,
      effect: 'change.remove',
      moment: 'within',
      occurrence: 1,
      how: 'powerLoss',
      depth: 8,
    } as const;
    fleet.crashAt(plan);
    fleet.revoke(name, size === 2 ? fleet.zeroTolerance(name) : []);
    await fleet.settles(wanted);
    expect(fleet.crashes).toEqual([plan]);
    expect(fleet.changesInLog('removeMember')).toBe(1);
    expect(node.etcd.lives).toHaveLength(1);
    expect(node.state.tombstones.read()).toMatchObject({
      kind: 'ok',
      value: [{ evidence: ['our own removal was answered or read back'] }],
    });
    fleet.checkEnd();
  });
});
