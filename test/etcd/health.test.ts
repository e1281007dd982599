import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/system-clock.ts';
import { askLiveness, livenessOf } from '../../src/etcd/health.ts';
import { freePort } from '../support/ports.ts';
import { tinyHttp } from '../support/tiny-http.ts';

describe('liveness', () => {
  test.each([
    [200, '{"health":"true"}', { kind: 'alive', healthy: true }],
    [200, '{"health":"true","reason":""}\n', { kind: 'alive', healthy: true }],
    [503, '{"health":"false","reason":"RAFT NO LEADER"}', { kind: 'alive', healthy: false, because: 'RAFT NO LEADER' }],
    [503, '{"health":"false"}', { kind: 'alive', healthy: false, because: 'status 503, no reason given' }],
    [503, '{"health":"true"}', { kind: 'alive', healthy: false, because: 'status 503, no reason given' }],
  ])('status %i with %s is an answer of a living process', (status, body, liveness) => {
    expect(livenessOf({ status, body })).toEqual(liveness);
  });

  test.each(['', 'ok', '{}', 'null', '[]', '{"health":true}', '{"health":"yes"}', '404 page not found'])(
    'C18 a port that answers "%s" is not etcd',
    (body) => {
      expect(livenessOf({ status: 200, body }).kind).toBe('stranger');
    },
  );

  test('C03 no answer in time, and nobody there, are silence', async () => {
    await using frozen = await tinyHttp(() => {});
    const slow = await askLiveness({ metricsUrl: frozen.url, clock: systemClock, deadlineMs: 100 });
    expect(slow).toMatchObject({ kind: 'silent', because: expect.stringContaining('no whole answer within 100 ms') });
    const nobody = await askLiveness({ metricsUrl: `http://127.0.0.1:${await freePort()}`, clock: systemClock });
    expect(nobody).toMatchObject({ kind: 'silent', because: expect.stringContaining('ECONNREFUSED') });
  });
});
