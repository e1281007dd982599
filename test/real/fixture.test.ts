// Goal: the fixture that every other test on real etcd stands on does what it says.
// Method: a cluster of each version, used through etcdctl, and looked at after its end.
import { existsSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { testVersions } from '../support/etcd-binaries.ts';
import { startEtcd, test } from '../support/real-etcd.ts';

describe.each(testVersions())('etcd $version', (binary) => {
  test('one member serves, and starts again on its data', async ({ etcd }) => {
    const [n1] = (await etcd({ binary })).members;
    await n1?.etcdctl('put', 'color', 'blue');
    expect(await n1?.stop()).toEqual({ code: null, signal: 'SIGTERM' });
    n1?.restart();
    await n1?.ready();
    expect(await n1?.etcdctl('get', 'color', '--print-value-only')).toBe('blue\n');
  });

  test('three members with TLS serve, and nobody without a certificate is let in', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3, tls: true });
    await cluster.member('n1').etcdctl('put', 'color', 'blue');
    expect(await cluster.member('n3').etcdctl('get', 'color', '--print-value-only')).toBe('blue\n');
    await expect(fetch(`${cluster.member('n1').clientUrl}/version`)).rejects.toThrow();
  });

  test('after its end no process, no file and no port is left', async () => {
    const cluster = await startEtcd({ binary });
    const n1 = cluster.member('n1');
    const { pid } = n1;
    await cluster.close();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    expect(existsSync(cluster.directory)).toBe(false);
    await expect(n1.get(n1.clientUrl)).rejects.toThrow('ECONNREFUSED');
  });
});
