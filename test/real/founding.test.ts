// Goal: a cluster is founded once and by command only; a founder that is killed at any moment goes on; whoever lost data or
// state never founds again; two clusters never become one by accident.
// Method: agents with real etcd on loopback; agent and etcd are killed while the founding goes on; disks are wiped by hand.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished } from 'vitest';
import { metadata, segment, snapshot } from '../etcd/wal-writer.ts';
import { command } from '../support/command.ts';
import { storyVersions } from '../support/etcd-binaries.ts';
import { waitForShareMs } from '../support/etcd-budget.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import { type Fleet, type FleetNode, killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';

/** How often each moment is tried at random besides the named ones. */
const randomMoments = process.env['ETCD_TEST_VERSIONS'] === 'all' ? 10 : 2;

for (const binary of storyVersions()) {
  describe(`founding on etcd ${binary.version}`, () => {
    test('one founder; found again is refused with exit code 4 and says why', { timeout: waitForShareMs }, async ({
      fleet: make,
      receiver,
      share,
    }) => {
      await share(1);
      const fleet = await make({ founded: false, size: 1, binary, webhookUrl: receiver.url });
      const node = fleet.node('n1');
      await node.startAgent();
      const dry = await command(node, 'found', '--dry-run');
      expect(dry).toMatchObject({ code: 0 });
      expect(foundingState(node)).toBe('none');
      const ordered = await command(node, 'found');
      expect(ordered).toMatchObject({ code: 0 });
      await founded(node);
      const again = await command(node, 'found');
      expect(again.code).toBe(4);
      expect(again.stderr).toMatch(/refused: this node founded cluster [0-9a-f]+ already/);
      expect((await command(node, 'found', 'prepare')).code).toBe(4);
      const told = await eventually(() => receiver.events.find(({ type }) => type.endsWith('cluster.founded')));
      expect(told.data).toMatchObject({ clusterId: (await node.status()).member?.clusterId });
      expect(node.lives()).toBe(1);
    });

    test('A06 agent, etcd or both are killed before, during and after the first commit: one cluster, one member', {
      timeout: waitForShareMs,
    }, async ({ fleet: make, receiver, share }) => {
      await share(1);
      const named = Object.keys(moments) as (keyof typeof moments)[];
      const tries = [...named, ...Array.from({ length: randomMoments }, () => 'random' as const)];
      const told: string[] = [];
      onTestFinished(() => void process.stderr.write(`founders were killed at:\n${told.join('')}`));
      const fleet = await make({ founded: false, size: 0, binary, webhookUrl: receiver.url });
      for (const [index, moment] of tries.entries()) {
        const node = await fleet.addNode(`m${index + 1}`);
        await node.startAgent();
        const ordered = await node.post<{ readonly lines: readonly string[] }>('/v1/found');
        const clusterId = /^cluster ([0-9a-f]+),/m.exec(ordered.lines.join('\n'))?.[1];
        const orderedAt = performance.now();
        const victim = (['agent', 'etcd', 'both'] as const)[index % 3] ?? 'both';
        const delayMs = Math.random() * (moment === 'random' ? 1_500 : 20);
        await (moment === 'random' ? undefined : moments[moment](node));
        await sleep(delayMs);
        told.push(await kill(node, moment === 'noRecord' ? 'both' : victim, moment, orderedAt));
        if (moment === 'noRecord') emptyLog(node);
        if (!node.agentRuns()) await node.startAgent();
        if (moment === 'random') {
          // Once more, while it recovers.
          await sleep(Math.random() * 300);
          told.push(await kill(node, 'agent', 'again', orderedAt));
          await node.startAgent();
        }
        const status = await founded(node);
        expect(status.member?.clusterId).toBe(clusterId);
        expect(status.cluster?.members).toHaveLength(1);
        expect(node.processes().filter((pid) => isEtcd(pid))).toHaveLength(1);
        const setAside = node.agentLog().includes('a log without any record was set aside');
        if (setAside) told.push('    its log had no record\n');
        if (moment === 'noRecord') expect(setAside).toBe(true);
        const events = (await node.events()).filter(({ kind }) => kind === 'cluster.founded');
        expect(events, `cluster.founded after ${moment}`).toHaveLength(1);
        await node.close();
      }
    });

    test('three founders by list in any order, one killed on the way, one late: it blocks nobody and is the same founder', {
      timeout: waitForShareMs,
    }, async ({ fleet: make, share }) => {
      await share(3);
      const fleet = await make({ founded: false, binary });
      const [n1, n2, n3] = three(fleet);
      await Promise.all(fleet.nodes.map((node) => node.startAgent()));
      const lines = await Promise.all(fleet.nodes.map((node) => node.foundPrepare()));
      // The nonce is durable: asked again, the line is the same; so it is for a new agent.
      await n3.endAgent();
      await n2.endAgent();
      await n2.startAgent();
      expect(await n2.foundPrepare()).toBe(lines[1]);
      await n2.post('/v1/found/list', { lines: [lines[2], '# any order', lines[1], lines[0]] });
      await moments.spawned(n2);
      await n2.endAgent();
      for (const pid of n2.processes()) killQuietly(pid);
      await n2.startAgent();
      await n1.post('/v1/found/list', { lines });
      await Promise.all([founded(n1), founded(n2)]);
      await etcdctl(n1, 'put', 'written', 'while n3 was away');
      const clusterId = (await n1.status()).member?.clusterId;
      await n3.startAgent();
      expect((await n3.status()).process.phase).toBe('down');
      await n3.post('/v1/found/list', { lines: [lines[1], lines[2], lines[0]] });
      const late = await founded(n3);
      expect(late.member?.clusterId).toBe(clusterId);
      expect(late.cluster?.members).toHaveLength(3);
      expect(new Set(late.cluster?.members.map(({ memberId }) => memberId)).size).toBe(3);
      expect(await etcdctl(n3, 'get', 'written', '--print-value-only')).toBe('while n3 was away\n');
      // The same order once more is no other order, and after it is done none counts.
      await expect(n3.post('/v1/found/list', { lines })).rejects.toThrow(/founded cluster .* already/);
      await disasters(fleet, lines);
    });
  });
}

describe('what never founds', () => {
  test('K21 configuration and role alone, a nonce that was left, and a second start found nothing', {
    timeout: waitForShareMs,
  }, async ({ fleet: make, share }) => {
    await share(1);
    const fleet = await make({ founded: false, size: 1 });
    const node = fleet.node('n1');
    node.writeRole({ role: 'consensus-member', grantId: 'g1', epoch: 1, generation: 1 });
    await node.startAgent();
    await node.until(({ plan }) => plan.what === 'notAMember', 'it is no member');
    await node.foundPrepare();
    await node.endAgent();
    await node.startAgent();
    await node.until(({ plan }) => plan.what === 'notAMember', 'it is still none');
    expect(existsSync(node.dataDir)).toBe(false);
    expect(node.lives()).toBe(0);
    expect(node.processes()).toEqual([]);
  });

  test('K22 data is never overwritten by found; K21 the mark of an older founding is none of a new one', {
    timeout: waitForShareMs,
  }, async ({ fleet: make, share }) => {
    await share(1);
    const fleet = await make({ founded: false, size: 1 });
    const node = fleet.node('n1');
    mkdirSync(join(node.dataDir, 'member', 'snap'), { recursive: true });
    writeFileSync(join(node.dataDir, 'member', 'snap', 'db'), 'of somebody');
    await node.startAgent();
    const refused = await command(node, 'found');
    expect(refused).toMatchObject({ code: 4 });
    expect(refused.stderr).toMatch(/data directory is not empty.*[\s\S]*Data is never overwritten/);
    expect(foundingState(node)).toBe('none');
    expect(readFileSync(join(node.dataDir, 'member', 'snap', 'db'), 'utf8')).toBe('of somebody');
    rmSync(join(node.dataDir, 'member'), { recursive: true });
    writeFileSync(join(node.dataDir, 'etcd-node-agent.founding'), `${'0'.repeat(64)}\n`);
    expect(await command(node, 'found')).toMatchObject({ code: 0 });
    await founded(node);
  });

  test('K23 two nodes that found alone at once are two clusters, and both say so; neither is merged', {
    timeout: waitForShareMs,
  }, async ({ fleet: make, receiver, share }) => {
    await share(2);
    const fleet = await make({ founded: false, size: 2, webhookUrl: receiver.url });
    const [n1, n2] = [fleet.node('n1'), fleet.node('n2')];
    await Promise.all([n1.startAgent(), n2.startAgent()]);
    const before = await Promise.all([n1.foundPrepare(), n2.foundPrepare()]);
    const alone = { alone: true };
    await Promise.all([n1.post('/v1/found', alone), n2.post('/v1/found', alone)]);
    const both = await Promise.all([founded(n1), founded(n2)]);
    const ids = both.map(({ member }) => member?.clusterId);
    expect(ids[0]).not.toBe(ids[1]);
    await receiver.until(() => receiver.events.filter(({ type }) => type.endsWith('cluster.founded')).length === 2);
    const told = receiver.events.filter(({ type }) => type.endsWith('cluster.founded'));
    expect(told.map(({ data }) => (data as { clusterId: string }).clusterId).sort()).toEqual(ids.sort());
    // A list that names both is refused on both: it comes too late.
    for (const node of [n1, n2]) {
      await expect(node.post('/v1/found/list', { lines: before })).rejects.toThrow(/founded cluster .* already/);
    }
  });
});

type Status = Awaited<ReturnType<FleetNode['status']>>;

/** The silent disasters: founders whose disk is lost. Runs on a fleet of three that was founded with `lines`. */
async function disasters(fleet: Fleet, lines: readonly string[]): Promise<void> {
  const [n1, n2, n3] = three(fleet);
  const before = (await n3.status()).member?.clusterId;

  // Data lost, state kept.
  n1.mark('n1 loses its data');
  await killAll(n1);
  rmSync(n1.dataDir, { recursive: true });
  await n1.startAgent();
  await n1.until(({ plan }) => plan.what === 'diskLost', 'its disk is lost');
  await expect(n1.post('/v1/found')).rejects.toThrow(/founded cluster .* already/);
  await expect(n1.post('/v1/found/list', { lines })).rejects.toThrow(/founded cluster .* already/);
  expect(existsSync(n1.dataDir)).toBe(false);

  // State lost, data kept: the copy beside the data knows who it is. etcd runs on, and nothing is founded.
  n2.mark('n2 loses its state');
  await killAll(n2);
  rmSync(n2.stateDir, { recursive: true });
  await n2.startAgent();
  const known = await n2.until(
    ({ supervision, process: { pid } }) => supervision.kind === 'superviseOnly' && pid !== null,
    'its etcd runs, supervised only',
  );
  expect(known.member?.clusterId).toBe(before);
  await expect(n2.post('/v1/found')).rejects.toThrow(/holds no record of this node/);
  await expect(n2.foundPrepare()).rejects.toThrow(/holds no record of this node/);

  // Both lost on both; n3 lives on, without a quorum.
  for (const node of [n1, n2]) {
    node.mark('it loses data and state');
    await killAll(node);
    rmSync(node.stateDir, { recursive: true });
    rmSync(join(node.directory, 'data'), { recursive: true });
    await node.startAgent();
    const old = await command(node, 'found', '--list', listFile(node, lines));
    expect(old).toMatchObject({ code: 4 });
    expect(old.stderr).toMatch(/has no nonce/);
  }
  const fresh = [await n1.foundPrepare(), await n2.foundPrepare(), lines[2] ?? ''];
  for (const node of [n1, n2]) {
    await expect(node.post('/v1/found/list', { lines })).rejects.toThrow(/another nonce/);
    await expect(node.post('/v1/found/list', { lines: fresh })).rejects.toThrow(
      new RegExp(`an etcd of cluster ${before} answers at ${n3.peerUrl}`),
    );
    expect(foundingState(node)).toBe('prepared');
    expect(node.processes()).toEqual([]);
  }

  // While n3 is silent it cannot be seen, and it still cannot be mixed in: another token is another cluster.
  n3.mark('n3 is away while the others found anew');
  await killAll(n3);
  for (const node of [n1, n2]) await node.post('/v1/found/list', { lines: fresh });
  const [anew] = await Promise.all([founded(n1), founded(n2)]);
  expect(anew.member?.clusterId).not.toBe(before);
  await n3.startAgent();
  await expect(n3.post('/v1/found/list', { lines: fresh })).rejects.toThrow(/founded cluster .* already/);
  const alone = await n3.until(({ process: { phase } }) => phase === 'starting', 'its etcd looks for its own cluster');
  expect(alone.member?.clusterId).toBe(before);
  await etcdctl(n1, 'put', 'anew', '1');
  expect((await n1.status()).cluster?.members.map(({ name }) => name).sort()).toEqual(['n1', 'n2', 'n3']);
}

/** Ready, and the founding is over. */
async function founded(node: FleetNode): Promise<Status> {
  await node.ready(60_000);
  await eventually(() => foundingState(node) === 'done', { what: 'the founding is done' });
  return await node.until(({ cluster }) => cluster !== null, 'it has read the list');
}

/** The moments of a founding, as they show from outside. */
const moments = {
  ordered: async () => {},
  begun: (node: FleetNode) => seen(() => foundingState(node) !== 'pending'),
  marked: (node: FleetNode) => seen(() => existsSync(join(node.dataDir, 'etcd-node-agent.founding'))),
  spawned: (node: FleetNode) => seen(() => node.processes().length > 0),
  hasDirectory: (node: FleetNode) => seen(() => existsSync(join(node.dataDir, 'member'))),
  hasLog: (node: FleetNode) => seen(() => existsSync(join(node.dataDir, 'member', 'wal', firstSegment))),
  noRecord: (node: FleetNode) => moments.hasLog(node),
  serving: (node: FleetNode) =>
    seen(() => /ready to serve client requests|serving client traffic/.test(node.etcdLog())),
  done: (node: FleetNode) => seen(() => foundingState(node) === 'done'),
} as const;

async function seen(holds: () => boolean): Promise<void> {
  await eventually(holds, { withinMs: 30_000, everyMs: 1 });
}

/** Kills, and says at which moment that was. */
async function kill(
  node: FleetNode,
  victim: 'agent' | 'etcd' | 'both',
  moment: string,
  orderedAt: number,
): Promise<string> {
  const state = foundingState(node);
  const pids = node.processes();
  if (victim !== 'etcd') await node.endAgent('SIGKILL');
  if (victim !== 'agent') for (const pid of pids) killQuietly(pid);
  const wal = existsSync(join(node.dataDir, 'member', 'wal')) ? 'with a log' : 'no log';
  const ms = Math.round(performance.now() - orderedAt);
  return `  ${moment}: ${victim} ${ms} ms after the order, founding ${state}, ${pids.length} processes, ${wal}\n`;
}

/** The log as etcd leaves it when it is killed within a few ms after making it: it names the member and has no record. */
function emptyLog(node: FleetNode): void {
  const identity = readFileSync(join(node.stateDir, 'identity'), 'utf8');
  const id = (name: string) => BigInt(`0x${new RegExp(`"${name}":"([0-9a-f]+)"`).exec(identity)?.[1]}`);
  const { bytes } = segment([metadata(id('memberId'), id('clusterId')), snapshot(0n, 0n)], 1024 * 1024);
  writeFileSync(join(node.dataDir, 'member', 'wal', firstSegment), bytes);
}

const firstSegment = '0000000000000000-0000000000000000.wal';

function foundingState(node: FleetNode): string {
  const path = join(node.stateDir, 'founding');
  if (!existsSync(path)) return 'none';
  return /"state":"(\w+)"/.exec(readFileSync(path, 'utf8'))?.[1] ?? 'unreadable';
}

function listFile(node: FleetNode, lines: readonly string[]): string {
  const path = join(node.directory, 'founders');
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

function isEtcd(pid: number): boolean {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'etcd';
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

function three(fleet: Fleet): readonly [FleetNode, FleetNode, FleetNode] {
  return [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];
}
