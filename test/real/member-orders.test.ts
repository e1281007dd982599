// Goal: a member whose disk is lost is replaced, a dead one is evicted, the last one is retired; nobody takes out one that lives; three
// members become one and three again.
// Method: agents with real etcd on loopback; the disk of one is wiped, another one is killed for good; orders by the local API.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { command } from '../support/command.ts';
import { storyVersions, testVersions } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import { type FleetNode, killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { votes } from '../support/memberships.ts';

for (const binary of testVersions()) {
  describe(`etcd ${binary.version}`, () => {
    test('K13 3 → 2 → 1 → 2 → 3: a lost disk is replaced, a dead voter evicted, and both come back', {
      timeout: 240_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary });
      const [n1, n2, n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
      for (const node of fleet.nodes) grant(node, 'first', fleet.nodes);

      // The one that lives is not taken out by others.
      const lives = await command(n1, 'members', 'evict', await hexId(n2));
      expect(lives).toMatchObject({ code: 4 });
      expect(lives.stderr).toContain('answers');
      expect((await command(n1, 'members')).stdout).toContain('3 answer now, 1 more may fail');

      // A lost disk: the id never runs again, the node joins anew under the same grant.
      const before = await hexId(n3);
      await killAll(n3);
      rmSync(n3.dataDir, { recursive: true });
      await n3.startAgent();
      await n3.until(({ plan }) => plan.what === 'diskLost', 'its disk is lost');
      const dry = await command(n3, 'replace', before, '--dry-run');
      expect(dry.stdout).toContain('is allowed: 3 voters');
      expect(await command(n3, 'replace', before)).toMatchObject({ code: 0 });
      await votes(n3, 3);
      expect(await hexId(n3)).not.toBe(before);

      // A voter that died for good is taken out by another node.
      const dead = await hexId(n2);
      await killAll(n2);
      await eventually(
        async () => {
          const evicted = await command(n1, 'members', 'evict', dead);
          expect(evicted, evicted.stderr).toMatchObject({ code: 0 });
          return true;
        },
        { withinMs: 30_000, what: 'the dead voter is evicted' },
      );
      await n1.until(({ cluster }) => cluster?.members.length === 2, 'two are left');

      // 2 → 1, and back: the one that left under a new grant, the dead one as an empty machine under its old name.
      n3.writeRole({ role: 'leaving', grantId: 'first', accept: await acceptance(n3) });
      await n3.until(({ plan }) => plan.kind === 'converged', 'it has left', 40_000);
      await n1.until(({ cluster }) => cluster?.members.length === 1, 'it is alone');
      grant(n3, 'second', [n1]);
      await votes(n3, 2);
      for (const path of ['data', 'state', 'run']) rmSync(join(n2.directory, path), { recursive: true });
      await n2.startAgent();
      grant(n2, 'second', [n1, n3]);
      await votes(n2, 3);
    });
  });
}

for (const binary of storyVersions()) {
  describe(`the last member on etcd ${binary.version}`, () => {
    test('is retired by the id of its cluster alone, and its node may found another one', { timeout: 120_000 }, async ({
      fleet: make,
    }) => {
      const fleet = await make({ binary, size: 1, founded: false });
      const n1 = fleet.node('n1');
      await n1.startAgent();
      await n1.post('/v1/found');
      await n1.ready();
      const clusterId = (await n1.status()).member?.clusterId ?? '';
      expect((await command(n1, 'retire', '--last-member', 'abc')).code).toBe(4);
      expect(await command(n1, 'retire', '--last-member', clusterId)).toMatchObject({ code: 0 });
      await n1.until(({ process }) => process.phase === 'down' && process.intent === 'removed', 'it is over', 40_000);
      await eventually(() => n1.processes().length === 0);
      await eventually(async () => (await command(n1, 'found')).code === 0, {
        withinMs: 20_000,
        what: 'it may found again',
      });
      await n1.ready();
      expect((await n1.status()).member?.clusterId).not.toBe(clusterId);
    });
  });
}

function grant(node: FleetNode, grantId: string, through: readonly FleetNode[]): void {
  const endpoints = through.filter((other) => other !== node).map(({ clientUrl }) => clientUrl);
  node.writeRole({ role: 'consensus-member', grantId, endpoints });
}

async function hexId(node: FleetNode): Promise<string> {
  return (await node.memberId()).toString(16);
}

/** The acceptance that the refusal itself names. */
async function acceptance(node: FleetNode): Promise<readonly unknown[]> {
  node.writeRole({ role: 'leaving', grantId: 'first' });
  const { plan } = await node.until(({ plan: { what } }) => what === 'changeRefused', 'leaving is refused', 20_000);
  const listHash = /list ([0-9a-f]+)/.exec(plan.because)?.[1];
  return [{ kind: 'zero-tolerance', memberId: await hexId(node), listHash }];
}
