// Goal: what we read from the log and from the data directory is what etcd itself says: ids, members, promotions, removals.
// Method: three members driven with etcdctl; one is removed, and started again with its peers up and with all of them down.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { founderClusterId, founderMemberId } from '../../src/etcd/bootstrap-ids.ts';
import { inspectDataDir } from '../../src/etcd/data-dir.ts';
import { addLine, type Evidence, emptyEvidence } from '../../src/etcd/evidence.ts';
import { classifyExit } from '../../src/etcd/exit.ts';
import { factOf, type LogFact } from '../../src/etcd/facts.ts';
import { etcdArguments, type InitialCluster } from '../../src/etcd/flags.ts';
import { atLeast } from '../../src/etcd/known-versions.ts';
import { entriesOf } from '../../src/etcd/log-assembler.ts';
import { formatId } from '../../src/etcd/member.ts';
import { EtcdProcess, freePort, type InstalledEtcd, temporaryDirectory, testedEtcds } from '../support/etcd-process.ts';

describe.each(testedEtcds())('etcd $text', (etcd) => {
  test('ids, a removal with its replay, and a promotion', async () => {
    using directory = temporaryDirectory();
    const nodes = await Promise.all(['n1', 'n2', 'n3', 'n4'].map((name) => newNode(name, directory.path)));
    const [n1, n2, n3, n4] = nodes as [Node, Node, Node, Node];
    const founders = [n1, n2, n3].map(({ name, peerUrl }) => ({ name, peerUrls: [peerUrl] }));
    const initial: InitialCluster = { state: 'new', members: founders, token: 'lab' };
    await using one = start(etcd, n1, initial);
    await using two = start(etcd, n2, initial);
    await using three = start(etcd, n3, initial);
    for (const running of [one, two, three]) await running.logged('serving client traffic');

    // ids: computed by us, told by etcd, read from the log
    const listed = memberList(etcd, n1);
    expect(listed.clusterId).toBe(founderClusterId(founders, 'lab'));
    for (const node of [n1, n2, n3]) expect(listed.ids.get(node.name)).toBe(founderMemberId([node.peerUrl], 'lab'));
    expect(evidenceOf(three)).toMatchObject({ memberId: listed.ids.get('n3'), clusterId: listed.clusterId });

    // removed while it runs
    const removedId = listed.ids.get('n3') ?? 0n;
    await eventually(() => etcdctl(etcd, n1, 'member', 'remove', formatId(removedId)));
    const exit = await three.end();
    const evidence = evidenceOf(three);
    expect(evidence.permanentlyRemoved || evidence.ownRemoval !== undefined).toBe(true);
    const verdict = classifyExit({ ...nobodyAnswered, exit, evidence, ownId: removedId, clusterId: listed.clusterId });
    expect(verdict.class).toBe(evidence.ownRemoval === undefined ? 'removalUnconfirmed' : 'removed');
    await one.logged(/"msg":"removed member".*"removed-remote-peer-id"/);
    expect(factsOf(one)).toContainEqual(expect.objectContaining({ kind: 'memberRemoved', memberId: removedId }));
    expect(evidenceOf(one).ownRemoval).toBeUndefined();

    // its data directory, offline
    const data = await inspectDataDir(n3.dataDir);
    expect(data).toMatchObject({ kind: 'member', memberId: removedId, clusterId: listed.clusterId, hasDb: true });

    // started again: told by its peers
    cpSync(n3.dataDir, `${n3.dataDir}-copy`, { recursive: true });
    await using again = start(etcd, n3, initial);
    const second = await again.end();
    expect(evidenceOf(again).permanentlyRemoved).toBe(true);
    expect(['removed', 'removalUnconfirmed']).toContain(
      classifyExit({ ...nobodyAnswered, exit: second, evidence: evidenceOf(again), ownId: removedId }).class,
    );

    // a learner joins and is promoted
    await eventually(() => etcdctl(etcd, n1, 'member', 'add', 'n4', '--learner', `--peer-urls=${n4.peerUrl}`));
    const members = [n1, n2, n4].map(({ name, peerUrl }) => ({ name, peerUrls: [peerUrl] }));
    await using four = start(etcd, n4, { state: 'existing', members, token: 'lab' });
    await four.logged('serving client traffic');
    const learnerId = memberList(etcd, n1).ids.get('n4') ?? 0n;
    await eventually(() => etcdctl(etcd, n1, 'member', 'promote', formatId(learnerId)));
    await one.logged('"msg":"promote member"');
    expect(factsOf(one)).toContainEqual(expect.objectContaining({ kind: 'memberAdded', memberId: learnerId }));
    const promotions = factsOf(one).filter(({ kind }) => kind === 'memberPromoted');
    const named = atLeast(etcd.version, '3.5.30');
    expect(promotions).toContainEqual(expect.objectContaining({ memberId: named ? learnerId : undefined }));

    // the removed one, with nobody there: its own log is the proof
    for (const running of [one, two, four]) running.signal('SIGKILL');
    for (const running of [one, two, four]) await running.ended;
    const copy = { ...n3, dataDir: `${n3.dataDir}-copy` };
    await using alone = start(etcd, copy, initial);
    const last = await Promise.race([alone.ended, sleep(5_000)]);
    // Without the line in its own log it can never know, and waits.
    expect(last !== undefined, alone.lastLines()).toBe(evidence.ownRemoval !== undefined);
    if (last === undefined) return;
    const proven = classifyExit({ ...nobodyAnswered, exit: last, evidence: evidenceOf(alone), ownId: removedId });
    expect(proven, alone.lastLines()).toMatchObject({ class: 'removed', removalProof: { kind: 'proven' } });
  });

  test('a directory with snapshots is read, and the end of its log is what Status said', async () => {
    using directory = temporaryDirectory();
    const node = await newNode('n1', directory.path);
    const initial: InitialCluster = { state: 'new', members: [{ name: 'n1', peerUrls: [node.peerUrl] }], token: 'lab' };
    await using running = start(etcd, node, initial, { 'snapshot-count': 50 });
    await running.logged('serving client traffic');
    for (let round = 0; round < 60; round++) etcdctl(etcd, node, 'put', `k${round}`, 'v');
    const status = statusOf(etcd, node);
    running.signal('SIGTERM');
    await running.ended;
    const data = await inspectDataDir(node.dataDir);
    expect(data).toMatchObject({ kind: 'member', hasSnapshots: true, hasDb: true, tornTail: false });
    if (data.kind !== 'member') throw new Error(data.kind);
    expect(data.last.index).toBeGreaterThanOrEqual(status.index);
    expect(data.last.index).toBeLessThanOrEqual(status.index + 5n);
    expect(data.term).toBe(status.term);
  });
});

const nobodyAnswered = {
  asked: { kind: 'none' as const },
  host: { freeBytes: undefined, oomKills: undefined },
  lists: [],
  lastKnownVoters: [],
  clusterId: undefined,
  ownRemovalJournalled: false,
};

interface Node {
  readonly name: string;
  readonly dataDir: string;
  readonly peerUrl: string;
  readonly clientUrl: string;
  /** One log per life. */
  readonly logs: string[];
}

async function newNode(name: string, directory: string): Promise<Node> {
  mkdirSync(join(directory, name));
  return {
    name,
    dataDir: join(directory, name, 'data'),
    peerUrl: `http://127.0.0.1:${await freePort()}`,
    clientUrl: `http://127.0.0.1:${await freePort()}`,
    logs: [],
  };
}

function start({ binary, version }: InstalledEtcd, node: Node, initial: InitialCluster, flags = {}): EtcdProcess {
  const { args, problems } = etcdArguments(
    {
      name: node.name,
      dataDir: node.dataDir,
      listenPeerUrls: [node.peerUrl],
      advertisePeerUrls: [node.peerUrl],
      listenClientUrls: [node.clientUrl],
      advertiseClientUrls: [node.clientUrl],
      listenMetricsUrls: [],
      initial,
      flags,
    },
    version,
  );
  if (problems.length > 0) throw new Error(problems.join('; '));
  const log = `${node.dataDir}.log-${node.logs.length}`;
  node.logs.push(log);
  return new EtcdProcess(binary, args, log);
}

function etcdctl({ binary }: InstalledEtcd, node: Node, ...args: readonly string[]): string {
  return execFileSync(join(dirname(binary), 'etcdctl'), ['--endpoints', node.clientUrl, ...args], {
    encoding: 'utf8',
    env: { ETCDCTL_API: '3' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 10_000,
  });
}

function memberList(etcd: InstalledEtcd, node: Node) {
  const text = etcdctl(etcd, node, 'member', 'list', '-w', 'fields');
  const clusterId = BigInt(/"ClusterID" : (\d+)/.exec(text)?.[1] ?? 0);
  const pairs = [...text.matchAll(/"ID" : (\d+)\n"Name" : "([^"]*)"/g)];
  return { clusterId, ids: new Map(pairs.map(([, id = '0', name = '']) => [name, BigInt(id)])) };
}

function statusOf(etcd: InstalledEtcd, node: Node): { readonly index: bigint; readonly term: bigint } {
  const text = etcdctl(etcd, node, 'endpoint', 'status', '-w', 'fields');
  const numberAt = (name: string) => BigInt(new RegExp(`"${name}" : (\\d+)`).exec(text)?.[1] ?? 0);
  return { index: numberAt('RaftIndex'), term: numberAt('RaftTerm') };
}

function evidenceOf(etcd: EtcdProcess): Evidence {
  return entriesOf(etcd.log().split('\n')).reduce(addLine, emptyEvidence);
}

function factsOf(etcd: EtcdProcess): readonly LogFact[] {
  return entriesOf(etcd.log().split('\n')).flatMap((entry) =>
    entry.kind === 'line' ? (factOf(entry.line) ?? []) : [],
  );
}

/** Changes are refused until all voters have been connected for 5 s, and a promotion until the learner has caught up. */
async function eventually(act: () => unknown): Promise<void> {
  const until = Date.now() + 30_000;
  for (;;) {
    try {
      act();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(200);
    }
  }
}
