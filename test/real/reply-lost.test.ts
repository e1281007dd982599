// Goal: a membership call whose reply is lost after etcd committed it ends in the right state, and is not made a second time.
// Method: agents with real etcd; in front of each client URL stands a proxy that passes every call on and breaks the connection in place
// of the reply to one of them. A node joins, is promoted, leads, hands over and leaves, each time without hearing that it was done.
import { describe, expect } from 'vitest';
import type { SeenCall } from '../support/call-proxy.ts';
import { fullRun, storyVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { votes } from '../support/memberships.ts';

const calls = {
  add: '/etcdserverpb.Cluster/MemberAdd',
  promote: '/etcdserverpb.Cluster/MemberPromote',
  remove: '/etcdserverpb.Cluster/MemberRemove',
  move: '/etcdserverpb.Maintenance/MoveLeader',
};

for (const binary of storyVersions()) {
  describe(`etcd ${binary.version}`, () => {
    test.runIf(fullRun)(
      'N11 a reply that is lost after the commit of an add, a promotion, a move or a removal: one change, the right end',
      {
        timeout: 240_000,
      },
      async ({ fleet: make }) => {
        const fleet = await make({ binary, founded: false, proxied: true });
        const [n1, n2, n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
        for (const node of fleet.nodes) await node.startAgent();
        await n1.post('/v1/found');
        await n1.ready();
        grant(n1, []);
        grant(n2, [n1]);
        await votes(n2, 2);

        loseAll(fleet, calls.add, calls.promote);
        grant(n3, [n1, n2]);
        await votes(n3, 3);
        expect(answered(fleet, calls.add), 'n2 and n3 were added').toEqual([
          { path: calls.add, status: '0', lost: false },
          { path: calls.add, status: '0', lost: true },
        ]);
        expect(answered(fleet, calls.promote)).toEqual([
          { path: calls.promote, status: '0', lost: false },
          { path: calls.promote, status: '0', lost: true },
        ]);
        await Promise.all(fleet.nodes.map((node) => node.knowsEverybody(3)));

        // It leads, so that its leave needs a move first.
        loseAll(fleet);
        const leader = await fleet.leader();
        loseAll(fleet, calls.move, calls.remove);
        const before = answered(fleet, calls.move).length;
        const others = fleet.nodes.filter((node) => node !== leader);
        await leader.post('/v1/leave', { acceptZeroTolerance: true });
        await leader.until(
          ({ process, plan }) => process.phase === 'down' && process.intent === 'removed' && plan.kind === 'converged',
          'it has left',
          60_000,
        );
        expect(answered(fleet, calls.move).slice(before)).toEqual([{ path: calls.move, status: '0', lost: true }]);
        expect(answered(fleet, calls.remove)).toEqual([{ path: calls.remove, status: '0', lost: true }]);
        loseAll(fleet);
        for (const node of others) await node.until(({ cluster }) => cluster?.members.length === 2, 'two are left');
        const [one] = others;
        if (one === undefined) throw new Error('two are left');
        expect((await etcdctl(one, 'get', '/etcd-node-agent/v1/change', '--print-value-only')).trim()).toBe('');
        const removals = (await leader.events()).filter(({ kind }) => kind === 'member.removed');
        expect(removals, 'reported once').toHaveLength(1);
      },
    );
  });
}

/** From now on the good replies to these calls are lost, whomever they are made to. */
function loseAll(fleet: Fleet, ...paths: readonly string[]): void {
  for (const { proxy } of fleet.nodes) {
    proxy?.loseNothing();
    for (const path of paths) proxy?.lose(path);
  }
}

/** All calls of one kind that etcd said yes to: a learner that is not in sync yet is refused, and asked for again. */
function answered(fleet: Fleet, path: string): readonly SeenCall[] {
  return fleet.nodes
    .flatMap(({ proxy }) => proxy?.calls ?? [])
    .filter((call) => call.path === path && call.status === '0');
}

function grant(node: FleetNode, through: readonly FleetNode[]): void {
  node.writeRole({
    role: 'consensus-member',
    grantId: `${node.name}-first`,
    endpoints: through.map(({ clientUrl }) => clientUrl),
  });
}
