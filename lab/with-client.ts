import { silentLog } from '../src/base/log.ts';
import { systemClock } from '../src/base/system-clock.ts';
import { EtcdClient } from '../src/etcd/client.ts';

/** A client for one call or a few. */
export async function withClient<T>(endpoint: string, use: (client: EtcdClient) => Promise<T>): Promise<T> {
  const client = new EtcdClient({ endpoint, clock: systemClock, log: silentLog });
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
