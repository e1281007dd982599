// Goal: C14 a full disk, below the data or below the agent's own records, ends in slow retries and a clear word, loses no
// fact in silence, and needs nobody once there is space again.
// Method: one node whose data root, or whose state directory, is a small tmpfs that a test fills.
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { alarmOf, mayMount, quickTimings, readyAfter, signalEtcd, verdictOn } from '../support/crash-node.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';
import { type MakeFleet, test } from '../support/fleet-test.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';

describe.runIf(mayMount())('a full disk', () => {
  test('C14 below the data: class host, slow retries, the end is recorded, and it serves once there is space', {
    timeout: 180_000,
  }, async ({ fleet: make, receiver }) => {
    await using small = await nodeWithSmall('data', 260, { make, receiver });
    const { node } = small;
    const life = (await node.status()).process.life ?? 0;
    const ballast = fill(join(node.directory, 'data'));
    await writeUntilItEnds(node, life);
    const verdict = await verdictOn(node, life, 60_000);
    expect(verdict).toMatchObject({ class: 'host', life });
    expect(verdict.because).toMatch(/no space left/);
    const waits = await node.until(({ process: { nextStart } }) => nextStart !== null, 'it waits');
    expect(Date.parse(waits.process.nextStart ?? '') - Date.now()).toBeGreaterThan(20_000);
    expect(waits.process.restarts, 'it costs no budget').toBe(0);
    // An operator who is impatient: with no space for the records of a new life nothing is started, and nothing breaks.
    fill(join(node.directory, 'data'), ballast); // what its end left free
    await node.post('/v1/start');
    await node.until(({ process: { phase } }) => phase === 'down', 'it is down');
    await eventually(() => /no space left|cannot prepare|"class":"host"/i.test(node.agentLog().slice(-4_000)));
    rmSync(ballast);
    await node.post('/v1/start');
    await readyAfter(node, life, 90_000);
    await received(receiver, 'process.exited', life);
  });

  test('C14 R11 below the records: they go on from the reserve; without it etcd is looked after all the same, and all is told later', {
    timeout: 240_000,
  }, async ({ fleet: make, receiver }) => {
    await using small = await nodeWithSmall('state', 100, { make, receiver });
    const { node } = small;
    const reserve = join(node.stateDir, 'reserve');
    await eventually(() => statSync(reserve).size >= 64 * 1024 * 1024, { what: 'the reserve', withinMs: 60_000 });
    const ballast = fill(node.stateDir);
    // From the reserve.
    const first = await signalEtcd(node, 'SIGKILL');
    await readyAfter(node, first);
    await received(receiver, 'process.exited', first);
    expect((await node.status()).outbox.lastError).toBe('');
    // That space is taken as well.
    fill(node.stateDir, ballast);
    await node.post('/v1/start').catch(() => undefined); // cannot be recorded, so it may be refused
    const agentPid = node.agentPid;
    const second = await signalEtcd(node, 'SIGABRT');
    const status = await readyAfter(node, second);
    expect(status.process.lastExit).toMatchObject({ class: 'crash', life: second });
    expect(node.agentPid).toBe(agentPid);
    await node.until(({ outbox: { lastError } }) => /no space left|ENOSPC/i.test(lastError), 'the status says so');
    expect(receiver.events.some((event) => endOf(event.data) === second)).toBe(false);
    // Also a new agent looks after it.
    const pid = await node.etcdPid();
    await node.endAgent('SIGTERM');
    await node.startAgent();
    expect((await node.ready()).process.pid).toBe(pid);
    const third = await signalEtcd(node, 'SIGKILL');
    await readyAfter(node, third);
    rmSync(ballast);
    // All three, also the one that only an agent saw that is gone.
    for (const life of [first, second, third]) await received(receiver, 'process.exited', life);
    const told = receiver.events.map(({ data }) => endOf(data)).filter((life) => life !== undefined);
    expect(told).toEqual([first, second, third]);
    const back = await node.until(
      ({ outbox: { lastError, waiting } }) => lastError === '' && waiting === 0,
      'all is told',
    );
    expect(back.process.phase).toBe('ready');
    await node.until((seen) => alarmOf(seen, 'superviseOnly') === undefined, 'its records can be trusted again');
    await eventually(() => statSync(reserve).size >= 64 * 1024 * 1024, { what: 'the reserve again', withinMs: 90_000 });
    expect(receiver.forks).toEqual([]);
  });
});

/** One founded node with a small file system at `data` or `state` of its directory. Unit: MiB. */
async function nodeWithSmall(
  what: 'data' | 'state',
  mib: number,
  { make, receiver }: { readonly make: MakeFleet; readonly receiver: WebhookReceiver },
): Promise<AsyncDisposable & { readonly node: FleetNode }> {
  const fleet = await make({ size: 1, yaml: quickTimings, webhookUrl: receiver.url, founded: false });
  const node = fleet.node('n1');
  const path = join(node.directory, what);
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=0700`, 'tmpfs', path]);
  await node.startAgent();
  await fleet.found();
  await node.ready();
  return {
    node,
    async [Symbol.asyncDispose]() {
      await node.close();
      execFileSync('umount', [path]);
    },
  };
}

/** Takes all the space that is left; returns the file that has it. */
function fill(directory: string, path = join(directory, 'ballast')): string {
  writeFileSync(path, '', { flag: 'a' });
  for (let piece = 1024 * 1024; piece >= 4096; piece = Math.floor(piece / 2)) {
    try {
      for (;;) appendFileSync(path, Buffer.alloc(piece));
    } catch {
      // The next piece is smaller.
    }
  }
  const { bavail, bsize } = statfsSync(directory);
  expect(bavail * bsize).toBeLessThan(64 * 1024);
  return path;
}

/** Writes until etcd needs space that is not there. */
async function writeUntilItEnds(node: FleetNode, life: number): Promise<void> {
  const body = JSON.stringify({ key: 'a2V5', value: Buffer.alloc(500_000, 'x').toString('base64') });
  await eventually(
    async () => {
      await fetch(`${node.clientUrl}/v3/kv/put`, { method: 'POST', body, signal: AbortSignal.timeout(2_000) }).catch(
        () => undefined,
      );
      const { process: seen } = await node.status();
      return seen.lastExit !== null && seen.lastExit.life >= life;
    },
    { withinMs: 90_000, everyMs: 5, what: 'the end of etcd' },
  );
}

async function received(receiver: WebhookReceiver, kind: string, life: number): Promise<void> {
  await eventually(
    () => receiver.events.some((event) => event.type === `etcd-node-agent.${kind}` && endOf(event.data) === life),
    { withinMs: 60_000, what: `the report ${kind} of life ${life}` },
  );
}

function endOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'exit' in data && 'life' in data ? data.life : undefined;
}
