// Goal: what our check of TLS files refuses is what etcd dies of, or what keeps everybody out; and what it lets pass works.
// Method: the same files are put to the check and to a real etcd.
import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { checkTlsFiles } from '../../src/pki/check-tls.ts';
import { testVersions } from '../support/etcd-binaries.ts';
import { clientOf } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { type RealEtcd, test } from '../support/real-etcd.ts';
import { TestCa, type TestTlsFiles } from '../support/test-ca.ts';

describe.each(testVersions())('etcd $version', (binary) => {
  test.for([
    { fault: 'a missing key', spoil: (files: TestTlsFiles) => rmSync(files.keyFile) },
    {
      fault: "another certificate's key",
      spoil: (files: TestTlsFiles) => writeFileSync(files.keyFile, new TestCa().issue().key),
    },
    { fault: 'a missing CA file', spoil: (files: TestTlsFiles) => rmSync(files.caFile) },
  ])('$fault is refused before the start, and etcd dies of it with code 1', async ({ spoil }, { etcd }) => {
    const cluster = await etcd({ binary, tls: true, start: false });
    const n1 = cluster.member('n1');
    expect(check(n1)).toEqual([]);
    spoil(filesOf(n1));
    expect(check(n1)).toMatchObject([{ severity: 'refuse' }]);
    n1.start({ initialCluster: cluster.initialCluster(), state: 'new' });
    expect(await n1.exited()).toEqual({ code: 1, signal: null });
  });

  test('a CA file of garbage is refused before the start; etcd takes it, runs, and lets nobody in', async ({
    etcd,
  }) => {
    const cluster = await etcd({ binary, tls: true, start: false });
    const n1 = cluster.member('n1');
    writeFileSync(filesOf(n1).caFile, 'garbage');
    expect(check(n1)).toMatchObject([{ severity: 'refuse', what: 'holds no certificate in PEM form' }]);
    n1.start({ initialCluster: cluster.initialCluster(), state: 'new' });
    await eventually(() => /serving client traffic securely/.test(n1.log()), { what: 'etcd serves' });
    using client = clientOf(cluster, n1);
    await expect(client.serializableRead()).rejects.toMatchObject({ grpcCodeName: 'UNAVAILABLE' });
    expect(n1.isRunning()).toBe(true);
  });

  test('X04 an expired certificate is refused before the start; etcd serves with it and nobody believes it', async ({
    etcd,
  }) => {
    const cluster = await etcd({ binary, tls: true, start: false });
    const n1 = cluster.member('n1');
    const files = filesOf(n1);
    const expired = cluster.tls?.ca.issue({ ips: ['127.0.0.1'], notAfter: new Date(Date.now() - 60_000) });
    writeFileSync(files.certFile, expired?.cert ?? '');
    writeFileSync(files.keyFile, expired?.key ?? '');
    expect(check(n1)).toMatchObject([{ severity: 'refuse', what: expect.stringContaining('expired') }]);
    n1.start({ initialCluster: cluster.initialCluster(), state: 'new' });
    await eventually(() => /serving client traffic securely/.test(n1.log()), { what: 'etcd serves' });
    using client = clientOf(cluster, n1);
    await expect(client.serializableRead()).rejects.toMatchObject({ details: expect.stringContaining('expired') });
    expect(n1.isRunning()).toBe(true);
  });
});

function check(member: RealEtcd) {
  return checkTlsFiles({ files: filesOf(member), as: 'server', addresses: ['127.0.0.1'], nowMs: Date.now() });
}

function filesOf(member: RealEtcd): TestTlsFiles {
  if (member.tlsFiles === undefined) throw new Error('a member with TLS');
  return member.tlsFiles;
}
