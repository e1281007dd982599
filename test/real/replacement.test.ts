// Goal: all three members of a cluster are replaced one after the other while somebody writes all the time: no acknowledged write is lost,
// and every member that comes back is another one, on data of its own.
// Method: agents with real etcd; each node in turn leads, leaves by command and joins again, with an open-loop writer (a write every 5 ms) on
// the two others from before the one until after the other; all that was acknowledged is read back.
import { describe, expect } from 'vitest';
import { testVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { type Gap, OpenLoopWriter } from '../support/open-loop-writer.ts';

for (const binary of testVersions()) {
  describe(`etcd ${binary.version}`, () => {
    test('R2 K19 all three are replaced under a steady load, and no acknowledged write is lost', {
      timeout: 300_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary });
      const before = await ids(fleet.nodes);
      const gaps: Gap[] = [];
      for (const node of fleet.nodes) {
        await lead(fleet, node);
        node.writeRole({ role: 'consensus-member', grantId: `${node.name}-1`, endpoints: others(fleet, node) });
        await node.until(({ role }) => role.known, 'its role is known');
        const writer = new OpenLoopWriter(others(fleet, node));
        try {
          await node.post('/v1/leave', { acceptZeroTolerance: true });
          await node.until(
            ({ process }) => process.intent === 'removed' && process.phase === 'down',
            'it has left',
            60_000,
          );
          await node.post('/v1/join', { endpoints: others(fleet, node) });
          await allVote(fleet);
          gaps.push(await writer.end());
          expect(await writer.lost()).toEqual([]);
        } finally {
          writer.close();
        }
      }
      const after = await ids(fleet.nodes);
      expect(after.filter((id) => before.includes(id))).toEqual([]);
      const written = gaps.reduce((sum, gap) => sum + gap.written, 0);
      expect(written).toBeGreaterThan(1_000);
      process.stderr.write(
        `etcd ${binary.version}: all replaced: ${written} writes, ${gaps.map(({ failed }) => failed).join(', ')} failed, ` +
          `longest gaps ${gaps.map(({ longestMs }) => `${longestMs} ms`).join(', ')}\n`,
      );
    });
  });
}

/** Makes this node's member the leader: it is as a leader that it leaves. */
async function lead(fleet: Fleet, node: FleetNode): Promise<void> {
  await eventually(
    async () => {
      if (await node.leads()) return true;
      await etcdctl(await fleet.leader(), 'move-leader', (await node.memberId()).toString(16));
      return undefined;
    },
    { withinMs: 20_000, everyMs: 200, what: `${node.name} leads` },
  );
}

async function allVote(fleet: Fleet): Promise<void> {
  for (const each of fleet.nodes) {
    await each.until(
      ({ process, member, cluster }) =>
        process.phase === 'ready' && member?.learner === false && cluster?.members.length === 3,
      'three vote',
      60_000,
    );
  }
  await Promise.all(fleet.nodes.map((each) => each.knowsEverybody(3)));
}

async function ids(nodes: readonly FleetNode[]): Promise<readonly bigint[]> {
  return await Promise.all(nodes.map((node) => node.memberId()));
}

function others(fleet: Fleet, node: FleetNode): readonly string[] {
  return fleet.nodes.filter((other) => other !== node).map(({ clientUrl }) => clientUrl);
}
