/** What people do to a fleet. An order that dies with its agent is given again. */
import { formatId } from '../../../src/etcd/member.ts';
import type { SimulatedFleet } from '../simulated-fleet.ts';
import type { FleetNode } from './fleet-node.ts';
import { leaderOf } from './flow.ts';

/** `stop`, until etcd is gone for good. */
export async function stopEtcd(fleet: SimulatedFleet, node: FleetNode): Promise<void> {
  await fleet.insist(
    () => isStopped(node) || node.parts.operator.stop({ force: false, dryRun: false }),
    () => isStopped(node) && !node.etcd.isRunning && fleet.changeRecord === undefined && node.alive,
  );
}

/** `start`, until etcd is to run. */
export async function startEtcd(fleet: SimulatedFleet, node: FleetNode): Promise<void> {
  await fleet.insist(
    () => !isStopped(node) || node.parts.operator.start({ dryRun: false }),
    () => !isStopped(node),
  );
}

/** `start --accept-log-regression`, until the word for it is on disk and etcd is to run. */
export async function startAsItIs(fleet: SimulatedFleet, node: FleetNode): Promise<void> {
  const acceptLogRegression = formatId(node.etcd.memberId ?? 0n);
  const isDone = () => isAccepted(node) && !isStopped(node);
  await fleet.insist(() => isDone() || node.parts.operator.start({ dryRun: false, acceptLogRegression }), isDone);
}

/** `shutdown`, until etcd is gone. It is not given again where the mark is on disk: whatever agent is there does the rest. */
export async function shutDown(fleet: SimulatedFleet, node: FleetNode): Promise<void> {
  await fleet.insist(
    () => node.goesDown || node.parts.operator.shutdown({ dryRun: false }),
    () => node.goesDown && !node.etcd.isRunning && node.alive,
  );
}

/** Somebody writes so many keys. */
export async function write(fleet: SimulatedFleet, count: number): Promise<void> {
  const { keys } = fleet.sim.client(leaderOf(fleet));
  const numbers = Array.from({ length: count }, (_none, index) => index);
  await fleet.sim.settle(Promise.all(numbers.map((number) => keys.put(`key${number}`, 'value'))));
}

/** Somebody lets this member lead. */
export async function letLead(fleet: SimulatedFleet, name: string): Promise<void> {
  const { memberId } = fleet.sim.node(name);
  await fleet.sim.settle(fleet.sim.client(leaderOf(fleet)).moveLeader(memberId ?? 0n));
}

function isAccepted(node: FleetNode): boolean {
  const progress = node.state.progress.read();
  return progress.kind === 'ok' && progress.value.accepted !== null;
}

function isStopped(node: FleetNode): boolean {
  const intent = node.state.runIntent();
  return intent.kind === 'ok' && intent.value.intent === 'stopped';
}
