/** A thread that asks one member for its Status without a rest, so that the test's own loop stays free; see hammer.ts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdClient } from '../../src/etcd/client.ts';

const { endpoint, connections, everyMs } = workerData as { endpoint: string; connections: number; everyMs: number };

let stopped = false;
parentPort?.once('message', () => {
  stopped = true;
});
await Promise.all(Array.from({ length: connections }, () => hammer()));

/** One connection: a call each `everyMs`, whether or not the earlier ones were answered. */
async function hammer(): Promise<void> {
  const client = new EtcdClient({ endpoint, clock: systemClock, log: silentLog });
  while (!stopped) {
    client.status({ deadlineMs: 2_000 }).then(
      () => parentPort?.postMessage('answered'),
      () => {}, // the member is gone, or on its way
    );
    await sleep(everyMs);
  }
  client.close();
}
