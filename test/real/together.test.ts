// Goal: agents that want a change, or a stop, at the same instant make it one after the other, each on a check made while it holds the
// change record: what was allowed for one is refused to the other once the cluster is smaller.
// Method: three agents with real etcd; role files and orders are given to two or three at once. Who held the record, and when, is read
// from etcd's own history of its key.
import { describe, expect } from 'vitest';
import { changeHistory } from '../support/change-history.ts';
import { fullRun, newestBinary } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { acceptance, votes } from '../support/memberships.ts';

for (const binary of [newestBinary()]) {
  describe(`at the same instant on etcd ${binary.version}`, () => {
    test('K14 of three that are told to stop at once one stops; the others are refused with numbers', {
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
      expect(sent(await changeHistory(one))).toEqual([`down by ${down.name}`, `down by ${again.name}`]);
    });

    test.runIf(fullRun)(
      'K14 two join at once, then two of three leave at once: one goes, the other is refused with numbers',
      {
        timeout: 240_000,
      },
      async ({ fleet: make }) => {
        const fleet = await make({ binary, founded: false });
        const [n1, n2, n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
        for (const node of fleet.nodes) await node.startAgent();
        await n1.post('/v1/found');
        await n1.ready();
        for (const node of fleet.nodes) grant(node, 'consensus-member', [n1]);
        await Promise.all(fleet.nodes.map((node) => votes(node, 3)));
        const joins = sent(await changeHistory(n1));
        expect(joins.toSorted()).toEqual(['addLearner by n2', 'addLearner by n3', 'promote by n2', 'promote by n3']);
        await Promise.all(fleet.nodes.map((node) => node.knowsEverybody(3)));

        // Each may leave a cluster of three. Both accept what that means, for the list of three.
        const accept = await Promise.all([n2, n3].map(acceptance));
        for (const [index, node] of [n2, n3].entries()) grant(node, 'leaving', [n1], accept[index]);
        const gone = await eventually(
          async () => {
            const states = await Promise.all([n2, n3].map(async (node) => ({ node, status: await node.status() })));
            const left = states.filter(({ status }) => status.process.intent === 'removed');
            const refused = states.filter(({ status }) => status.plan.what === 'changeRefused');
            if (left.length + refused.length < 2) throw new Error('not both have come to an end');
            return { left, refused };
          },
          { withinMs: 60_000, what: 'one has left, the other is refused' },
        );
        expect(gone.left).toHaveLength(1);
        expect(gone.refused[0]?.status.plan.because).toMatch(
          /1 voter would remain with quorum 1 and 1 that answers?, so none more may fail/,
        );
        const [left] = gone.left.map(({ node }) => node);
        if (left === undefined) throw new Error('one has left');
        await n1.until(({ cluster }) => cluster?.members.length === 2, 'two are left');
        await left.until(({ plan }) => plan.kind === 'converged', 'it has left', 60_000);
        // Both may have been refused by etcd before: it wants to have been connected to all for 5 s.
        expect(sent(await changeHistory(n1)).at(-1)).toBe(`remove by ${left.name}`);
      },
    );

    test('K14 one leaves and another stops at once: the second is refused, whichever it is', {
      timeout: 180_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary });
      const [n1, n2, n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
      for (const node of fleet.nodes) grant(node, 'consensus-member', [n1]);
      await Promise.all(fleet.nodes.map((node) => votes(node, 3)));
      grant(n2, 'leaving', [n1], await acceptance(n2));
      const stop = await Promise.allSettled([n3.post('/v1/stop')]);
      const { status } = stop[0];
      if (status === 'fulfilled') {
        const { plan } = await n2.until(({ plan: { what } }) => what === 'changeRefused', 'leaving is refused', 40_000);
        expect(plan.because).toMatch(
          /2 voters would remain, of which 2 must answer now and 1 does \(n3 \(\w+\) (does not answer|is being stopped)\)/,
        );
        expect((await n3.status()).process).toMatchObject({ phase: 'down', intent: 'stopped' });
      } else {
        expect(String(stop[0].reason)).toMatch(/2 voters|leader/);
        await n2.until(({ process }) => process.intent === 'removed', 'it has left', 40_000);
        expect((await n3.status()).process.phase).toBe('ready');
      }
      expect(sent(await changeHistory(n1)).at(-1)).toBe(status === 'fulfilled' ? 'down by n3' : 'remove by n2');
    });
  });
}

/** The changes that were sent, in their order. */
function sent(history: Awaited<ReturnType<typeof changeHistory>>): readonly string[] {
  return history.filter(({ phases }) => phases.includes('sending')).map(({ kind, by }) => `${kind} by ${by}`);
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

function grant(
  node: FleetNode,
  role: 'consensus-member' | 'leaving',
  through: readonly FleetNode[],
  accept: readonly unknown[] = [],
): void {
  const endpoints = through.filter((other) => other !== node).map(({ clientUrl }) => clientUrl);
  node.writeRole({ role, grantId: 'first', endpoints, accept });
}
