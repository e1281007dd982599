// Goal: metrics over TCP are served where asked for, with the scheme and the trust of etcd's client port, and nothing else is.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { MetricsListenError, startMetricsListener } from '../../../src/agent/api/metrics-listener.ts';
import { silentLog } from '../../../src/base/log.ts';

/** A clock whose timers fire when told. */
function stillClock() {
  let fire = () => {};
  return {
    clock: {
      wallMs: () => 0,
      monotonicMs: () => 0,
      after: (_ms: number, callback: () => void) => {
        fire = callback;
        return () => {};
      },
    },
    tick: () => fire(),
  };
}

function get(
  port: number,
  path: string,
  tls?: RequestOptions,
): Promise<{ status: number; text: string; subject: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, agent: false, ...tls };
    const request = (tls === undefined ? httpRequest : httpsRequest)(options, (response) => {
      let text = '';
      const subject =
        'getPeerCertificate' in response.socket
          ? JSON.stringify(
              Reflect.apply(response.socket.getPeerCertificate as () => { subject: unknown }, response.socket, [])
                .subject,
            )
          : '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, subject }));
    });
    request.on('error', reject);
    request.end();
  });
}

async function start(options: Partial<Parameters<typeof startMetricsListener>[0]> = {}) {
  const { clock, tick } = stillClock();
  const listener = await startMetricsListener({
    listen: { host: '127.0.0.1', port: 0 },
    tls: undefined,
    render: async () => 'up 1\n',
    clock,
    log: silentLog,
    ...options,
  });
  onTestFinished(() => listener.close());
  return { ...listener, tick };
}

test('GET /metrics is served over http, and nothing of the local API', async () => {
  const { port } = await start();
  expect(await get(port, '/metrics')).toMatchObject({ status: 200, text: 'up 1\n' });
  for (const path of ['/', '/v1/status', '/metrics/', '/metrics?x']) expect((await get(port, path)).status).toBe(404);
});

test('I28: a failure to render is 500, and the next scrape is served', async () => {
  let fails = true;
  const { port } = await start({
    render: async () => {
      if (fails) throw new Error('secret');
      return 'up 1\n';
    },
  });
  const failed = await get(port, '/metrics');
  expect(failed.status).toBe(500);
  expect(failed.text).not.toContain('secret');
  fails = false;
  expect((await get(port, '/metrics')).status).toBe(200);
});

test('a port that is taken is an error that names it', async () => {
  const { port } = await start();
  await expect(start({ listen: { host: '127.0.0.1', port } })).rejects.toThrow(MetricsListenError);
});

test('with TLS files a client certificate of their CA is demanded; renewed files are taken up, bad ones are not', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'metrics-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = (name: string) => join(directory, name);
  const ca = certificate(directory, 'ca');
  const server = certificate(directory, 'server', 'ca');
  const client = certificate(directory, 'client', 'ca');
  const stranger = certificate(directory, 'stranger');
  const { port, tick } = await start({ tls: { cert: server.cert, key: server.key, ca: ca.cert } });
  const trust = { ca: readFileSync(ca.cert), checkServerIdentity: () => undefined };
  const identity = (of: typeof client) => ({ ...trust, cert: readFileSync(of.cert), key: readFileSync(of.key) });

  expect(await get(port, '/metrics', identity(client))).toMatchObject({ status: 200, subject: '{"CN":"server"}' });
  await expect(get(port, '/metrics', trust)).rejects.toThrow();
  await expect(get(port, '/metrics', identity(stranger))).rejects.toThrow();
  await expect(get(port, '/metrics')).rejects.toThrow();

  writeFileSync(server.cert, 'no certificate');
  tick();
  expect((await get(port, '/metrics', identity(client))).subject).toBe('{"CN":"server"}');
  const renewed = certificate(directory, 'renewed', 'ca');
  writeFileSync(server.cert, readFileSync(renewed.cert));
  writeFileSync(server.key, readFileSync(renewed.key));
  tick();
  expect((await get(port, '/metrics', identity(client))).subject).toBe('{"CN":"renewed"}');
  rmSync(file('ca.crt'));
  tick();
  expect((await get(port, '/metrics', identity(client))).status).toBe(200);
});

test('X10: more connections than the cap are closed at once, silent ones by the clock', async () => {
  const { port } = await start();
  const sockets = Array.from({ length: 100 }, () => connect({ host: '127.0.0.1', port }));
  let open = sockets.length;
  for (const socket of sockets) {
    socket.on('error', () => {});
    socket.on('close', () => open--);
    socket.resume();
  }
  // The timeout for silent ones is 5 s.
  await vi.waitFor(() => expect(open).toBeLessThanOrEqual(32), 4000);
  await vi.waitFor(() => expect(open).toBe(0), 15_000);
  expect((await get(port, '/metrics')).status).toBe(200);
});

/** A certificate by openssl, signed by another or by itself. */
function certificate(directory: string, name: string, by?: string) {
  const path = (suffix: string) => join(directory, `${name}.${suffix}`);
  const signer = by === undefined ? [] : ['-CA', join(directory, `${by}.crt`), '-CAkey', join(directory, `${by}.key`)];
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      '-keyout',
      path('key'),
      '-out',
      path('crt'),
      ...signer,
    ],
    { stdio: 'ignore' },
  );
  return { cert: path('crt'), key: path('key') };
}
