// Goal: whatever the other side does, one GET ends in time, within its bounds, and says why.
// Method: a server on loopback that misbehaves in one way each.
import { describe, expect, test } from 'vitest';
import { describeError } from '../../src/base/errors.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdHttpError, type HttpGetOptions, httpGet } from '../../src/etcd/http-get.ts';
import { RefusedUrlError } from '../../src/etcd/refused-url.ts';
import { freePort } from '../support/ports.ts';
import { tinyHttp } from '../support/tiny-http.ts';

function get(baseUrl: string, more: Partial<HttpGetOptions> = {}) {
  return httpGet({ baseUrl, path: '/x?y=1', deadlineMs: 2_000, clock: systemClock, ...more });
}

describe('one GET', () => {
  test('gives status, headers and body back, whatever the status', async () => {
    await using server = await tinyHttp((request, response) => {
      response.writeHead(503, { 'x-etcd-cluster-id': 'abc' }).end(`asked for ${request.url}`);
    });
    expect(await get(server.url)).toMatchObject({
      status: 503,
      headers: { 'x-etcd-cluster-id': 'abc' },
      body: 'asked for /x?y=1',
    });
  });

  test('an answer that never comes costs the deadline', async () => {
    await using server = await tinyHttp(() => {});
    await expect(get(server.url, { deadlineMs: 100 })).rejects.toThrow('no whole answer within 100 ms');
  });

  test('X10 an answer of one byte now and then costs the deadline as well', async () => {
    await using server = await tinyHttp((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 10);
      response.on('close', () => clearInterval(timer));
    });
    await expect(get(server.url, { deadlineMs: 200 })).rejects.toThrow('no whole answer within 200 ms');
  });

  test('X09 an answer without end is cut at its limit', async () => {
    let sent = 0;
    await using server = await tinyHttp((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536;
      };
      response.on('drain', more);
      more();
    });
    await expect(get(server.url, { maxBytes: 100_000 })).rejects.toThrow('the answer is longer than 100000 bytes');
    expect(sent).toBeLessThan(50_000_000);
  });

  test('an answer that breaks off is no answer', async () => {
    await using server = await tinyHttp((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    });
    await expect(get(server.url)).rejects.toThrow(EtcdHttpError);
  });

  test('a redirect is an answer and is not followed', async () => {
    let asked = 0;
    await using server = await tinyHttp((_request, response) => {
      asked++;
      response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    });
    expect((await get(server.url)).status).toBe(302);
    expect(asked).toBe(1);
  });

  test('nobody there is said at once', async () => {
    const error: unknown = await get(`http://127.0.0.1:${await freePort()}`).catch((reason: unknown) => reason);
    expect(describeError(error)).toMatch(/^GET http:\/\/127.*: no answer: connect ECONNREFUSED/);
  });

  test('it can be given up, before and during', async () => {
    await using server = await tinyHttp(() => {});
    const giveUp = new AbortController();
    const asked = expect(get(server.url, { signal: giveUp.signal })).rejects.toThrow('given up');
    giveUp.abort();
    await asked;
    await expect(get(server.url, { signal: giveUp.signal })).rejects.toThrow('given up');
  });

  test('X13 a crafted address is refused and nothing is sent', async () => {
    await expect(get('http://169.254.169.254:80')).rejects.toThrow(RefusedUrlError);
    await expect(get('http://169.254.169.254.:80')).rejects.toThrow(RefusedUrlError);
    await expect(get('unix:///run/x.sock')).rejects.toThrow(RefusedUrlError);
    await expect(get('https://127.0.0.1:1')).rejects.toThrow('no TLS files are configured');
  });
});
