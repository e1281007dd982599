import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Below Linux's ephemeral range (32768 and up), so that no outgoing connection of this machine takes one between the check
// and its use. The start is random: several test runs share the machine.
const lowest = 11_000;
const highest = 32_000;

/** `count` different TCP ports of `host` on which nobody listens now. */
export async function freePorts(count: number, host = '127.0.0.1'): Promise<number[]> {
  const found = new Set<number>();
  for (let tries = 0; found.size < count; tries++) {
    if (tries > 1000) throw new Error(`no ${count} free ports between ${lowest} and ${highest} on ${host}`);
    const port = randomInt(lowest, highest);
    if (!found.has(port) && (await isFree(port, host))) found.add(port);
  }
  return [...found];
}

/** One such port. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const [port] = await freePorts(1, host);
  if (port === undefined) throw new Error('no free port');
  return port;
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
