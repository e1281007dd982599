/**
 * No more than five etcd at once on this machine, however many files of tests run side by side: each file of test/real asks
 * for as many as it runs at most before its first test, and gives them back after its last.
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { basename, join } from 'node:path';

/** All files together run at most so many etcd processes. */
export const etcdAtOnce = 5;

/** A file that is not named below runs at most so many. */
const usual = 3;

/** A test that takes its own share may wait for it as long as the others take. Unit: ms. */
export const waitForShareMs = 1_200_000;

/**
 * What runs longest begins first, and the number is how many etcd that file runs at most (0: each test of it takes its own
 * share by {@link holdingEtcd}). Files that are not named here begin before all of these.
 */
const files: Readonly<Record<string, number>> = {
  'conformance.test.ts': 0,
  'founding.test.ts': 0,
  'crash.test.ts': 2,
  'crash-points.test.ts': 3,
  'under-load.test.ts': 3,
  'together.test.ts': 3,
  'removal-while-away.test.ts': 3,
  'bad-state.test.ts': 2,
  'removal-unconfirmed.test.ts': 3,
  'stuck.test.ts': 3,
  'disk-full.test.ts': 1,
  'member-orders.test.ts': 3,
  'life.test.ts': 3,
  'replacement.test.ts': 3,
  'refusals.test.ts': 3,
  'reply-lost.test.ts': 3,
  'no-space.test.ts': 4,
  'peer-url.test.ts': 3,
  'tls.test.ts': 3,
  'agent-kill.test.ts': 2,
  'demo.test.ts': 3,
  'runbook.test.ts': 3,
  'removal.test.ts': 3,
  'adopt.test.ts': 3,
  'lost-quorum.test.ts': 3,
  'log-regression.test.ts': 3,
  'orders.test.ts': 3,
  'exit-classes.test.ts': 4,
  'client.test.ts': 3,
  'curator-leader.test.ts': 3,
  'leases.test.ts': 3,
  'health.test.ts': 3,
  'log-facts.test.ts': 4,
  'panic.test.ts': 3,
  'boot-config.test.ts': 1,
  'bad-input.test.ts': 1,
  'flags.test.ts': 2,
  'fixture.test.ts': 3,
  'tls-files.test.ts': 1,
};

/** How many etcd this file runs at most. */
export function etcdOf(file: string): number {
  return files[basename(file)] ?? usual;
}

/** For sorting: files with a smaller number begin earlier. */
export function orderOf(file: string): number {
  return Object.keys(files).indexOf(basename(file));
}

/** Who waits first is overtaken by smaller ones at most so often. */
const overtakings = 20;

/**
 * Serves the budget on a unix socket in `directory`: first come, first served, but what is left over goes to whoever fits into
 * it. A client says how many it wants and hears `yours` when it may go on; it holds them as long as its connection lives, so that a
 * file that dies gives them back too.
 */
export async function openBudget(directory: string): Promise<{ readonly path: string; close(): void }> {
  let free = etcdAtOnce;
  const queue: Waiting[] = [];
  const sockets = new Set<Socket>();
  const give = ({ socket, wanted }: Waiting) => {
    free -= wanted;
    socket.once('close', () => {
      free += wanted;
      serve();
    });
    socket.write('yours\n');
  };
  const serve = () => {
    let overtaken: Waiting | undefined;
    for (const waiting of [...queue]) {
      const gone = waiting.socket.destroyed;
      const fits = waiting.wanted <= free && (overtaken === undefined || overtaken.overtaken < overtakings);
      if (!gone && !fits) {
        overtaken ??= waiting;
        continue;
      }
      queue.splice(queue.indexOf(waiting), 1);
      if (gone) continue;
      if (overtaken !== undefined) overtaken.overtaken++;
      give(waiting);
    }
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}); // what matters is that it closes
    socket.once('close', () => sockets.delete(socket));
    socket.once('data', (wanted) => {
      queue.push({ socket, wanted: Math.min(Number(wanted), etcdAtOnce), overtaken: 0 });
      serve();
    });
  });
  const path = join(directory, 'budget');
  server.listen(path);
  await once(server, 'listening');
  return {
    path,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

interface Waiting {
  readonly socket: Socket;
  readonly wanted: number;
  /** How many came later and were served before. */
  overtaken: number;
}

/** Waits until `wanted` etcd may run, and holds them until the returned function is called. */
export async function takeFromBudget(path: string, wanted: number): Promise<() => void> {
  const socket = connect(path);
  socket.write(`${wanted}\n`);
  await once(socket, 'data');
  return () => socket.destroy();
}

/** A share of the budget for one test; `await using` gives it back. */
export async function holdingEtcd(wanted: number): Promise<AsyncDisposable> {
  const giveBack = await takeFromBudget(budgetPath(), wanted);
  return { [Symbol.asyncDispose]: async () => giveBack() };
}

/** Where the budget is served. Throws outside of the project `real`. */
export function budgetPath(): string {
  const path = process.env['ETCD_TEST_BUDGET'];
  if (path === undefined) throw new Error('test/support/real-setup.ts has not run: no budget of etcd processes');
  return path;
}
