// Goal: each call of our client, and each refusal that the agent decides by, is what etcd really answers.
// Method: real members of each version; one cluster for each story. Where etcd's own 5 s rule is not the point it is off.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { EtcdCallError } from '../../src/etcd/call.ts';
import { deadlinesUntilStuck } from '../../src/etcd/channel.ts';
import { TlsFileError } from '../../src/pki/tls-files.ts';
import { testVersions, versionNumbers } from '../support/etcd-binaries.ts';
import { clientOf, leaderAndFollowers } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type RealCluster, test } from '../support/real-etcd.ts';
import { TestCa, writeTlsFiles } from '../support/test-ca.ts';

const flags = ['--strict-reconfig-check=false'];

describe.each(testVersions())('etcd $version', (binary) => {
  test('a learner is added, refused while it is behind, and promoted; each refusal has its words', async ({ etcd }) => {
    // etcd's own checks stay on: without them, removing the last voter ends in a panic that every start repeats.
    const cluster = await etcd({ binary });
    const n1 = cluster.member('n1');
    using client = clientOf(cluster, n1);
    const alone = await client.memberList({ linearizable: true });
    expect(alone).toMatchObject({
      linearizable: true,
      members: [{ name: 'n1', peerUrls: [n1.peerUrl], isLearner: false }],
    });
    const own = alone.members[0]?.id ?? 0n;
    expect(alone.answeredBy).toBe(own);
    expect(await refusal(client.removeMember(own))).toMatch(/not enough started members/);
    expect(await refusal(client.addLearner(n1.peerUrl))).toBe('etcdserver: Peer URLs already exists');
    expect(await refusal(client.addLearner('http://nowhere'))).toBe('etcdserver: given member URLs are invalid');
    expect(await refusal(client.removeMember(0xdeadn))).toBe('etcdserver: member not found');
    expect(await refusal(client.promoteMember(own))).toBe('etcdserver: can only promote a learner member');

    const n2 = await cluster.prepare('n2');
    const { member, list } = await client.addLearner(n2.peerUrl);
    expect(member).toEqual({ id: member.id, name: '', peerUrls: [n2.peerUrl], clientUrls: [], isLearner: true });
    expect(list.members).toHaveLength(2);
    expect(await refusal(client.addLearner('http://127.0.0.1:9'))).toBe(
      'etcdserver: too many learner members in cluster',
    );
    expect(await refusal(client.promoteMember(member.id))).toMatch(
      /can only promote a learner member which is in sync/,
    );

    n2.start({ initialCluster: cluster.initialCluster(), state: 'existing' });
    using second = clientOf(cluster, n2);
    await eventually(() => second.serializableRead({ deadlineMs: 500 }), { what: 'the learner answers' });
    expect((await second.serializableRead()).memberId).toBe(member.id);
    expect(await refusal(second.linearizableRead())).toBe('etcdserver: rpc not supported for learner');
    expect(await second.status()).toMatchObject({ isLearner: true, leaderId: own });
    await eventually(() => client.promoteMember(member.id), { what: 'the learner is in sync' });
    await eventually(() => second.linearizableRead(), { what: 'the new voter reads' });

    const moved = `http://127.0.0.1:${await freePort()}`;
    const updated = await client.updateMember(member.id, [moved]);
    expect(updated.members.find(({ id }) => id === member.id)?.peerUrls).toEqual([moved]);
  });

  test('keys are written on a condition, and a condition that fails writes nothing', async ({ etcd }) => {
    const cluster = await etcd({ binary });
    using client = clientOf(cluster, cluster.member('n1'));
    const { keys } = client;
    expect(await keys.get('/a')).toBeUndefined();
    expect((await keys.create('/a', 'one')).applied).toBe(true);
    expect((await keys.create('/a', 'two')).applied).toBe(false);
    const first = await keys.get('/a');
    if (first === undefined) expect.fail('it was written');
    expect((await keys.replace(first, 'grün')).applied).toBe(true);
    expect((await keys.replace(first, 'late')).applied).toBe(false);
    expect((await keys.remove(first)).applied).toBe(false);
    await keys.put('/a/b', 'x');
    await keys.put('/b', 'x');
    expect((await keys.list('/a')).map(({ key, value }) => [key, value])).toEqual([
      ['/a', 'grün'],
      ['/a/b', 'x'],
    ]);
    const second = await keys.get('/a');
    if (second === undefined) expect.fail('it is there');
    expect((await keys.remove(second)).applied).toBe(true);
    expect(await keys.get('/a')).toBeUndefined();
    expect(await client.alarms()).toEqual([]);
    expect(await client.authEnabled()).toBe(versionNumbers(binary.version)[1] < 5 ? 'unknown' : false);
  });

  test('leadership moves from the leader alone, and a follower leaves', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3, flags });
    const { leader, followers } = await leaderAndFollowers(cluster);
    const [one, other] = followers;
    if (one === undefined || other === undefined) expect.fail('two followers');
    using onLeader = clientOf(cluster, leader, { etcdVersion: binary.version });
    using onFollower = clientOf(cluster, one);
    const ids = new Map((await onLeader.memberList({ linearizable: true })).members.map(({ name, id }) => [name, id]));
    const [leaderId = 0n, oneId = 0n, otherId = 0n] = [leader, one, other].map(({ name }) => ids.get(name));
    const status = await onLeader.status();
    expect(status).toMatchObject({ version: binary.version, isLearner: false, leaderId, errors: [] });
    expect(status.raftAppliedIndex).toBeGreaterThan(0n);
    expect(status.dbSizeBytes).toBeGreaterThan(0n);
    const [, minor] = versionNumbers(binary.version);
    expect(status.dbQuotaBytes).toEqual(minor < 6 ? undefined : expect.any(BigInt));
    expect(await refusal(onFollower.moveLeader(otherId))).toBe('etcdserver: not leader');
    expect(await refusal(onLeader.moveLeader(0xdeadn))).toBe('etcdserver: bad leader transferee');
    await onLeader.moveLeader(oneId);
    await eventually(async () => (await onFollower.status()).leaderId === oneId, { what: 'the new leader is known' });
    const after = await onFollower.removeMember(otherId);
    expect(after.members.map(({ id }) => id)).not.toContain(otherId);
    expect(await other.exited()).toEqual({ code: 0, signal: null });
  });

  test('a frozen member costs the deadline and no more, is given up on request, and is found again', async ({
    etcd,
  }) => {
    const cluster = await etcd({ binary });
    const n1 = cluster.member('n1');
    using client = clientOf(cluster, n1);
    await client.linearizableRead();
    n1.signal('SIGSTOP');
    for (let calls = 1; calls <= deadlinesUntilStuck + 1; calls++) {
      const before = performance.now();
      const error = await failure(client.serializableRead({ deadlineMs: 300 }));
      expect(error).toMatchObject({ grpcCodeName: 'DEADLINE_EXCEEDED', call: 'Range', endpoint: n1.clientUrl });
      expect(performance.now() - before).toBeLessThan(1_500);
    }
    const reason = new Error('no longer wanted');
    const givenUp = new AbortController();
    const call = failure(client.serializableRead({ signal: givenUp.signal }));
    givenUp.abort(reason);
    expect(await call).toMatchObject({ grpcCodeName: 'CANCELLED', cause: reason });
    expect(await failure(client.status({ signal: givenUp.signal }))).toMatchObject({
      details: 'given up before it was sent',
    });
    n1.signal('SIGCONT');
    await eventually(() => client.linearizableRead(), { what: 'it answers again' });
    client.close();
    expect(await failure(client.linearizableRead())).toMatchObject({ details: 'this client is closed' });
  });

  test('a member that is down fails at once and is noticed within 3 s of its return', async ({ etcd }) => {
    const cluster = await etcd({ binary });
    const n1 = cluster.member('n1');
    using client = clientOf(cluster, n1);
    await client.linearizableRead();
    await n1.kill();
    const before = performance.now();
    expect(await failure(client.linearizableRead())).toMatchObject({ grpcCodeName: 'UNAVAILABLE' });
    expect(performance.now() - before).toBeLessThan(1_000);
    n1.restart();
    await n1.ready();
    await eventually(() => client.linearizableRead({ deadlineMs: 1_000 }), { withinMs: 3_000 });
  });

  test('a linearizable list fails without a quorum, also on 3.4, while the local view is still given', async ({
    etcd,
  }) => {
    const cluster = await etcd({ binary, size: 3 });
    const [n1, ...others] = cluster.members;
    if (n1 === undefined) expect.fail('three members');
    using client = clientOf(cluster, n1);
    expect((await client.memberList({ linearizable: true })).members).toHaveLength(3);
    for (const member of others) member.signal('SIGSTOP');
    const before = performance.now();
    await failure(client.memberList({ linearizable: true, deadlineMs: 2_000 }));
    expect(performance.now() - before).toBeLessThan(3_000);
    const local = await client.memberList({ linearizable: false });
    expect(local).toMatchObject({ linearizable: false });
    expect(local.members).toHaveLength(3);
    const late = await failure(client.removeMember(local.answeredBy, { deadlineMs: 500 }));
    expect(['DEADLINE_EXCEEDED', 'UNAVAILABLE', 'UNKNOWN']).toContain(late.grpcCodeName);
  });

  test('X01 with TLS: ours is let in, none and a stranger is not, and a server under another name is not believed', async ({
    etcd,
  }) => {
    const cluster = await etcd({ binary, tls: true });
    const n1 = cluster.member('n1');
    const { ca, client: files } = tlsOf(cluster);
    using client = clientOf(cluster, n1);
    expect((await client.memberList({ linearizable: true })).members).toHaveLength(1);

    using nobody = clientOf(cluster, n1, { tls: { caFile: files.caFile } });
    expect(await failure(nobody.linearizableRead())).toMatchObject({ grpcCodeName: 'UNAVAILABLE' });
    const foreign = new TestCa();
    const strangerFiles = writeTlsFiles(join(cluster.directory, 'tls'), 'stranger', foreign.issue(), ca.cert);
    using stranger = clientOf(cluster, n1, { tls: strangerFiles });
    expect(await failure(stranger.linearizableRead())).toMatchObject({ grpcCodeName: 'UNAVAILABLE' });
    const mistrusting = writeTlsFiles(join(cluster.directory, 'tls'), 'mistrusting', ca.issue(), foreign.cert);
    using other = clientOf(cluster, n1, { tls: mistrusting });
    expect(await failure(other.linearizableRead())).toMatchObject({ grpcCodeName: 'UNAVAILABLE' });

    await n1.stop();
    const renamed = ca.issue({ ips: ['127.0.0.2'], dns: ['localhost'] });
    writeTlsFiles(join(cluster.directory, 'n1'), 'member', renamed, ca.cert);
    n1.restart();
    await eventually(() =>
      /serving client traffic securely/.test(n1.log().split('"msg":"closed etcd server"').at(-1) ?? ''),
    );
    const wrongName = await failure(client.linearizableRead());
    expect(wrongName).toMatchObject({ grpcCodeName: 'UNAVAILABLE' });
    expect(wrongName.details).toMatch(/127\.0\.0\.1/);
  });

  test('changed TLS files are used for new connections, half-changed ones are not, missing ones are named', async ({
    etcd,
  }) => {
    const cluster = await etcd({ binary, tls: true });
    const n1 = cluster.member('n1');
    const { ca } = tlsOf(cluster);
    const directory = join(cluster.directory, 'tls');
    const files = writeTlsFiles(directory, 'turning', ca.issue(), ca.cert);
    using client = clientOf(cluster, n1, { tls: files });
    await client.linearizableRead();

    const next = new TestCa().issue(); // of another authority, so that its use shows
    writeFileSync(files.certFile, next.cert);
    await client.linearizableRead(); // the key is the old one still: what was good goes on
    writeFileSync(files.keyFile, next.key);
    expect(await failure(client.linearizableRead())).toMatchObject({ grpcCodeName: 'UNAVAILABLE' });
    const good = ca.issue();
    writeFileSync(files.certFile, good.cert);
    writeFileSync(files.keyFile, good.key);
    await client.linearizableRead();
    rmSync(files.keyFile);
    await client.linearizableRead();

    using fresh = clientOf(cluster, n1, { tls: files });
    await expect(fresh.linearizableRead()).rejects.toThrow(TlsFileError);
    await expect(fresh.linearizableRead()).rejects.toThrow(`${files.keyFile}: does not exist`);
  });
});

function tlsOf(cluster: RealCluster) {
  if (cluster.tls === undefined) throw new Error('a cluster with TLS');
  return cluster.tls;
}

/** The error of a call that must fail. */
async function failure(call: Promise<unknown>): Promise<EtcdCallError> {
  const error = await call.then(
    () => new Error('the call was answered'),
    (reason: unknown) => reason,
  );
  if (error instanceof EtcdCallError) return error;
  throw error;
}

/** etcd's own words for a refusal. */
async function refusal(call: Promise<unknown>): Promise<string> {
  return (await failure(call)).details;
}
