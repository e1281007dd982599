// Goal: whoever listens on a port is named, whatever the address; who merely talks to it is not.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listenersOn } from '../../src/supervisor/port-holders.ts';

async function listening(host: string): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

test.each(['127.0.0.1', '0.0.0.0', '::1'])('C18 a listener on %s is named with its program', async (host) => {
  const { server, port } = await listening(host);
  expect(listenersOn(port)).toMatchObject([{ pid: process.pid }]);
  expect(listenersOn(port)[0]?.commandLine[0]).toContain('node');
  server.close();
  await once(server, 'close');
  expect(listenersOn(port)).toEqual([]);
});

test('a client of the port does not hold it', async () => {
  const { port } = await listening('127.0.0.1');
  const client = connect(port, '127.0.0.1');
  await once(client, 'connect');
  onTestFinished(() => void client.destroy());
  expect(listenersOn(port)).toHaveLength(1);
  const own = client.localPort ?? 0;
  expect(listenersOn(own)).toEqual([]);
});

test('a /proc without socket tables names nobody', () => {
  expect(listenersOn(1, '/nonexistent')).toEqual([]);
});
