// Goal: a change that failed before it was sent leaves no record, whatever answers were lost; looking after an interrupted change touches the
// record of no other cluster; and an order that waits behind a record is withdrawn by the next one.
// Method: whole agents on the simulated cluster; answers are lost, and a cluster of somebody else stands beside it.
import { describe, expect, test } from 'vitest';
import { type ChangeRecord, changeRecordKey, encodeChangeRecord } from '../../../src/etcd/change-record.ts';
import { formatId } from '../../../src/etcd/member.ts';
import { followersOf, leaderOf } from '../../support/simulated-fleet/flow.ts';
import {
  atFirst,
  fleetOf,
  putRecord,
  removeRecord,
  stopNode,
  strangersRecord,
  timesBegun,
} from '../../support/simulated-fleet/moments.ts';
import type { SimulatedFleet } from '../../support/simulated-fleet.ts';

/** Deadline of one call for the record. Unit: ms. */
const keyMs = 3_000;

describe('the answer to the rewriting, and to the read after it, is lost', () => {
  /** From now on the agent of this node hears nothing of the record until both calls have failed. */
  function loseAnswers(fleet: SimulatedFleet, name: string): void {
    const through = leaderOf(fleet);
    atFirst(fleet, { node: name, effect: 'record.sending', moment: 'before' }, () => {
      fleet.sim.loseNextAnswer(through, 'Txn');
      fleet.sim.clock.after(keyMs - 1, () => fleet.sim.loseNextAnswer(through, 'Range'));
    });
  }

  test('a stop is refused and leaves no record', async () => {
    const fleet = await fleetOf(3);
    const [name] = followersOf(fleet);
    loseAnswers(fleet, name);
    await expect(stopNode(fleet, fleet.node(name))).rejects.toThrow(/Range|deadline/i);
    expect(timesBegun(fleet, name, 'record.sending')).toBe(1);
    expect(timesBegun(fleet, name, 'change.down')).toBe(0);
    expect(fleet.changeRecord).toBeUndefined();
    expect(fleet.node(name).etcd.isServing).toBe(true);
  });

  test('a leave that failed so leaves no record, and is made once, at once', async () => {
    const fleet = await fleetOf(4);
    const [name] = followersOf(fleet);
    loseAnswers(fleet, name);
    fleet.revoke(name);
    await fleet.until(() => fleet.node(name).parts.agent.failing !== undefined, 'it has failed', 10_000);
    expect(fleet.changeRecord).toBeUndefined();
    await fleet.until(() => !fleet.memberNames.includes(name), 'it has left', 5_000);
    expect(fleet.changesInLog('removeMember')).toBe(1);
  });
});

describe('the record of another cluster', () => {
  /** A cluster of one beside the fleet, which all role documents name as well; in it stands a record of this node. */
  async function besideAnother(wishes: Partial<ChangeRecord>) {
    const fleet = await fleetOf(4);
    const foreign = fleet.sim.addNode('n9');
    fleet.sim.found(['n9'], 'another');
    await fleet.sim.until(() => foreign.isServing, 30_000, 'the other cluster serves');
    const [name] = followersOf(fleet);
    const clusterId = formatId(foreign.disk?.clusterId ?? 0n);
    const text = encodeChangeRecord(strangersRecord(fleet, { clusterId, by: name, waitMs: 0, ...wishes }));
    await fleet.sim.settle(fleet.sim.client('n9').keys.put(changeRecordKey, text));
    const stands = () => foreign.etcd?.raft?.machine.keys.get(changeRecordKey)?.value === text;
    return { fleet, node: fleet.node(name), stands };
  }

  test('is not touched when an interrupted change is resolved and the own cluster is silent', async () => {
    const { fleet, node, stands } = await besideAnother({ kind: 'remove', phase: 'sending' });
    const { name } = node;
    const etcds = fleet.nodes.map(({ etcd }) => etcd);
    atFirst(fleet, { node: name, effect: 'record.sending', moment: 'after' }, () => fleet.grant(name));
    fleet.crashAt({ node: name, effect: 'record.sending', moment: 'after', occurrence: 1, how: 'kill', depth: 0 });
    fleet.revoke(name);
    await fleet.until(() => !node.alive, 'its agent dies in the change');
    await fleet.until(() => node.alive && node.parts.agent.failing !== undefined, 'the next one waits for its record');
    for (const etcd of etcds) etcd.freeze();
    await fleet.pass(20_000);
    expect(stands()).toBe(true);
    for (const etcd of etcds) etcd.thaw();
    await fleet.settles('n1 n2 n3 n4');
    expect(timesBegun(fleet, name, 'record.takeOver')).toBe(1);
    expect(node.parts.journal.interrupted()).toEqual([]);
    expect(stands()).toBe(true);
  });

  test('is not touched when an agent that comes looks for what an earlier one left', async () => {
    const { fleet, node, stands } = await besideAnother({ kind: 'down', phase: 'sending' });
    fleet.kill(node.name, 'kill');
    await fleet.pass(60_000);
    expect(stands()).toBe(true);
  });
});

describe('a stop that waits behind the change of somebody else', () => {
  test('is withdrawn by a `start` that is ordered after it', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    await fleet.sim.settle(putRecord(fleet, strangersRecord(fleet)));
    const order = node.parts.operator.stop({ force: false, dryRun: false });
    const refused = expect(order).rejects.toThrow('the stop waited, and `start` was ordered after it');
    await fleet.sim.run(5_000);
    await fleet.sim.settle(node.parts.operator.start({ dryRun: true }));
    await fleet.sim.run(2_000);
    expect(node.parts.agent.latest?.plan.kind).toBe('converged');
    await fleet.sim.settle(node.parts.operator.start({ dryRun: false }));
    await removeRecord(fleet);
    await fleet.sim.run(30_000);
    await refused;
    expect(timesBegun(fleet, node.name, 'change.down')).toBe(0);
    expect(node.etcd.isServing).toBe(true);
    expect(node.etcd.lives).toHaveLength(1);
  });

  test('is carried out where only a dry run was ordered after it', async () => {
    const fleet = await fleetOf(3);
    const node = fleet.node(followersOf(fleet)[0]);
    await fleet.sim.settle(putRecord(fleet, strangersRecord(fleet)));
    const order = node.parts.operator.stop({ force: false, dryRun: false });
    await fleet.sim.run(5_000);
    await fleet.sim.settle(node.parts.operator.start({ dryRun: true }));
    await removeRecord(fleet);
    expect(await fleet.sim.settle(order)).toMatchObject({ done: true });
    expect(node.etcd.isRunning).toBe(false);
  });
});
