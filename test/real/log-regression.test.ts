// Goal: a voter whose disk was put back from a copy is held before etcd starts, with both numbers, by its own record or by its key alone,
// and started by an operator's word for this very member.
// Method: three agents with real etcd; the data of one is copied aside, the cluster writes on, the machine "dies", the copy is put back.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { script } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { type FleetNode, killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';

for (const binary of storyVersions()) {
  describe(`a log that went back on etcd ${binary.version}`, () => {
    test('it is held, by its own record and by its key, until the word for it starts it', {
      timeout: 240_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary, yaml: 'timing: {statusInterval: 5s, idleTurn: 2s}' });
      const leader = await fleet.leader();
      const [victim, third] = fleet.nodes.filter((node) => node !== leader);
      if (victim === undefined || third === undefined) throw new Error('there are three nodes');
      const id = (await victim.memberId()).toString(16);

      await victim.post('/v1/stop');
      const copy = join(fleet.directory, 'copy');
      cpSync(victim.dataDir, copy, { recursive: true });
      await victim.post('/v1/start');
      await victim.ready(60_000);
      for (let number = 1; number <= 40; number++) await etcdctl(leader, 'put', `key${number}`, 'value');
      await polledTwice(victim, leader);
      // An orderly stop keeps what is known; the crash after it is what people do to machines.
      await victim.post('/v1/stop');
      await victim.post('/v1/start');
      await victim.ready(60_000);
      await killAll(victim);
      rmSync(victim.dataDir, { recursive: true });
      cpSync(copy, victim.dataDir, { recursive: true });

      await victim.startAgent();
      const held = await victim.until(({ plan }) => plan.what === 'logRegressed', 'it is held', 20_000);
      expect(held.plan.because).toMatch(/its log ends at index \d+, but it had applied \d+/);
      expect(held.plan.hint).toContain(`start --accept-log-regression ${id}`);
      // Also where the state of the agent went back with the machine: the others still know.
      await victim.endAgent();
      rmSync(join(victim.stateDir, 'progress'));
      await victim.startAgent();
      await victim.until(({ plan }) => plan.what === 'logRegressed', 'it is held by its key', 20_000);
      const before = victim.lives();
      expect(victim.processes()).toEqual([]);

      expect(await script(victim, 'start')).toMatchObject({ code: 4, stderr: expect.stringContaining('older than') });
      expect((await script(victim, 'start', '--accept-log-regression', 'abc')).code).toBe(4);
      await etcdctl(leader, 'move-leader', (await third.memberId()).toString(16));
      expect(await script(victim, 'start', '--accept-log-regression', id)).toMatchObject({ code: 0 });
      await victim.ready(60_000);
      expect(victim.lives()).toBe(before + 1);
      expect(await etcdctl(victim, 'get', 'key40', '--print-value-only')).toContain('value');
      const audited = (await victim.events()).findLast(({ kind }) => kind === 'operator.command');
      expect(audited?.data).toMatchObject({
        command: 'start',
        detail: expect.stringContaining('went back and is accepted'),
      });
    });
  });
}

/** Until what is written now was seen by a poll of the victim's Status before the last one. */
async function polledTwice(victim: FleetNode, through: FleetNode): Promise<void> {
  for (let poll = 1; poll <= 2; poll++) {
    const from = BigInt((await victim.status()).member?.raftAppliedIndex ?? '0');
    await etcdctl(through, 'put', 'poll', `${poll}`);
    await victim.until(
      ({ member }) => BigInt(member?.raftAppliedIndex ?? '0') > from,
      'its Status was polled once more',
    );
  }
}
