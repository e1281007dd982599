// Goal: stop, start, pause and resume do what an operator expects at night: a quorum is not stopped by accident, what is stopped
// stays stopped, leadership moves before, and the commands end with the documented codes.
// Method: three agents with real etcd, ordered about through scripts/etcd-node-agent.
import { describe, expect } from 'vitest';
import { type CommandResult, script } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { GapWriter } from '../support/gap-writer.ts';

for (const binary of storyVersions()) {
  describe(`orders on etcd ${binary.version}`, () => {
    test('a leader hands over before it stops, a quorum is not stopped without --force, and what is stopped stays stopped', {
      timeout: 300_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary });
      const leader = await fleet.leader();
      const [second, third] = fleet.nodes.filter((node) => node !== leader);
      if (second === undefined || third === undefined) throw new Error('there are three nodes');

      expect(await script(leader, 'status')).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('etcd is ready'),
      });
      const dry = await script(leader, 'stop', '--dry-run');
      expect(dry.code).toBe(0);
      expect(dry.stdout).toMatch(/3 voters \(quorum 2, 1 may fail, 3 answer now\), of which 2 would be up; it leads/);
      expect((await leader.status()).process).toMatchObject({ phase: 'ready', intent: 'run' });

      const writer = new GapWriter(second.clientUrl);
      await writer.atLeast(20);
      expectOk(await script(leader, 'stop'));
      const stopped = await leader.until(({ plan }) => plan.what === 'stoppedByOperator', 'it is stopped', 60_000);
      expect(stopped.process.lastExit).toMatchObject({ class: 'stopped' });
      await writer.atLeast(20);
      process.stderr.write(`longest gap in writes while the leader stopped: ${await writer.end()} ms\n`);
      expect(leader.agentLog()).toContain('leadership was handed over');
      const next = await fleet.leader();
      expect(next).not.toBe(leader);

      // Two of three are up: neither may go.
      for (const node of [second, third]) {
        const refused = await script(node, 'stop');
        expect(refused.code).toBe(4);
        expect(refused.stderr).toContain('it stays one of 3 voters, so 2 others must answer now and 1 does');
        expect(refused.stderr).toContain('docs/runbook.md, "a lost quorum"');
        expect((await node.status()).process).toMatchObject({ phase: 'ready', intent: 'run' });
      }

      // A27: stopped stays stopped, whoever comes back.
      await leader.endAgent('SIGKILL');
      await leader.startAgent();
      await leader.until(({ plan }) => plan.what === 'stoppedByOperator', 'a new agent leaves it stopped');
      expect(leader.lives()).toBe(1);
      expect(leader.processes()).toEqual([]);

      expectOk(await script(second, 'stop', '--force'));
      await second.until(({ plan }) => plan.what === 'stoppedByOperator', 'it is stopped by force', 60_000);
      const audited = (await second.events()).find(
        ({ kind, data }) => kind === 'operator.command' && data['command'] === 'stop',
      );
      expect(audited?.data).toMatchObject({ detail: 'forced' });
      await Promise.all([leader, second].map(async (node) => expectOk(await script(node, 'start'))));
      await Promise.all(fleet.nodes.map((node) => node.ready(60_000)));
      expect(leader.lives()).toBe(2);
    });

    test('K30 a pause survives the agent, never keeps a member from starting, and ends by a word; commands end as documented', {
      timeout: 120_000,
    }, async ({ fleet: make }) => {
      const fleet = await make({ binary, size: 1 });
      const node = fleet.node('n1');
      expectOk(await script(node, 'pause', '--reason', 'work on the rack', '--for', '1h'));
      expect((await node.status()).paused).toMatchObject({ reason: 'work on the rack' });
      await killAll(node);
      await node.startAgent();
      const status = await node.ready(60_000);
      expect(status.paused).toMatchObject({ reason: 'work on the rack' });
      expect(status.process.life).toBe(2);
      expectOk(await script(node, 'resume'));
      expect((await node.status()).paused).toBeNull();

      const alone = await script(node, 'stop');
      expectOk(alone);
      expect(alone.stdout).toContain('it is the only voter');
      await node.until(({ plan }) => plan.what === 'stoppedByOperator', 'it is stopped', 60_000);
      expect((await script(node, 'stop')).stdout).toContain('etcd does not run');
      expectOk(await script(node, 'start'));
      await node.ready(60_000);

      expect((await script(node, 'pause', '--reason', 'too long', '--for', '8d')).code).not.toBe(0);
      expect((await script(node, 'stop', '--nonsense')).code).toBe(2);
      expect((await script(node, 'confirm-removed', 'abc')).code).toBe(4);
      // The machine goes down, and then stays up after all.
      expectOk(await script(node, 'shutdown', '--dry-run'));
      expectOk(await script(node, 'shutdown'));
      await node.until(({ plan }) => plan.what === 'shuttingDown', 'it is stopped');
      await node.endAgent('SIGKILL');
      await node.startAgent();
      const waiting = await node.until(({ plan }) => plan.what === 'shuttingDown', 'a new agent does not start it');
      expect(waiting.process).toMatchObject({ phase: 'down', intent: 'run' });
      expectOk(await script(node, 'start'));
      await node.ready(60_000);

      const pid = await node.etcdPid();
      await node.endAgent('SIGTERM');
      const away = await script(node, 'stop');
      expect(away.code).toBe(5);
      expect(away.stderr).toContain('not reachable');
      expect(node.processes()).toContain(pid);
    });
  });
}

function expectOk({ code, stderr }: CommandResult): void {
  expect({ code, stderr }).toMatchObject({ code: 0 });
}
