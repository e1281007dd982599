// Goal: the runbook's own commands bring a cluster back that has lost its quorum for good, and the agent goes on with it.
// Method: the commands are taken out of docs/runbook.md and run on real etcd; only addresses, paths and ids are replaced.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { fullRun, storyVersions } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import { type FleetNode, killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { commandsOf, runCommands } from '../support/runbook.ts';

for (const binary of storyVersions()) {
  describe(`the runbook on etcd ${binary.version}`, () => {
    test.runIf(fullRun)(
      'a lost quorum: the survivor serves with all data, the agent has it again, and a lost node comes back from scratch',
      {
        timeout: 300_000,
      },
      async ({ fleet: make }) => {
        const fleet = await make({ binary });
        const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];
        for (let number = 1; number <= 20; number++) await etcdctl(n1, 'put', `key${number}`, `value ${number}`);
        const before = await n1.status();
        for (const node of [n2, n3]) {
          await killAll(node);
          rmSync(join(node.directory, 'data'), { recursive: true });
        }
        await expect(n1.post('/v1/stop')).rejects.toThrow(/no quorum \(2 of 3 voters\) answers/);

        const survivor = { '/srv/etcd/default/n1': n1.memberDir, 'https://10.0.0.1:2379': n1.clientUrl };
        const said = await runCommands(n1, commandsOf('a lost quorum', 'survivor'), survivor);
        expect(said).toContain('key1');
        const after = await n1.until(({ cluster }) => cluster?.members.length === 1, 'it is a cluster of its own');
        expect(after.member).toMatchObject({ clusterId: before.member?.clusterId, memberId: before.member?.memberId });
        await expectAllData(n1);
        const removed = (await n1.events()).filter(({ kind }) => kind === 'member.removed');
        expect(removed.map(({ data }) => data['self'])).toEqual([false, false]);
        // The agent supervises it as before.
        const pid = await n1.etcdPid();
        process.kill(pid, 'SIGKILL');
        await n1.until(({ process: etcd }) => etcd.phase === 'ready' && etcd.pid !== pid, 'etcd was restarted');
        await expectAllData(n1);

        // n2 has a new, empty disk. Nothing is done by itself.
        await n2.startAgent();
        await n2.until(({ plan }) => plan.what === 'volumeMissing', 'its volume is missing');
        await runCommands(n2, commandsOf('the data volume is missing', 'volume'), {
          '/var/lib/etcd-node-agent': n2.stateDir,
        });
        await n2.until(({ plan }) => plan.what === 'diskLost', 'its disk is lost');
        await bringBack(n1, n2);
        expect(await etcdctl(n2, 'get', 'key20', '--print-value-only')).toBe('value 20\n');
        const both = await n2.until(({ member }) => member?.learner === false, 'it has a vote');
        expect(both.member?.clusterId).toBe(before.member?.clusterId);
        await n1.until(({ cluster }) => cluster?.voters === 2, 'the survivor knows it');
        await killAll(n2);
        await n2.startAgent();
        await n2.ready(60_000);

        await readableAgain(n1);
      },
    );
  });
}

/** The chapter "a member from scratch", on both sides. */
async function bringBack(survivor: FleetNode, node: FleetNode): Promise<void> {
  const chapter = 'a member from scratch';
  const [add = '', promote = ''] = commandsOf(chapter, 'survivor').split(/^(?=LEARNER=)/m);
  const added = await eventually(() => runCommands(survivor, add, { 'https://10.0.0.2:2380': node.peerUrl }), {
    withinMs: 60_000,
    everyMs: 500,
  });
  const [, learner = '', clusterId = ''] = /Member +([0-9a-f]+) added .*cluster +([0-9a-f]+)/.exec(added) ?? [];
  const initialCluster = /ETCD_INITIAL_CLUSTER="([^"]+)"/.exec(added)?.[1] ?? '';
  await runCommands(node, commandsOf(chapter, 'returning'), {
    'n2=https://10.0.0.2:2380,n1=https://10.0.0.1:2380': initialCluster,
    '/srv/etcd/default/n2': node.memberDir,
    '/usr/bin/etcd': node.binary.etcd,
    'https://10.0.0.2:2380': node.peerUrl,
    'https://10.0.0.2:2379': node.clientUrl,
    '1234abcd': clusterId,
  });
  await runCommands(survivor, promote, { abcd1234: learner });
}

async function expectAllData(node: FleetNode): Promise<void> {
  const values = (await etcdctl(node, 'get', 'key', '--prefix', '--print-value-only')).trim().split('\n');
  const wanted = Array.from({ length: 20 }, (_, index) => `value ${index + 1}`);
  expect(values.sort()).toEqual(wanted.sort());
}

/** The chapter "state that cannot be read": etcd is restarted without the record, and the twin takes its place. */
async function readableAgain(node: FleetNode): Promise<void> {
  const path = join(node.stateDir, 'identity');
  const whole = readFileSync(path);
  writeFileSync(path, whole.subarray(0, whole.length / 2));
  const pid = await node.etcdPid();
  process.kill(pid, 'SIGKILL');
  const limited = await node.until(
    ({ process: etcd, supervision }) =>
      supervision.kind === 'superviseOnly' && etcd.phase === 'ready' && etcd.pid !== pid,
    'etcd was restarted from the twin of the identity',
    60_000,
  );
  expect(limited.plan.hint).toContain('"state that cannot be read"');
  await runCommands(node, commandsOf('state that cannot be read', 'identity'), {
    '/var/lib/etcd-node-agent': node.stateDir,
    '/srv/etcd/default/n1': node.memberDir,
  });
  await node.until(({ supervision }) => supervision.kind === 'full', 'all records can be read');
}
