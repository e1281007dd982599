// Goal: a removal that happens while the agent, etcd, both, or the way to the others is away is known as soon as it can be, is never
// guessed, and leads to no start that could be avoided.
// Method: three agents; the victim's agent and etcd are ended or frozen by signals, the way of its agent to the others is cut by
// proxies in front of their client ports (peer ports work on).
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { fullRun, storyVersions } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { withClient } from '../support/hammer.ts';
import { removeMember } from '../support/remove-member.ts';
import { archivesOf, eventsOf, expectRemoved, reportedEnd, tombstonesOf } from '../support/removed.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';

/** How many times the agent is killed around one removal, at most. */
const maxKills = 12;

describe.each(storyVersions())('etcd $version', (binary) => {
  const say = (text: string) => process.stderr.write(`etcd ${binary.version}: ${text}\n`);

  test('C10 removed while frozen; then another one while its agent is dead', { timeout: 180_000 }, async ({
    fleet: make,
    receiver,
  }) => {
    const fleet = await make({ binary, webhookUrl: receiver.url });
    const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];

    const frozen = await n3.etcdPid();
    process.kill(frozen, 'SIGSTOP');
    await removeMember(n1.directUrl, await n3.memberId());
    process.kill(frozen, 'SIGCONT');
    await verdict(n3);
    expect((await reportedEnd(receiver, n3)).end.class).toBe('removed');
    await expectRemoved(fleet, n3, receiver, { exit: { class: 'removed' } });

    const id = await n2.memberId();
    await n2.endAgent('SIGKILL');
    await removeMember(n1.directUrl, id);
    await eventually(() => n2.processes().length === 0, { what: 'the end of the removed etcd' });
    await n2.startAgent();
    await verdict(n2);
    const { end } = await reportedEnd(receiver, n2);
    say(`without an agent, the removed etcd ended with ${end.code ?? end.signal}`);
    expect(end).toMatchObject({ class: 'removed', signal: null });
    await expectRemoved(fleet, n2, receiver, { exit: { class: 'removed' } });
  });

  test('I11 removed while agent and etcd are down, with peers that answer: no start at all; A04 then its agent is killed at many moments of a removal', {
    timeout: 240_000,
  }, async ({ fleet: make, receiver }) => {
    const fleet = await make({ binary, webhookUrl: receiver.url });
    const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];

    await removeWhileDown(n3, n1);
    await n3.startAgent();
    await expectRemoved(fleet, n3, receiver);

    const id = await n2.memberId();
    await removeMember(n1.directUrl, id);
    const moments: string[] = [];
    // The first agent lives already and dies around the call; each next one as soon as it has brought the removal a step further.
    for (let kill = 0; kill < maxKills && !onDisk(n2).includes('archived'); kill++) {
      const startedAt = performance.now();
      const before = onDisk(n2);
      if (kill === 0) await sleep(Math.random() * 300);
      else await eventually(() => onDisk(n2) !== before, { withinMs: 30_000, everyMs: 1, what: 'a step further' });
      await sleep(Math.random() * 15);
      await n2.endAgent('SIGKILL');
      moments.push(`${Math.round(performance.now() - startedAt)} ms: ${onDisk(n2)}`);
      await n2.startAgent({ listening: false });
    }
    expect(moments.length).toBeGreaterThan(1);
    say(`the agent was killed at\n  ${moments.join('\n  ')}`);
    await eventually(() => n2.status());
    await expectRemoved(fleet, n2, receiver, { exit: { class: 'removed' } });
  });

  test.runIf(fullRun)(
    'removed while down, with peers silent to the agent only: one start, and the verdict follows once they answer',
    {
      timeout: 180_000,
    },
    async ({ fleet: make, receiver }) => {
      const fleet = await make({ binary, webhookUrl: receiver.url, proxied: true });
      const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];
      await removeWhileDown(n3, n1);
      for (const node of [n1, n2]) await node.proxy?.refuse();
      await n3.startAgent();
      await n3.until(
        ({ process: { lastExit } }) => lastExit?.life === 2 && lastExit.class === 'removalUnconfirmed',
        'its second life has ended, without a verdict',
      );
      const { end } = await reportedEnd(receiver, n3, 2);
      await expectNoVerdict(n3, receiver);
      expect(n3.lives()).toBe(2);

      for (const node of [n1, n2]) await node.proxy?.accept();
      const answeringAt = await listsOfAll([n1, n2]);
      await verdict(n3);
      const ms = Math.round(performance.now() - answeringAt);
      say(
        `started once on removed data it ended with ${end.code ?? end.signal}; verdict ${ms} ms after the lists came`,
      );
      expect(ms).toBeLessThan(5_000);
      await expectRemoved(fleet, n3, receiver, { lives: 2, exit: { class: 'removed' } });
    },
  );

  test.runIf(fullRun)(
    'removed while down, with everybody silent: no verdict, then one within 5 s of a majority of lists',
    {
      timeout: 240_000,
    },
    async ({ fleet: make, receiver }) => {
      const fleet = await make({ binary, webhookUrl: receiver.url });
      const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];
      await removeWhileDown(n3, n1);
      // The others must know the new list, or they would wait for the removed member as well.
      for (const node of [n1, n2]) await node.until(({ cluster }) => cluster?.voters === 2, 'it knows two voters');
      for (const node of [n1, n2]) await endBoth(node);

      await n3.startAgent();
      await n3.until(({ process: { phase } }) => phase === 'starting', 'its etcd is started');
      // etcd's own word that it has waited for the others for 7 s.
      await eventually(() => /failed to publish local member/.test(n3.etcdLog()), { withinMs: 40_000 });
      await expectNoVerdict(n3, receiver);

      await Promise.all([n1.startAgent(), n2.startAgent()]);
      const answeringAt = await listsOfAll([n1, n2]);
      await verdict(n3);
      const ms = Math.round(performance.now() - answeringAt);
      say(`all silent: verdict ${ms} ms after a majority of lists`);
      expect(ms).toBeLessThan(5_000);
      await expectRemoved(fleet, n3, receiver, { lives: 2 });
    },
  );
});

/** Kills agent and etcd of `victim`, then removes its member. */
async function removeWhileDown(victim: FleetNode, through: FleetNode): Promise<void> {
  const id = await victim.memberId();
  await endBoth(victim);
  await removeMember(through.directUrl, id);
}

async function endBoth(node: FleetNode): Promise<void> {
  const pid = await node.etcdPid();
  await node.endAgent('SIGKILL');
  process.kill(pid, 'SIGKILL');
  await eventually(() => node.processes().length === 0, { what: `the end of the etcd of ${node.name}` });
}

async function verdict(node: FleetNode): Promise<void> {
  await node.until(({ process: { intent } }) => intent === 'removed', 'it knows that it was removed', 40_000);
}

/** Nothing was reported, recorded or moved. */
async function expectNoVerdict(node: FleetNode, receiver: WebhookReceiver): Promise<void> {
  expect((await node.status()).process.intent).toBe('run');
  expect(eventsOf(receiver, node, 'member.removed').filter(({ data }) => data['self'] === true)).toEqual([]);
  expect(tombstonesOf(node)).toEqual([]);
  expect(archivesOf(node)).toEqual([]);
}

/** Resolves once each of them gives a list that a quorum confirms, with the moment (performance.now()). */
async function listsOfAll(nodes: readonly FleetNode[]): Promise<number> {
  for (const node of nodes) {
    await eventually(
      () => withClient(node.clientUrl, (client) => client.memberList({ linearizable: true, deadlineMs: 2_000 })),
      { withinMs: 60_000, everyMs: 50, what: `a list of ${node.name}` },
    );
  }
  return performance.now();
}

/** How far the removal had come, as a killed agent left it: each word is one file. */
function onDisk(node: FleetNode): string {
  const [stone] = tombstonesOf(node);
  const has = (file: string, text: string) => {
    const path = join(node.stateDir, file);
    return existsSync(path) && readFileSync(path, 'utf8').includes(text);
  };
  const steps: readonly (readonly [string, boolean])[] = [
    ['judged', has('ends', '"class":"removed"')],
    ['tombstone', stone !== undefined],
    ['intent', has('run-intent', '"intent":"removed"')],
    ['archive begun', archivesOf(node).length > 0],
    ['moved', !existsSync(node.dataDir)],
    ['archived', stone !== undefined && stone['archive'] !== ''],
  ];
  return steps.flatMap(([name, done]) => (done ? [name] : [])).join(', ') || 'nothing yet';
}
