// Goal: of the curators of a cluster one acts at a time: it follows the leadership of the raft, it stops before its lease can be over, what
// it believes wrongly etcd refuses, and on an etcd that was put back from a copy it changes nothing.
// Method: a curator's election and store on each member of a real cluster; members are frozen, leadership is moved, data is put back from a copy.
import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { systemBootClock } from '../../src/base/boot-clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { HighWaterFile } from '../../src/curator/high-water-file.ts';
import { curatorPrefix } from '../../src/curator/keys.ts';
import { CuratorLeader, type Fence } from '../../src/curator/leader.ts';
import { CuratorStore } from '../../src/curator/store.ts';
import { etcdMetricsOf } from '../../src/etcd/metrics.ts';
import { newestBinary } from '../support/etcd-binaries.ts';
import { clientOf, leaderAndFollowers } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { type RealCluster, type RealEtcd, test } from '../support/real-etcd.ts';

const key = `${curatorPrefix}test`;

for (const binary of [newestBinary()]) {
  describe(`etcd ${binary.version}`, () => {
    test('16 19 47 one curator leads, beside the raft leader, and follows it', { timeout: 120_000 }, async ({
      etcd,
    }) => {
      const cluster = await etcd({ binary, size: 3 });
      const curators = cluster.members.map((member) => curatorOn(cluster, member));
      const { leader } = await leaderAndFollowers(cluster);
      const first = await leads(curators, leader.name);
      for (const one of curators) await eventually(() => one.election.leader?.nodeId === leader.name);
      expect(curators.filter(({ led }) => led.length > 0)).toEqual([first]);
      expect(await first.store.commit(writing('1', 0n))).toMatchObject({ kind: 'committed' });
      expect(await first.store.commit(writing('2', 0n))).toEqual({ kind: 'conflict' });

      const from = performance.now();
      const target = cluster.members.find((member) => member !== leader) ?? expect.fail('three members');
      using client = clientOf(cluster, leader);
      await client.moveLeader(await idOf(cluster, target));
      const second = await leads(curators, target.name);
      process.stderr.write(`the curator followed the raft leader after ${Math.round(performance.now() - from)} ms\n`);
      expect(first.stopped.at(-1)).toMatch(/leads the raft/);
      await expect(first.store.commit(writing('3', 0n))).rejects.toThrow('does not lead');
      // What it believes besides makes no difference: etcd compares.
      const stale = staleStore(leader, first.led[0]);
      await expect(stale.commit(writing('4', 0n))).rejects.toThrow('another curator leads by now');
      const { keys } = await second.store.list(key);
      expect(keys).toMatchObject([{ key, value: '1' }]);
    });

    test('16 a leader whose etcd is frozen acts no longer than its lease allows, and another one takes over', {
      timeout: 120_000,
    }, async ({ etcd }) => {
      const cluster = await etcd({ binary, size: 3 });
      const curators = cluster.members.map((member) => curatorOn(cluster, member));
      const { leader } = await leaderAndFollowers(cluster);
      const first = await leads(curators, leader.name);
      leader.signal('SIGSTOP');
      const from = performance.now();
      await eventually(() => first.stopped.length > 0, { withinMs: 15_000, what: 'it stops' });
      const stoppedMs = performance.now() - from;
      expect(() => first.election.fence()).toThrow('does not lead');
      const next = await eventually(() => curators.find((one) => one !== first && one.led.length > 0), {
        withinMs: 30_000,
        what: 'another one leads',
      });
      const tookOverMs = performance.now() - from;
      process.stderr.write(
        `a frozen etcd: its curator stopped after ${Math.round(stoppedMs)} ms, another led after ${Math.round(tookOverMs)} ms\n`,
      );
      expect(stoppedMs).toBeLessThan(8_000);
      expect(tookOverMs).toBeGreaterThan(stoppedMs);
      expect(await next.store.commit(writing('1', 0n))).toMatchObject({ kind: 'committed' });
      leader.signal('SIGCONT');
      // It comes back as one that follows; its writes of before are refused.
      const stale = staleStore(leader, first.led[0]);
      await eventually(async () => {
        await expect(stale.commit(writing('2', 0n))).rejects.toThrow('another curator leads by now');
        return true;
      });
      await eventually(() => first.election.leader?.nodeId === next.member.name);
      expect(first.led).toHaveLength(1);
    });

    test('16 a curator that knows more than its etcd changes nothing, also after a restart', {
      timeout: 120_000,
    }, async ({ etcd }) => {
      const cluster = await etcd({ binary });
      const [member] = cluster.members as [RealEtcd];
      const copy = join(cluster.directory, 'copy');
      await member.stop();
      cpSync(member.dataDir, copy, { recursive: true });
      member.restart();
      await member.ready();
      const first = curatorOn(cluster, member);
      await leads([first], member.name);
      for (let round = 0; round < 20; round++) await member.etcdctl('put', 'later', String(round));
      await eventually(() => (first.election.highWater?.revision ?? 0n) >= 20n);
      await first.end();
      await member.stop();
      rmSync(member.dataDir, { recursive: true });
      renameSync(copy, member.dataDir);
      member.restart();
      await member.ready();
      const again = curatorOn(cluster, member, first.directory);
      await eventually(() => again.election.readOnly !== '', { what: 'it is read-only' });
      expect(again.election.readOnly).toMatch(/etcd is at revision \d+, and was at \d+ before|etcd is in term/);
      expect(again.led).toEqual([]);
      await again.end();
      const third = curatorOn(cluster, member, first.directory);
      expect(third.election.readOnly).toBe(again.election.readOnly);
    });
  });
}

interface TestCurator {
  readonly member: RealEtcd;
  readonly election: CuratorLeader;
  readonly store: CuratorStore;
  readonly directory: string;
  /** Every time that it came to lead. */
  readonly led: readonly Fence[];
  /** Why it led no more, each time. */
  readonly stopped: readonly string[];
  end(): Promise<void>;
}

function curatorOn(cluster: RealCluster, member: RealEtcd, known?: string): TestCurator {
  const directory = known ?? mkdtempSync(join(tmpdir(), 'curator-'));
  const client = clientOf(cluster, member);
  const led: Fence[] = [];
  const stopped: string[] = [];
  const election = new CuratorLeader({
    nodeId: member.name,
    address: `${member.name}:1`,
    keys: client.keys,
    leases: client.leases,
    raftLeader: async () => etcdMetricsOf((await member.get(`${member.metricsUrl}/metrics`)).body).isLeader,
    noSpace: async () => (await client.alarms()).some(({ alarm }) => alarm === 'NOSPACE'),
    memory: new HighWaterFile(realDisk, join(directory, 'high-water')),
    clock: systemClock,
    bootClock: systemBootClock,
    random: systemRandom,
    log: silentLog,
    onLead: (fence) => led.push(fence),
    onStop: (because) => stopped.push(because),
  });
  const store = new CuratorStore({
    endpoint: member.clientUrl,
    leadership: election,
    clock: systemClock,
    log: silentLog,
  });
  const ending = new AbortController();
  const running = election.run(ending.signal);
  const end = async () => {
    ending.abort();
    await running;
    store.close();
    client.close();
  };
  onTestFinished(async () => {
    if (member.isRunning()) member.signal('SIGCONT');
    await end();
    rmSync(directory, { recursive: true, force: true });
  });
  return { member, election, store, directory, led, stopped, end };
}

/** A store that believes in a fence whatever its election says. */
function staleStore(member: RealEtcd, fence: Fence | undefined): CuratorStore {
  if (fence === undefined) expect.fail('it has led');
  const leadership = { fence: () => fence, highWater: undefined, check: () => {} };
  const store = new CuratorStore({ endpoint: member.clientUrl, leadership, clock: systemClock, log: silentLog });
  onTestFinished(() => store.close());
  return store;
}

async function leads(curators: readonly TestCurator[], name: string): Promise<TestCurator> {
  return await eventually(
    () => {
      const one = curators.find(({ member }) => member.name === name);
      one?.election.fence();
      return one;
    },
    { withinMs: 30_000, what: `the curator of ${name} leads` },
  );
}

async function idOf(cluster: RealCluster, member: RealEtcd): Promise<bigint> {
  using client = clientOf(cluster, member);
  return (await client.linearizableRead()).memberId;
}

function writing(value: string, modRevision: bigint) {
  return { expect: [{ key, modRevision }], put: [{ key, value }], remove: [] };
}
