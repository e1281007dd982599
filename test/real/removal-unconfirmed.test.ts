// Goal: "permanently removed" and the list of one peer are no proof. Members that a stale third one (forced into a cluster of its own
// by somebody) tells to go keep their data and come back; an operator's word settles the question either way.
// Method: three agents; the third is stopped and its etcd started by hand with --force-new-cluster on the same ports.
import { existsSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { fullRun, storyVersions } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { RealEtcd } from '../support/real-etcd.ts';
import { archivesOf, eventsOf, expectArchived, tombstonesOf } from '../support/removed.ts';

/** Silence that allows a start, and what two starts may take on a slow machine. Unit: ms. */
const backWithinMs = 30_000 + 20_000;

describe.each(storyVersions())('etcd $version', (binary) => {
  test.runIf(fullRun)(
    'a stale member forced into a cluster of its own removes nobody; an operator decides',
    {
      timeout: 300_000,
    },
    async ({ fleet: make, receiver }) => {
      const fleet = await make({ binary, webhookUrl: receiver.url });
      const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];
      const pids = [n1.agentPid, n2.agentPid];
      await n3.post('/v1/stop', { force: false, dryRun: false });
      await n3.until(({ process: { phase } }) => phase === 'down', 'it is stopped');
      await n3.endAgent();
      await write(n1, 'acknowledged', 'before the impostor');

      const impostor = impostorOn(fleet, n3);
      try {
        impostor.start({ initialCluster: `${n3.name}=${n3.peerUrl}`, state: 'existing' });
        for (const node of [n1, n2]) await expectUnconfirmed(node);
        expect([n1.agentPid, n2.agentPid]).toEqual(pids);
        for (const node of [n1, n2]) {
          const [report] = await eventually(() => {
            const found = eventsOf(receiver, node, 'member.removalUnconfirmed');
            return found.length > 0 && found;
          });
          expect(report?.certainty).toBe('inferred');
        }

        // A wrong id changes nothing; the right one allows one start, which the impostor ends again.
        const { memberId = '' } = (await n1.status()).member ?? {};
        const wrong = (await n2.status()).member?.memberId;
        for (const command of ['confirm-removed', 'reject-removal'])
          await expect(n1.post(`/v1/${command}`, { memberId: wrong })).rejects.toThrow(/this node is member/);
        const startsBefore = n1.lives();
        await n1.post('/v1/reject-removal', { memberId });
        await n1.until(() => n1.lives() === startsBefore + 1, 'its etcd is started once more');
        await expectUnconfirmed(n1);
        expect(n1.lives()).toBe(startsBefore + 1);

        await impostor.kill();
        const stoppedAt = performance.now();
        await Promise.all([n1.ready(backWithinMs), n2.ready(backWithinMs)]);
        const backMs = Math.round(performance.now() - stoppedAt);
        process.stderr.write(
          `etcd ${binary.version}: both members serve again ${backMs} ms after the impostor's end\n`,
        );
        expect(await read(n2, 'acknowledged')).toBe('before the impostor');
        await write(n2, 'acknowledged', 'after the impostor');
        for (const node of [n1, n2]) expectUntouched(node);
        await expect(n1.post('/v1/confirm-removed', { memberId })).rejects.toThrow(/no removal is waiting/);
        expectUntouched(n1);

        impostor.restart(['--force-new-cluster']);
        for (const node of [n1, n2]) await expectUnconfirmed(node);
        await n1.post('/v1/confirm-removed', { memberId });
        await n1.until(({ plan }) => plan.what === 'removedByOthers', 'an operator has confirmed the removal');
        expectArchived(n1, memberId);
        const [removed, ...more] = await eventually(() => {
          const found = eventsOf(receiver, n1, 'member.removed').filter(({ data }) => data['self'] === true);
          return found.length > 0 && found;
        });
        expect(more).toEqual([]);
        expect(JSON.stringify(removed?.data['evidence'])).toContain('an operator confirmed it');
        await expectUnconfirmed(n2);
        expectUntouched(n2);
      } finally {
        await impostor.kill();
      }
    },
  );
});

/** Its etcd is down, it waits for proof, and nothing of it was moved or written off. */
async function expectUnconfirmed(node: FleetNode): Promise<void> {
  const status = await node.until(
    ({ plan, process: { phase, lastExit } }) =>
      phase === 'down' && lastExit?.class === 'removalUnconfirmed' && plan.what === 'removalUnconfirmed',
    'its removal is unconfirmed, and its start forbidden',
    60_000,
  );
  expect(status.alarms.map(({ alarm }) => alarm)).toContain('removalUnconfirmed');
  expectUntouched(node);
}

function expectUntouched(node: FleetNode): void {
  expect(archivesOf(node)).toEqual([]);
  expect(tombstonesOf(node)).toEqual([]);
  expect(existsSync(node.dataDir)).toBe(true);
}

/** The etcd of `node`, without an agent, as somebody starts it who has lost the others. */
function impostorOn(fleet: Fleet, node: FleetNode): RealEtcd {
  return new RealEtcd({
    name: node.name,
    binary: fleet.binary,
    directory: node.memberDir,
    clientUrl: node.clientUrl,
    peerUrl: node.peerUrl,
    metricsUrl: node.metricsUrl,
    flags: ['--force-new-cluster'],
    tls: undefined,
  });
}

async function write(node: FleetNode, key: string, value: string): Promise<void> {
  await ask(node, 'put', { key: btoa(key), value: btoa(value) });
}

async function read(node: FleetNode, key: string): Promise<string> {
  const { kvs = [] } = await ask(node, 'range', { key: btoa(key) });
  return atob(kvs[0]?.value ?? '');
}

/** etcd's JSON gateway; a new leader may be a moment away. */
async function ask(
  node: FleetNode,
  call: string,
  body: object,
): Promise<{ readonly kvs?: { readonly value: string }[] }> {
  return await eventually(async () => {
    const answer = await fetch(`${node.clientUrl}/v3/kv/${call}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as { kvs?: { value: string }[] };
  });
}
