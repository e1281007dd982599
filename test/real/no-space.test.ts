// Goal: with a full database (NOSPACE) the change record cannot be written: every change is refused with that as the reason, and one
// whose risk was accepted for this very member list goes on etcd's own checks.
// Method: three agents with real etcd and a small quota, filled by etcdctl until etcd raises its alarm.
import { describe, expect } from 'vitest';
import { command } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import { type FleetNode, killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';

for (const binary of storyVersions()) {
  describe(`a full database on etcd ${binary.version}`, () => {
    test('no member leaves or is evicted but by --without-record', { timeout: 180_000 }, async ({ fleet: make }) => {
      const fleet = await make({ binary, size: 4, etcdYaml: ['flags: {quota-backend-bytes: 4194304}'] });
      const [n1, n2, , n4] = fleet.nodes as [FleetNode, FleetNode, FleetNode, FleetNode];
      for (const node of fleet.nodes) node.writeRole({ role: 'consensus-member', grantId: 'first' });
      await fill(n1);

      const refusal = /the change record cannot be written: .*reached its quota/;
      expect(await command(n4, 'leave')).toMatchObject({ code: 0 });
      const why = async () => (await command(n4, 'why')).stdout;
      await eventually(async () => refusal.test(await why()), { what: 'the reason is told' });
      expect(await why()).toContain('--without-record');
      expect((await n1.status()).cluster?.members).toHaveLength(4);
      expect(await command(n4, 'leave', '--without-record')).toMatchObject({ code: 0 });
      await n4.until(
        ({ process, plan }) => process.intent === 'removed' && process.phase === 'down' && plan.kind === 'converged',
        'it has left',
        40_000,
      );
      await n1.until(({ cluster }) => cluster?.members.length === 3, 'three are left');

      // A dead one is taken out by another.
      const dead = (await n2.memberId()).toString(16);
      await killAll(n2);
      const evict = async (...flags: readonly string[]) => {
        return await command(n1, 'members', 'evict', dead, '--accept-zero-tolerance', ...flags);
      };
      await eventually(async () => refusal.test((await evict()).stderr), { withinMs: 30_000, what: 'it is refused' });
      await eventually(async () => (await evict('--without-record')).code === 0, { withinMs: 30_000 });
      await n1.until(({ cluster }) => cluster?.members.length === 2, 'two are left');
    });
  });
}

/** Until etcd takes no more. */
async function fill(node: FleetNode): Promise<void> {
  const value = 'x'.repeat(100_000);
  await eventually(
    async () => {
      const full = await etcdctl(node, 'put', `filler/${Math.random()}`, value).then(() => false, String);
      if (full === false) throw new Error('there is still space');
      expect(full).toContain('database space exceeded');
      return true;
    },
    { withinMs: 60_000, everyMs: 0, what: 'the database is full' },
  );
}
