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

/**
 * What runs longest begins first, and the number is how many etcd that file runs at most. Files that are not named here begin
 * before all of these.
 */
const files: Readonly<Record<string, number>> = {
  'conformance.test.ts': 3,
  'founding.test.ts': 3,
  'crash.test.ts': 2,
  'removal-while-away.test.ts': 3,
  'bad-state.test.ts': 2,
  'removal-unconfirmed.test.ts': 3,
  'stuck.test.ts': 3,
  'disk-full.test.ts': 1,
  'tls.test.ts': 3,
  'agent-kill.test.ts': 2,
  'demo.test.ts': 3,
  'runbook.test.ts': 3,
  'removal.test.ts': 3,
  'adopt.test.ts': 3,
  'orders.test.ts': 3,
  'exit-classes.test.ts': 2,
  'client.test.ts': 3,
  'health.test.ts': 3,
  'log-facts.test.ts': 2,
  'panic.test.ts': 3,
  'boot-config.test.ts': 1,
  'bad-input.test.ts': 1,
  'flags.test.ts': 1,
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

/**
 * Serves the budget on a unix socket in `directory`, first come, first served. A client says how many it wants and hears
 * `yours` when it may go on; it holds them as long as its connection lives, so that a file that dies gives them back too.
 */
export async function openBudget(directory: string): Promise<{ readonly path: string; close(): void }> {
  let free = etcdAtOnce;
  const queue: { readonly socket: Socket; readonly wanted: number }[] = [];
  const sockets = new Set<Socket>();
  const serve = () => {
    for (let first = queue[0]; first !== undefined && first.wanted <= free; first = queue[0]) {
      queue.shift();
      const { socket, wanted } = first;
      if (socket.destroyed) continue;
      free -= wanted;
      socket.once('close', () => {
        free += wanted;
        serve();
      });
      socket.write('yours\n');
    }
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}); // what matters is that it closes
    socket.once('close', () => sockets.delete(socket));
    socket.once('data', (wanted) => {
      queue.push({ socket, wanted: Math.min(Number(wanted), etcdAtOnce) });
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

/** Waits until `wanted` etcd may run, and holds them until the returned function is called. */
export async function takeFromBudget(path: string, wanted: number): Promise<() => void> {
  const socket = connect(path);
  socket.write(`${wanted}\n`);
  await once(socket, 'data');
  return () => socket.destroy();
}
