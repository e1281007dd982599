import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdClient, type EtcdClientOptions } from '../../src/etcd/client.ts';
import { eventually } from './eventually.ts';
import type { RealCluster, RealEtcd } from './real-etcd.ts';

/** A client of one member, with the cluster's client certificate. Whoever makes it closes it; `using` does. */
export function clientOf(cluster: RealCluster, member: RealEtcd, options: Partial<EtcdClientOptions> = {}): TestClient {
  return new TestClient({
    endpoint: member.clientUrl,
    tls: cluster.tls?.client,
    clock: systemClock,
    log: silentLog,
    ...options,
  });
}

/** A client that a test's scope closes: `using client = clientOf(…)`. */
export class TestClient extends EtcdClient {
  [Symbol.dispose](): void {
    this.close();
  }
}

/** The member that leads, and one that follows, as their metrics say it. Waits until exactly one leads. */
export async function leaderAndFollowers(cluster: RealCluster): Promise<{ leader: RealEtcd; followers: RealEtcd[] }> {
  const running = cluster.members.filter((member) => member.isRunning());
  return eventually(
    async () => {
      const leads = await Promise.all(
        running.map(async (member) => {
          const { body } = await member.get(`${member.metricsUrl}/metrics`);
          return /^etcd_server_is_leader 1$/m.test(body);
        }),
      );
      const leaders = running.filter((_member, index) => leads[index]);
      const [leader] = leaders;
      if (leader === undefined || leaders.length > 1) return undefined;
      return { leader, followers: running.filter((member) => member !== leader) };
    },
    { what: 'one leader' },
  );
}
