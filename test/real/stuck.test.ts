// Goal: C03 an etcd that is alive and does nothing is told, and restarted only while the others make progress without it.
// Method: three nodes; SIGSTOP of one etcd, or of all of them.
import { describe, expect, onTestFinished } from 'vitest';
import { alarmOf, quickTimings, readyAfter, verdictOn } from '../support/crash-node.ts';
import { fullRun } from '../support/etcd-binaries.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';

describe('an etcd that is frozen', () => {
  test.runIf(fullRun)(
    'C03 with all others frozen too nothing is restarted; alone it is dumped and restarted, once an hour at most',
    {
      timeout: 240_000,
    },
    async ({ fleet: make }) => {
      const fleet = await make({ yaml: quickTimings });
      await nothingIsRestarted(fleet);
      const victim = fleet.nodes.find((node) => node.name === 'n2') ?? fleet.node('n1');
      const life = await isDumpedAndRestarted(victim);
      await isOnlyTold(victim, life);
    },
  );
});

/** Silence of everybody is no proof that one of them hangs. */
async function nothingIsRestarted(fleet: Fleet): Promise<void> {
  const before = await Promise.all(fleet.nodes.map((node) => node.etcdPid()));
  for (const pid of before) freeze(pid);
  await Promise.all(fleet.nodes.map((node) => unresponsiveFor(node, 8_000)));
  for (const pid of before) process.kill(pid, 'SIGCONT');
  await Promise.all(fleet.nodes.map((node) => responsive(node)));
  expect(await Promise.all(fleet.nodes.map((node) => node.etcdPid()))).toEqual(before);
}

async function isDumpedAndRestarted(node: FleetNode): Promise<number> {
  const { pid, life } = (await node.status()).process;
  const from = performance.now();
  freeze(pid ?? 0);
  const status = await node.until((seen) => alarmOf(seen, 'etcdUnresponsive') !== undefined, 'the alarm');
  expect(status.process.pid).toBe(pid);
  await node.until(({ process: { phase } }) => phase === 'stopping', 'it is dumped', 60_000);
  const orderedMs = performance.now() - from;
  // A process that is frozen by a signal writes its stacks only once it is thawed.
  process.kill(pid ?? 0, 'SIGCONT');
  await readyAfter(node, life ?? 0, 60_000);
  process.stderr.write(`frozen etcd: ended ${Math.round(orderedMs / 100) / 10} s after it froze\n`);
  expect(await verdictOn(node, life ?? 0)).toMatchObject({ class: 'stuck', life });
  expect(node.etcdLog(life ?? 0)).toMatch(/^goroutine \d+/m);
  const kinds = (await node.events()).map(({ kind }) => kind);
  expect(kinds).toContain('process.unresponsive');
  return (life ?? 0) + 1;
}

/** The second time within the hour: also after the agent was started anew. */
async function isOnlyTold(node: FleetNode, life: number): Promise<void> {
  await node.endAgent('SIGKILL');
  await node.startAgent();
  const { process: before } = await node.ready();
  expect(before.life).toBe(life);
  freeze(before.pid ?? 0);
  await unresponsiveFor(node, 8_000);
  const { process: after } = await node.status();
  expect(after).toMatchObject({ pid: before.pid, life, phase: 'ready' });
  process.kill(before.pid ?? 0, 'SIGCONT');
  await responsive(node);
}

function freeze(pid: number): void {
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => {
    try {
      process.kill(pid, 'SIGCONT');
    } catch {
      // It was ended meanwhile.
    }
  });
}

/** The alarm has been raised for so long, and etcd still is the same. Unit: ms. */
async function unresponsiveFor(node: FleetNode, ms: number): Promise<void> {
  const { pid } = (await node.status()).process;
  await node.until(
    ({ alarms, process: seen }) => {
      if (seen.pid !== pid) throw new Error(`${node.name} was restarted`);
      const raised = alarms.find(({ alarm }) => alarm === 'etcdUnresponsive');
      return raised !== undefined && Date.now() - Date.parse(raised.since) >= ms;
    },
    `it has been unresponsive for ${ms} ms`,
    90_000,
  );
}

async function responsive(node: FleetNode): Promise<void> {
  await node.until(
    (status) => alarmOf(status, 'etcdUnresponsive') === undefined && status.process.phase === 'ready',
    'it answers again',
    60_000,
  );
}
