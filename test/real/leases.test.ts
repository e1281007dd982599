// Goal: a lease is what the curator takes it for: its keys end with it, a keepalive says when it is gone, and each call has an end.
// Method: real members of each version; one is frozen, and one is asked that does not lead.
import { describe, expect } from 'vitest';
import { testVersions } from '../support/etcd-binaries.ts';
import { clientOf, leaderAndFollowers } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { test } from '../support/real-etcd.ts';

describe.each(testVersions())('etcd $version', (binary) => {
  test('a lease lives by its keepalives, also through a follower, and takes its keys with it', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3 });
    const { followers } = await leaderAndFollowers(cluster);
    using client = clientOf(cluster, followers[0] ?? expect.fail('nobody follows'));
    const kept = await client.leases.grant(5);
    const lost = await client.leases.grant(2);
    await client.keys.put('kept', '1', { lease: kept });
    await client.keys.put('lost', '1', { lease: lost });
    const from = performance.now();
    await eventually(
      async () => {
        expect(await client.leases.keepAlive(kept)).toMatchObject({ alive: true });
        return (await client.keys.get('lost')) === undefined;
      },
      { everyMs: 500, what: 'a lease without keepalives ends' },
    );
    process.stderr.write(
      `etcd ${binary.version}: a lease of 2 s was gone after ${Math.round(performance.now() - from)} ms\n`,
    );
    expect((await client.keys.get('kept'))?.value).toBe('1');
    expect(await client.leases.keepAlive(lost)).toMatchObject({ alive: false });
    await client.leases.revoke(kept);
    await client.leases.revoke(kept);
    expect(await client.keys.get('kept')).toBeUndefined();
  });

  test('a call to a frozen member ends by its deadline', async ({ etcd }) => {
    const cluster = await etcd({ binary });
    using client = clientOf(cluster, cluster.member('n1'));
    const lease = await client.leases.grant(10);
    cluster.member('n1').signal('SIGSTOP');
    const from = performance.now();
    await expect(client.leases.keepAlive(lease, { deadlineMs: 300 })).rejects.toThrow('DEADLINE_EXCEEDED');
    expect(performance.now() - from).toBeLessThan(2_000);
    cluster.member('n1').signal('SIGCONT');
    await eventually(() => client.leases.keepAlive(lease, { deadlineMs: 500 }));
  });
});
