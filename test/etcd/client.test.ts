// Goal: what our client does where a real etcd gives no occasion: strange answers, stuck channels, a clock that jumps.
// Method: a fake etcd that speaks the same gRPC.
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Cluster } from '../../proto/gen/etcd/cluster_pb.ts';
import { KV } from '../../proto/gen/etcd/kv_pb.ts';
import { Maintenance } from '../../proto/gen/etcd/maintenance_pb.ts';
import type { Clock } from '../../src/base/clock.ts';
import { type Log, silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { deadlinesUntilStuck } from '../../src/etcd/channel.ts';
import type { EtcdClientOptions } from '../../src/etcd/client.ts';
import { RefusedUrlError } from '../../src/etcd/refused-url.ts';
import { TestClient } from '../support/etcd-client.ts';
import { FakeEtcd, FakeRefusal } from '../support/fake-etcd.ts';

const header = { clusterId: 7n, memberId: 0xffff_ffff_ffff_ffffn, revision: 12n, raftTerm: 3n };

function clientOf(etcd: FakeEtcd, more: Partial<EtcdClientOptions> = {}): TestClient {
  return new TestClient({ endpoint: etcd.endpoint, clock: systemClock, log: silentLog, ...more });
}

afterEach(() => vi.unstubAllEnvs());

describe('a linearizable member list', () => {
  const listing = () =>
    new FakeEtcd()
      .answer(KV.method.range, ({ serializable }) => (serializable ? 'never' : { header }))
      .answer(Cluster.method.memberList, () => ({ header, members: [{ id: 9n }, { id: 2n, isLearner: true }] }));

  test.each([
    [undefined, ['Range', 'MemberList']],
    ['3.4.23', ['Range', 'MemberList']],
    ['2.3.8', ['Range', 'MemberList']],
    ['nonsense', ['Range', 'MemberList']],
    ['3.5.0', ['MemberList']],
    ['3.10.1', ['MemberList']],
    ['4.0.0', ['MemberList']],
  ])('version %s: asked are %j', async (etcdVersion, asked) => {
    await using etcd = await listing().listen();
    using client = clientOf(etcd, { etcdVersion });
    const list = await client.memberList({ linearizable: true });
    expect(list).toMatchObject({ clusterId: 7n, answeredBy: 0xffff_ffff_ffff_ffffn, linearizable: true });
    expect(list.members.map(({ id }) => id)).toEqual([2n, 9n]);
    expect(etcd.asked).toEqual(asked);
    await client.memberList({ linearizable: false });
    expect(etcd.asked).toEqual([...asked, 'MemberList']);
  });

  test('a list that another member answers than the read before it is refused', async () => {
    await using etcd = await new FakeEtcd()
      .answer(KV.method.range, () => ({ header: { ...header, memberId: 8n } }))
      .answer(Cluster.method.memberList, () => ({ header, members: [{ id: 9n }] }))
      .listen();
    using client = clientOf(etcd);
    await expect(client.memberList({ linearizable: true })).rejects.toMatchObject({
      grpcCodeName: 'INTERNAL',
      details: 'the read before it was answered by another member',
    });
  });

  test('read and list share one deadline', async () => {
    await using etcd = await new FakeEtcd()
      .answer(KV.method.range, () => ({ header }))
      .answer(Cluster.method.memberList, () => 'never')
      .listen();
    using client = clientOf(etcd);
    const before = performance.now();
    await expect(client.memberList({ linearizable: true, deadlineMs: 400 })).rejects.toMatchObject({
      grpcCodeName: 'DEADLINE_EXCEEDED',
      call: 'MemberList',
    });
    expect(performance.now() - before).toBeLessThan(800);
  });
});

describe('calls', () => {
  test('an answer that names no member is not taken for one of etcd', async () => {
    await using etcd = await new FakeEtcd()
      .answer(KV.method.range, () => ({}))
      .answer(Maintenance.method.status, () => ({ header: { ...header, clusterId: 0n } }))
      .listen();
    using client = clientOf(etcd);
    await expect(client.serializableRead()).rejects.toMatchObject({ grpcCodeName: 'INTERNAL', call: 'Range' });
    await expect(client.status()).rejects.toMatchObject({ grpcCodeName: 'INTERNAL', call: 'Status' });
  });

  test('an error says what was called, where, and in whose words it failed', async () => {
    await using etcd = await new FakeEtcd()
      .answer(Cluster.method.memberRemove, () => new FakeRefusal(status.NOT_FOUND, 'etcdserver: member not found'))
      .listen();
    using client = clientOf(etcd);
    await expect(client.removeMember(1n)).rejects.toMatchObject({
      code: 'ETCD_CALL',
      grpcCode: status.NOT_FOUND,
      details: 'etcdserver: member not found',
      endpoint: etcd.endpoint,
      message: `MemberRemove at ${etcd.endpoint}: NOT_FOUND: etcdserver: member not found`,
    });
  });

  test('A12 a wall clock that is set back during a call does not keep it beyond its deadline', async () => {
    await using etcd = await new FakeEtcd().answer(KV.method.range, () => 'never').listen();
    const clock: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + 3_600_000 };
    using client = clientOf(etcd, { clock });
    const before = performance.now();
    await expect(client.serializableRead({ deadlineMs: 100 })).rejects.toMatchObject({
      grpcCodeName: 'DEADLINE_EXCEEDED',
      details: 'no answer within 100 ms',
    });
    expect(performance.now() - before).toBeLessThan(2_000);
  });

  test('a channel on which every call runs out of time is dialled anew, and one answer starts the count again', async () => {
    let silent = true;
    await using etcd = await new FakeEtcd().answer(KV.method.range, () => (silent ? 'never' : { header })).listen();
    const said: string[] = [];
    const log: Log = { ...silentLog, info: (_fields, message) => said.push(message) };
    using client = clientOf(etcd, { log });
    const late = () => expect(client.serializableRead({ deadlineMs: 50 })).rejects.toMatchObject({ grpcCode: 4 });
    for (let calls = 1; calls < deadlinesUntilStuck; calls++) await late();
    silent = false;
    await client.serializableRead();
    silent = true;
    for (let calls = 1; calls < deadlinesUntilStuck; calls++) await late();
    expect(said).toEqual([]);
    await late();
    expect(said).toEqual(['calls keep running out of time: dialling anew']);
    silent = false;
    await client.serializableRead();
  });

  test('a proxy that the environment names is not used', async () => {
    await using etcd = await new FakeEtcd().answer(KV.method.range, () => ({ header })).listen();
    for (const name of ['grpc_proxy', 'https_proxy', 'http_proxy']) vi.stubEnv(name, 'http://127.0.0.1:1');
    for (const name of ['no_grpc_proxy', 'no_proxy']) vi.stubEnv(name, undefined);
    using client = clientOf(etcd);
    expect(await client.serializableRead()).toEqual(header);
  });

  test('X13 a client of a crafted address is never made', () => {
    const of = (endpoint: string) => new TestClient({ endpoint, clock: systemClock, log: silentLog });
    expect(() => of('http://169.254.169.254:80')).toThrow(RefusedUrlError);
    expect(() => of('unix:///run/x.sock')).toThrow(RefusedUrlError);
  });

  test('https without TLS files fails before any dial', async () => {
    using client = new TestClient({ endpoint: 'https://127.0.0.1:1', clock: systemClock, log: silentLog });
    await expect(client.status()).rejects.toMatchObject({
      grpcCodeName: 'FAILED_PRECONDITION',
      details: 'the address is https and no TLS files are configured',
    });
  });
});
