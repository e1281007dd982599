import type { MemberData } from '../simulated-cluster/raft.ts';
import type { SimulatedFleet } from '../simulated-fleet.ts';
import type { FleetNode } from './fleet-node.ts';
import { type Flow, followersOf, leaderOf } from './flow.ts';
import { letLead, shutDown, startAsItIs, startEtcd, stopEtcd, write } from './orders.ts';

/** So long nobody may start etcd on a machine that goes down. Unit: ms. */
const goingDownMs = 15_000;

const three = { nodes: ['n1', 'n2', 'n3'], founders: 3 } as const;

/** What operators bring about; the roles stay as they are. */
export const operatorFlows: readonly Flow[] = [
  {
    name: 'an operator stops the etcd that leads, and starts it again',
    ...three,
    async run(fleet) {
      const node = fleet.node(leaderOf(fleet));
      await stopEtcd(fleet, node);
      await startEtcd(fleet, node);
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'a voter gets another peer URL',
    ...three,
    async run(fleet) {
      const node = fleet.node(followersOf(fleet)[0]);
      node.peerUrl = 'http://10.0.1.1:2380';
      // The real agent reads this address only when it starts.
      fleet.kill(node.name, 'kill');
      const isInVain = () => node.alive && node.parts.agent.failing?.because.includes('does not answer at') === true;
      await fleet.until(isInVain, 'etcd listens at the old address');
      await stopEtcd(fleet, node);
      await startEtcd(fleet, node);
      const isRegistered = () => fleet.members().some(({ peerUrls }) => peerUrls.includes(node.peerUrl));
      await fleet.until(isRegistered, 'the new address is registered');
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'the machine of the leader is rebooted',
    ...three,
    async run(fleet) {
      const node = fleet.node(leaderOf(fleet));
      await shutDown(fleet, node);
      await fleet.pass(goingDownMs);
      fleet.reboot(node.name);
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'the data of a machine that is down is put back from an older copy, and accepted as it is',
    ...three,
    async run(fleet) {
      const node = fleet.node(followersOf(fleet)[0]);
      const copy = await olderCopy(fleet, node);
      await shutDown(fleet, node);
      await putBack(fleet, node, copy);
      fleet.reboot(node.name);
      await fleet.until(() => node.plan.startsWith('blocked logRegressed'), 'it is held');
      await startAsItIs(fleet, node);
      await fleet.settles('n1 n2 n3');
    },
  },
  {
    name: 'the data of a voter that was stopped is put back from an older copy, and accepted as it is',
    ...three,
    async run(fleet) {
      const node = fleet.node(followersOf(fleet)[0]);
      const copy = await olderCopy(fleet, node);
      await stopEtcd(fleet, node);
      await putBack(fleet, node, copy);
      await startAsItIs(fleet, node);
      await fleet.settles('n1 n2 n3');
    },
  },
];

/** The data of now, once the cluster has gone on and the agent of this member has written down how far it has come since. */
async function olderCopy(fleet: SimulatedFleet, node: FleetNode): Promise<MemberData> {
  const copy = node.data.copy();
  await write(fleet, 20);
  await fleet.until(() => notedIndex(node) > copy.log.length, 'its agent has noted more than the copy has');
  return copy;
}

/** The leader of before knows how far this member had come, and its first message would end etcd: another one leads from now on. */
async function putBack(fleet: SimulatedFleet, node: FleetNode, copy: MemberData): Promise<void> {
  await letLead(fleet, followersOf(fleet).find((name) => name !== node.name) ?? '');
  node.data.putBack(copy);
}

/** How far the member had come, by the record on its disk. */
function notedIndex(node: FleetNode): number {
  const progress = node.state.progress.read();
  return progress.kind === 'ok' ? Number(progress.value.appliedIndex) : 0;
}
