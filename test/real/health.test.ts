// Goal: our probes tell a living etcd from a dead, a frozen, a strange and a leaderless one, and never make it panic.
// Method: real members of each version, brought into each of these states.
import { describe, expect } from 'vitest';
import { systemClock } from '../../src/base/system-clock.ts';
import { askLiveness, askReadiness, type ExpectedIdentity, type Readiness } from '../../src/etcd/health.ts';
import { askPeerMembers, askPeerVersion } from '../../src/etcd/peer-http.ts';
import { type EtcdBinary, testVersions, versionNumbers } from '../support/etcd-binaries.ts';
import { clientOf, leaderAndFollowers, type TestClient } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { type RealCluster, type RealEtcd, test } from '../support/real-etcd.ts';

describe.each(testVersions())('etcd $version', (binary) => {
  test('a member of three is alive and ready, and only one of them leads', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3, tls: true });
    const clients = cluster.members.map((member) => clientOf(cluster, member));
    const list = await clients[0]?.memberList({ linearizable: true });
    for (const member of cluster.members) expect(await live(cluster, member)).toEqual({ kind: 'alive', healthy: true });
    const { leader } = await leaderAndFollowers(cluster);
    for (const [index, member] of cluster.members.entries()) {
      const client = clients[index];
      if (client === undefined || list === undefined) expect.fail('a client and a list');
      const own = list.members.find(({ name }) => name === member.name)?.id;
      const expected = { memberId: own, clusterId: list.clusterId };
      expect(await ready(cluster, member, client, expected)).toMatchObject({
        kind: 'ready',
        memberId: own,
        clusterId: list.clusterId,
        isLearner: false,
        isLeader: member === leader,
        metrics: { memberId: own, version: binary.version, hasLeader: true },
      });
      expect(await ready(cluster, member, client, { ...expected, memberId: 1n })).toMatchObject({ kind: 'stranger' });
      expect(await ready(cluster, member, client, { clusterId: 1n })).toMatchObject({ kind: 'stranger' });
      expect(await ready(cluster, member, client, {})).toMatchObject({ kind: 'ready' });
      client.close();
    }
    const [n1, n2] = cluster.members;
    if (n1 === undefined || n2 === undefined) expect.fail('three members');
    using other = clientOf(cluster, n2);
    const mixed = await ready(cluster, n1, other, {});
    expect(mixed).toMatchObject({
      kind: 'stranger',
      because: expect.stringMatching(/the metrics at .* are those of member/),
    });
    const peerView = await askPeerMembers({ peerUrl: n1.peerUrl, tls: n1.tlsFiles, clock: systemClock });
    expect(peerView).toEqual({ clusterId: list?.clusterId, members: list?.members });
    // A leader that has not heard from all founders yet begins with a lower cluster version.
    await eventually(
      async () => {
        const version = await askPeerVersion({ peerUrl: n1.peerUrl, tls: n1.tlsFiles, clock: systemClock });
        expect(version).toEqual({ server: binary.version, cluster: clusterVersion(binary) });
        return true;
      },
      { what: 'the cluster version' },
    );
  });

  test('without a quorum it is alive and not ready; frozen it is silent', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3 });
    const [n1, ...others] = cluster.members;
    if (n1 === undefined) expect.fail('three members');
    using client = clientOf(cluster, n1);
    for (const member of others) member.signal('SIGSTOP');
    await eventually(
      async () => {
        const readiness = await ready(cluster, n1, client, {}, 1_000);
        return readiness.kind === 'notReady' && readiness.because === 'it knows no leader';
      },
      { what: 'it has noticed that there is no quorum' },
    );
    const liveness = await live(cluster, n1);
    const knowsSerializable = versionNumbers(binary.version)[1] >= 5;
    expect(liveness).toMatchObject(
      knowsSerializable ? { kind: 'alive', healthy: true } : { kind: 'alive', healthy: false },
    );
    n1.signal('SIGSTOP');
    const before = performance.now();
    expect((await live(cluster, n1, 300)).kind).toBe('silent');
    expect((await ready(cluster, n1, client, {}, 300)).kind).toBe('notReady');
    expect(performance.now() - before).toBeLessThan(3_000);
  });

  test('a founder that waits for the others is alive on its metrics side and not ready', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3, start: false });
    const n1 = cluster.member('n1');
    n1.start({ initialCluster: cluster.initialCluster(), state: 'new' });
    await eventually(async () => (await live(cluster, n1)).kind === 'alive', { what: 'the metrics side answers' });
    using client = clientOf(cluster, n1);
    expect((await ready(cluster, n1, client, {}, 1_000)).kind).toBe('notReady');
    const version = await askPeerVersion({ peerUrl: n1.peerUrl, clock: systemClock });
    expect(version).toEqual({ server: binary.version, cluster: undefined });
  });

  test('a learner is ready without a read of a quorum', async ({ etcd }) => {
    const cluster = await etcd({ binary });
    using voter = clientOf(cluster, cluster.member('n1'));
    const n2 = await cluster.prepare('n2');
    const { member } = await voter.addLearner(n2.peerUrl);
    n2.start({ initialCluster: cluster.initialCluster(), state: 'existing' });
    using client = clientOf(cluster, n2);
    await eventually(
      async () => {
        const readiness = await ready(cluster, n2, client, { memberId: member.id });
        return readiness.kind === 'ready' && readiness.isLearner && !readiness.isLeader;
      },
      { what: 'the learner is ready' },
    );
  });

  test('C31 probes back to back never make a removed member panic', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3, flags: ['--strict-reconfig-check=false'] });
    const { leader, followers } = await leaderAndFollowers(cluster);
    const [other] = followers;
    if (other === undefined) expect.fail('a follower');
    using remover = clientOf(cluster, other);
    using probing = clientOf(cluster, leader);
    const list = await remover.memberList({ linearizable: true });
    const victim = list.members.find(({ name }) => name === leader.name)?.id ?? 0n;
    let probes = 0;
    let ended = false;
    const probers = Array.from({ length: 4 }, async () => {
      while (!ended) {
        await Promise.all([live(cluster, leader, 500), ready(cluster, leader, probing, {}, 500)]);
        probes++;
      }
    });
    await eventually(() => probes > 20);
    await remover.removeMember(victim);
    expect(await leader.exited()).toEqual({ code: 0, signal: null });
    ended = true;
    await Promise.all(probers);
    expect(leader.log()).not.toContain('failed to find local ID');
  });
});

function live(cluster: RealCluster, { metricsUrl }: RealEtcd, deadlineMs?: number) {
  const deadline = deadlineMs === undefined ? {} : { deadlineMs };
  return askLiveness({ metricsUrl, tls: cluster.tls?.client, clock: systemClock, ...deadline });
}

function ready(
  cluster: RealCluster,
  { metricsUrl }: RealEtcd,
  client: TestClient,
  expected: ExpectedIdentity,
  deadlineMs = 5_000,
): Promise<Readiness> {
  return askReadiness({ metricsUrl, tls: cluster.tls?.client, clock: systemClock, client, expected, deadlineMs });
}

/** `3.5.30` → `3.5.0` */
function clusterVersion(binary: EtcdBinary): string {
  const [major, minor] = versionNumbers(binary.version);
  return `${major}.${minor}.0`;
}
