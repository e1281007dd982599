// Goal: a node's whole life by its role document alone: empty → learner → voter → leader → removed → learner → voter, and a founder
// that loses its role leaves and never founds again.
// Method: agents with real, unpatched etcd on loopback; nothing but role files is written after the founding.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { command } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { votes } from '../support/memberships.ts';

for (const binary of storyVersions()) {
  describe(`etcd ${binary.version}`, () => {
    test('K11 K19 K21 1 → 2 → 3 → 2 → 3: the founder leads, leaves, and comes back as a learner', {
      timeout: 300_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary, size: 3, founded: false });
      await startAll(fleet);
      const [n1, n2, n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
      await n1.post('/v1/found');
      await n1.ready();
      grant(n1, 'n1-first');

      grant(n2, 'n2-first', [n1]);
      await votes(n2, 2);
      // A pause is told by the orders that it holds back.
      for (const [node, ...order] of [
        [n3, 'join', '--endpoint', n1.clientUrl],
        [n2, 'leave', '--accept-zero-tolerance'],
      ] as const) {
        expect(await command(node, 'pause', '--reason', 'work on the rack')).toMatchObject({ code: 0 });
        const { stdout } = await command(node, ...order, '--dry-run');
        expect(stdout).toMatch(/membership changes are paused until .*: it begins after that, or after `resume`/);
        expect(await command(node, 'resume')).toMatchObject({ code: 0 });
      }
      grant(n3, 'n3-first', [n1]);
      await votes(n3, 3);

      await n1.knowsEverybody(3);
      const first = await n1.memberId();
      expect(await n1.leads(), 'the founder leads').toBe(true);
      const agentPid = n1.agentPid;
      n1.writeRole({ role: 'leaving', grantId: 'n1-first', accept: await zeroTolerance(n1) });
      await n1.until(({ plan }) => plan.kind === 'converged', 'it has left', 40_000);
      expect(n1.agentPid).toBe(agentPid);
      await eventually(() => n1.processes().length === 0, { what: 'its etcd is gone' });
      expect((await n1.events()).filter(({ kind }) => kind === 'member.removed')).toHaveLength(1);
      await n2.until(({ cluster }) => cluster?.members.length === 2, 'two are left');

      // A spent grant is no grant, also after a restart of the agent.
      grant(n1, 'n1-first', [n2]);
      await n1.until(({ plan }) => plan.what === 'removedByOthers', 'a spent grant is refused');
      await n1.endAgent();
      await n1.startAgent();
      await n1.until(({ plan }) => plan.what === 'removedByOthers', 'a spent grant is refused');
      expect(n1.processes()).toEqual([]);
      // A reboot: nothing of a run directory outlives it.
      await n1.endAgent();
      rmSync(join(n1.directory, 'run'), { recursive: true });
      await n1.startAgent();
      await n1.until(({ plan }) => plan.what === 'removedByOthers', 'also after a reboot');
      expect(n1.processes()).toEqual([]);
      expect((await n1.status()).member?.removed).toBe(true);

      grant(n1, 'n1-second', [n2, n3]);
      await votes(n1, 3);
      expect(await n1.memberId()).not.toBe(first);
    });
  });
}

async function startAll(fleet: Fleet): Promise<void> {
  await Promise.all(fleet.nodes.map((node) => node.startAgent()));
}

function grant(node: FleetNode, grantId: string, through: readonly FleetNode[] = []): void {
  node.writeRole({ role: 'consensus-member', grantId, endpoints: through.map(({ clientUrl }) => clientUrl) });
}

/** The acceptance that the refusal itself names. */
async function zeroTolerance(node: FleetNode): Promise<readonly unknown[]> {
  const grantId = (await node.status()).role.grantId;
  node.writeRole({ role: 'leaving', grantId });
  const { plan } = await node.until(({ plan: { what } }) => what === 'changeRefused', 'leaving is refused', 20_000);
  const listHash = /list ([0-9a-f]+)/.exec(plan.because)?.[1];
  expect(plan.because).toContain('none more may fail');
  return [{ kind: 'zero-tolerance', memberId: (await node.memberId()).toString(16), listHash }];
}
