// Goal: a voter that got another peer address is registered there by its own agent, and not before it answers there.
// Method: three agents with real etcd on loopback; one configuration is rewritten with another peer port.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { command } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import type { FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { freePort } from '../support/ports.ts';

for (const binary of storyVersions()) {
  describe(`etcd ${binary.version}`, () => {
    test('another peer URL is registered once etcd answers there', { timeout: 180_000 }, async ({ fleet: make }) => {
      const fleet = await make({ binary });
      const [n1, , n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
      for (const node of fleet.nodes) node.writeRole({ role: 'consensus-member', grantId: 'first' });
      const before = await n3.memberId();
      const moved = `http://127.0.0.1:${await freePort()}`;
      writeFileSync(n3.configFile, readFileSync(n3.configFile, 'utf8').replaceAll(n3.peerUrl, moved));
      await n3.endAgent('SIGTERM');
      await n3.startAgent();
      // etcd still listens at the old address: nothing is registered, and `why` says what helps.
      await n3.until(
        ({ plan }) => plan.because.includes(`our etcd does not answer at ${moved}`),
        'it waits for etcd',
        30_000,
      );
      expect((await n1.status()).cluster?.members.flatMap(({ peerUrls }) => peerUrls)).toContain(n3.peerUrl);
      expect(await command(n3, 'stop')).toMatchObject({ code: 0 });
      expect(await command(n3, 'start')).toMatchObject({ code: 0 });
      await n1.until(
        ({ cluster }) => cluster?.members.some(({ peerUrls }) => peerUrls.includes(moved)) === true,
        'the new address is registered',
        60_000,
      );
      await n3.until(({ plan, process }) => process.phase === 'ready' && plan.kind === 'converged', 'it has converged');
      expect(await n3.memberId()).toBe(before);
    });
  });
}
