// Goal: agents that stop at the same instant stop one after the other, each on a check made while it holds the change record: of a
// cluster of three only one goes, and the cluster stays up.
// Method: three agents with real etcd; two, then the two that are left, are told to stop at once, through the local API.
import { describe, expect } from 'vitest';
import { storyVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import type { FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';

for (const binary of storyVersions()) {
  describe(`stops at the same instant on etcd ${binary.version}`, () => {
    test('of three that are told at once one stops; the others are refused with numbers', {
      timeout: 180_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary });
      for (const node of fleet.nodes) {
        const key = await etcdctl(
          node,
          'get',
          '--prefix',
          `/etcd-node-agent/v1/members/${(await node.memberId()).toString(16)}`,
        );
        expect(key).toContain(`"nodeId":"${node.name}","activity":"active"`);
      }
      const down = await onlyOneStops(fleet.nodes);
      const up = fleet.nodes.filter((node) => node !== down);
      const [one] = up;
      if (one === undefined) throw new Error('two are up');
      expect(await etcdctl(one, 'get', '--prefix', '/etcd-node-agent/v1/change')).not.toContain('change');
      const said = await etcdctl(one, 'get', '--prefix', `/etcd-node-agent/v1/members/`);
      expect(said).toContain(`"nodeId":"${down.name}","activity":"stopping"`);

      await down.post('/v1/start');
      await down.ready(60_000);
      // Again, from another state of the cluster.
      const again = await onlyOneStops(fleet.nodes);
      await again.post('/v1/start');
      await again.ready(60_000);
    });
  });
}

async function onlyOneStops(nodes: readonly FleetNode[]): Promise<FleetNode> {
  const results = await Promise.allSettled(nodes.map((node) => node.post('/v1/stop')));
  const refusals = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []));
  expect(refusals).toHaveLength(nodes.length - 1);
  for (const refusal of refusals)
    expect(refusal).toMatch(/2 others must answer now and 1 does|leader among the 3 voters/);
  const states = await Promise.all(nodes.map(async (node) => (await node.status()).process));
  expect(states.map(({ phase }) => phase).sort()).toEqual(['down', 'ready', 'ready']);
  expect(states.map(({ intent }) => intent).sort()).toEqual(['run', 'run', 'stopped']);
  const down = nodes.find((_, index) => states[index]?.phase === 'down');
  if (down === undefined) throw new Error('none is down');
  return down;
}
