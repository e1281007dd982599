/** A fleet for a story of its own, and what happens in it at one moment of one effect. */
import type { EffectName } from '../../../src/agent/effects.ts';
import { type ChangeRecord, changeRecordKey, encodeChangeRecord } from '../../../src/etcd/change-record.ts';
import { formatId } from '../../../src/etcd/member.ts';
import { encodeMemberKey, type MemberKey, memberKeyOf } from '../../../src/etcd/member-key.ts';
import { SimulatedFleet } from '../simulated-fleet.ts';
import type { Passed } from './crash.ts';
import type { FleetNode } from './fleet-node.ts';

/** Nodes n1, n2, …, of which the first `founders` are members. */
export async function fleetOf(size: number, founders = size, seed = 1): Promise<SimulatedFleet> {
  const fleet = new SimulatedFleet(seed);
  const names = Array.from({ length: size }, (_none, index) => `n${index + 1}`);
  await fleet.build(names, founders);
  return fleet;
}

/** One moment of one effect of one node. */
export type Moment = Pick<Passed, 'node' | 'effect' | 'moment'>;

/** Does `act` when that moment comes for the first time from now on. Returns whether it has come. */
export function atFirst(fleet: SimulatedFleet, { node, effect, moment }: Moment, act: () => void): () => boolean {
  const before = fleet.onPass;
  let done = false;
  fleet.onPass = (passed) => {
    before(passed);
    if (done || passed.node !== node || passed.effect !== effect || passed.moment !== moment) return;
    done = true;
    act();
  };
  return () => done;
}

/** How often this effect was begun on a node. */
export function timesBegun(fleet: SimulatedFleet, node: string, effect: EffectName): number {
  return fleet.passed.filter((one) => one.node === node && one.effect === effect && one.moment === 'before').length;
}

/** A change record of somebody who is no node of the fleet. */
export function strangersRecord(fleet: SimulatedFleet, wishes: Partial<ChangeRecord> = {}): ChangeRecord {
  const { clusterId } = fleet.sim.leader()?.etcd?.raft ?? { clusterId: 0n };
  const [what, forLong] = [{ kind: 'remove', target: 'ff', phase: 'sending' } as const, { waitMs: 600_000, at: 'now' }];
  return { clusterId: formatId(clusterId), operation: 'x', by: 'n9', ...what, ...forLong, ...wishes };
}

/** Writes a record through the leader, over whatever stands there. Resolves once it stands; time has to pass meanwhile. */
export async function putRecord(fleet: SimulatedFleet, record: ChangeRecord): Promise<void> {
  const leader = fleet.sim.leader()?.name ?? '';
  await fleet.sim.client(leader).keys.put(changeRecordKey, encodeChangeRecord(record));
}

/** Removes whatever record stands there. */
export async function removeRecord(fleet: SimulatedFleet): Promise<void> {
  const { keys } = fleet.sim.client(fleet.sim.leader()?.name ?? '');
  const key = await fleet.sim.settle(keys.get(changeRecordKey));
  if (key !== undefined) await fleet.sim.settle(keys.remove(key));
}

/** The key of this member says so, until its own agent writes it anew. */
export async function letSay(fleet: SimulatedFleet, node: FleetNode, activity: MemberKey['activity']): Promise<void> {
  const unknown = { term: '0', index: '0', agentVersion: '', etcdVersion: '', at: '' };
  const { keys } = fleet.sim.client(fleet.sim.leader()?.name ?? '');
  const text = encodeMemberKey({ nodeId: node.name, activity, ...unknown });
  await fleet.sim.settle(keys.put(memberKeyOf(node.etcd.memberId ?? 0n), text));
}

/** An operator's `stop`, until it is done or refused. */
export async function stopNode(fleet: SimulatedFleet, node: FleetNode): Promise<{ readonly done: boolean }> {
  return await fleet.sim.settle(node.parts.operator.stop({ force: false, dryRun: false }), 120_000);
}
