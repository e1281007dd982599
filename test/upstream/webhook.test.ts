// Goal: reports arrive once and in order whatever a receiver does. Method: a real server on loopback that misbehaves.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Log } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { Reporter, type ReporterTiming, type SendResult } from '../../src/upstream/reporter.ts';
import { Webhook, WebhookConfigError, type WebhookOptions } from '../../src/upstream/webhook.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type ReceiverOptions, WebhookReceiver } from '../support/webhook-receiver.ts';
import { fact, OutboxMachine } from './outbox-fixture.ts';

const cleanUps: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function startReceiver(options?: ReceiverOptions): Promise<WebhookReceiver> {
  const receiver = await WebhookReceiver.start(options);
  cleanUps.push(() => receiver.close());
  return receiver;
}

const fast: Partial<ReporterTiming> = { backoffFirstMs: 5, backoffMaxMs: 20, sendDeadlineMs: 300 };

/** An outbox with a reporter that posts to `url`; its log lines are kept. */
function startReporter(url: string, options: Partial<WebhookOptions> = {}, timing: Partial<ReporterTiming> = fast) {
  const machine = new OutboxMachine(9);
  const lines: string[] = [];
  const abort = new AbortController();
  const webhook = new Webhook({ url, nodeId: 'n1', clock: systemClock, ...options });
  const log = collecting(lines);
  const { outbox, random } = machine;
  const reporter = new Reporter({
    outbox,
    random,
    clock: systemClock,
    log,
    signal: abort.signal,
    transport: webhook,
    timing,
  });
  const running = reporter.run();
  cleanUps.push(async () => {
    abort.abort();
    webhook.close();
    await running;
  });
  let next = 1;
  const append = (count: number) => {
    for (let index = 0; index < count; index++) machine.outbox.append(fact(next++));
  };
  return { machine, outbox: machine.outbox, reporter, webhook, lines, append };
}

function collecting(lines: string[]): Log {
  const keep = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep, child: () => log };
  return log;
}

const numbers = (receiver: WebhookReceiver) => receiver.events.map((event) => event.seq);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('a batch on the wire', () => {
  test('is a CloudEvents JSON batch with ids, order and certainty in each event', async () => {
    const receiver = await startReceiver();
    const { machine } = startReporter(receiver.url);
    const stored = machine.outbox.append(
      fact(1, {
        kind: 'member.removed',
        certainty: 'inferred',
        cluster: 'cdf818194e3a8c32',
        member: '8e9e05c52164694d',
      }),
    );
    await receiver.until(() => receiver.events.length === 1);
    expect(receiver.requests[0]).toMatchObject({ method: 'POST', path: '/reports' });
    expect(receiver.requests[0]?.headers['content-type']).toBe('application/cloudevents-batch+json; charset=utf-8');
    expect(receiver.events[0]).toEqual({
      specversion: '1.0',
      id: stored.id,
      source: `/nodes/n1/streams/${stored.stream}`,
      type: 'etcd-node-agent.member.removed',
      time: '2026-01-01T00:00:00.000Z',
      datacontenttype: 'application/json',
      node: 'n1',
      stream: stored.stream,
      seq: 1,
      certainty: 'inferred',
      cluster: 'cdf818194e3a8c32',
      member: '8e9e05c52164694d',
      data: { number: 1 },
    });
  });

  test('connections are kept between batches', async () => {
    const receiver = await startReceiver();
    const { append } = startReporter(receiver.url, {}, { ...fast, batch: 10 });
    append(100);
    await receiver.until(() => receiver.events.length === 100);
    expect(receiver.requests.length).toBeGreaterThanOrEqual(10);
    expect(receiver.connections).toBeLessThanOrEqual(2);
  });
});

describe('a receiver in trouble', () => {
  test('R01 R02 5xx, cut and silent connections, lost acknowledgements: everything arrives once, in order', async () => {
    const receiver = await startReceiver();
    receiver.answerNext(
      { status: 500 },
      { drop: 'cut', store: false },
      { drop: 'cut', store: true },
      { status: 503 },
      { drop: 'hang', store: true },
      { status: 502, store: true },
      { status: 408 },
    );
    const { append, outbox } = startReporter(receiver.url);
    append(250);
    await until(() => receiver.events.length === 250 && outbox.stats().waiting === 0);
    expect(numbers(receiver)).toEqual(upTo(250));
    expect(receiver.duplicates).toBeGreaterThan(0);
    expect(receiver.forks).toEqual([]);
  });

  test('R13 a poison event is parked with the words of the receiver; skipped, the rest follows', async () => {
    const receiver = await startReceiver();
    receiver.poison = (event) => event.data['number'] === 7;
    const { append, outbox } = startReporter(receiver.url);
    append(20);
    await until(() => outbox.parked !== undefined);
    expect(outbox.parked?.why).toContain('answered 400: cannot take etcd-node-agent.test.happened');
    expect(numbers(receiver)).toEqual(upTo(6));
    outbox.skip(outbox.parked ?? fail(), 'known defect of the receiver');
    await receiver.until(() => receiver.events.length === 20);
    expect(numbers(receiver)).toEqual(upTo(20));
    expect(receiver.events[6]?.type).toBe('etcd-node-agent.outbox.gap');
  });

  test('R14 an answer at one byte a second does not hold anything up, and a request that is never read ends', async () => {
    const receiver = await startReceiver();
    receiver.answerAlways = { drop: 'trickle' };
    const { append, outbox } = startReporter(receiver.url, {}, { ...fast, batch: 10 });
    const begun = performance.now();
    append(100);
    await until(() => receiver.events.length === 100 && outbox.stats().waiting === 0);
    expect(performance.now() - begun).toBeLessThan(5_000);
    receiver.answerAlways = { drop: 'hang', store: false };
    const before = receiver.requests.length;
    append(1);
    await receiver.until(() => receiver.requests.length >= before + 3);
    receiver.answerAlways = {};
    await receiver.until(() => receiver.events.length === 101);
    expect(receiver.duplicates).toBe(0);
  });

  test('R14 an endless answer is cut off', async () => {
    const receiver = await startReceiver();
    const { append, outbox } = startReporter(receiver.url, {}, { ...fast, sendDeadlineMs: 3_000 });
    receiver.answerNext({ status: 200, body: 'x'.repeat(8_000_000) }, { status: 500, body: 'y'.repeat(8_000_000) });
    append(1);
    await receiver.until(() => receiver.events.length === 1);
    append(1);
    await until(() => receiver.events.length === 2 && outbox.stats().waiting === 0);
  });

  test('a receiver that sees a fork asks for a new stream: the rest comes under new numbers, and nothing is parked', async () => {
    const receiver = await startReceiver();
    receiver.answerNext({
      status: 409,
      store: true,
      headers: { 'Report-History': 'forked' },
      body: 'number 2 is taken',
    });
    const { append, outbox } = startReporter(receiver.url);
    const before = outbox.stats().stream;
    append(3);
    await until(() => outbox.stats().stream !== before && outbox.stats().waiting === 0);
    append(1);
    await until(() => outbox.stats().waiting === 0);
    expect(outbox.parked).toBeUndefined();
    const gap = receiver.events.find(({ type }) => type === 'etcd-node-agent.outbox.gap');
    expect(gap).toMatchObject({ seq: 1, data: { because: expect.stringContaining('number 2 is taken') } });
    expect(receiver.events.at(-1)).toMatchObject({ stream: outbox.stats().stream, seq: 2 });
  });

  test('a 409 without that word is a refusal like any other', async () => {
    const receiver = await startReceiver();
    receiver.answerAlways = { status: 409, store: false };
    const { append, outbox } = startReporter(receiver.url);
    append(1);
    await until(() => outbox.parked !== undefined);
    expect(outbox.stats().high).toBe(1);
  });

  test('a redirect is not followed', async () => {
    const other = await startReceiver();
    const receiver = await startReceiver();
    receiver.answerNext({ status: 307, headers: { location: other.url } });
    const { append } = startReporter(receiver.url);
    append(1);
    await receiver.until(() => receiver.events.length === 1);
    expect(other.requests).toEqual([]);
    expect(receiver.requests).toHaveLength(2);
  });

  test('nobody listens: the reports wait, and go out when somebody does', async () => {
    const first = await startReceiver();
    const { port } = first;
    const { append, reporter } = startReporter(first.url);
    await first.close();
    append(3);
    await until(() => reporter.status.failures >= 3);
    expect(reporter.status.problem).toContain('ECONNREFUSED');
    const second = await startReceiver({ port });
    await second.until(() => second.events.length === 3);
  });
});

describe('R01 what the receiver asks for', () => {
  const cases: readonly [string, Record<string, string>, Partial<SendResult>][] = [
    ['seconds', { 'retry-after': '7' }, { kind: 'retry', afterMs: 7_000 }],
    ['a date', { 'retry-after': 'Thu, 01 Jan 2026 00:02:00 GMT' }, { kind: 'retry', afterMs: 120_000 }],
    ['a date that has passed', { 'retry-after': 'Thu, 01 Jan 2015 00:00:00 GMT' }, { kind: 'retry', afterMs: 0 }],
    ['nonsense', { 'retry-after': 'soon' }, { kind: 'retry' }],
    ['nothing', {}, { kind: 'retry' }],
  ];
  for (const [what, headers, expected] of cases) {
    test(`Retry-After with ${what}`, async () => {
      const receiver = await startReceiver();
      for (const status of [429, 503]) {
        receiver.answerNext({ status, headers });
        const webhook = new Webhook({ url: receiver.url, nodeId: 'n1', clock: new FakeClock() });
        const result = await webhook.send([new OutboxMachine().outbox.append(fact(1))], new AbortController().signal);
        webhook.close();
        expect(result).toMatchObject(expected);
        if (!('afterMs' in expected)) expect(result).not.toHaveProperty('afterMs');
      }
    });
  }

  test('which answers mean "never"', async () => {
    const receiver = await startReceiver();
    const webhook = new Webhook({ url: receiver.url, nodeId: 'n1', clock: systemClock });
    const batch = [new OutboxMachine().outbox.append(fact(1))];
    const kinds: Record<number, string> = {};
    for (const status of [200, 202, 204, 301, 400, 401, 404, 408, 409, 413, 422, 429, 500, 501, 503]) {
      receiver.answerNext({ status, store: false });
      kinds[status] = (await webhook.send(batch, new AbortController().signal)).kind;
    }
    webhook.close();
    const of = (kind: string) => Object.keys(kinds).filter((status) => kinds[Number(status)] === kind);
    expect(of('acked')).toEqual(['200', '202', '204']);
    expect(of('refused')).toEqual(['400', '401', '404', '409', '413', '422']);
    expect(of('retry')).toEqual(['301', '408', '429', '500', '501', '503']);
  });
});

describe('secrets and TLS', () => {
  let directory = '';
  const file = (name: string) => join(directory, name);
  const pem = (name: string) => readFileSync(file(name), 'utf8');
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'webhook-'));
    for (const ca of ['ca', 'other-ca']) {
      openssl(
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
        `/CN=${ca}`,
        '-keyout',
        `${ca}.key`,
        '-out',
        `${ca}.pem`,
      );
    }
    writeFileSync(file('server.ext'), 'subjectAltName=IP:127.0.0.1\n');
    for (const [name, extra] of [
      ['server', ['-extfile', 'server.ext']],
      ['client', []],
    ] as const) {
      openssl(
        'req',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-subj',
        `/CN=${name}`,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.csr`,
      );
      openssl(
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca.key',
        '-CAcreateserial',
        '-days',
        '2',
        '-out',
        `${name}.pem`,
        ...extra,
      );
    }
    writeFileSync(file('token'), 'canary-7f3a\n');
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const tlsReceiver = (clientCa = true) =>
    startReceiver({ tls: { cert: pem('server.pem'), key: pem('server.key'), ...(clientCa && { ca: pem('ca.pem') }) } });

  test('mutual TLS with given files; a token goes along and stands in no log line', async () => {
    const receiver = await tlsReceiver();
    receiver.answerNext({ status: 500 }, { status: 400, body: 'no' });
    const options = {
      caFile: file('ca.pem'),
      certFile: file('client.pem'),
      keyFile: file('client.key'),
      tokenFile: file('token'),
    };
    const { append, lines, reporter, outbox } = startReporter(`${receiver.url}?key=canary-query`, options);
    append(1);
    await until(() => outbox.parked !== undefined);
    outbox.unpark();
    await receiver.until(() => receiver.events.length === 1);
    expect(receiver.requests.at(-1)).toMatchObject({
      clientName: 'client',
      headers: { authorization: 'Bearer canary-7f3a' },
    });
    expect(lines.length).toBeGreaterThan(0);
    expect(JSON.stringify([lines, reporter.status, outbox.tail(9)])).not.toContain('canary');
  });

  test('a receiver of another CA, and one that wants a certificate which we lack, get nothing', async () => {
    const receiver = await tlsReceiver();
    const clientFiles = { certFile: file('client.pem'), keyFile: file('client.key') };
    for (const options of [{ ...clientFiles, caFile: file('other-ca.pem') }, { caFile: file('ca.pem') }, clientFiles]) {
      const { append, reporter } = startReporter(receiver.url, options);
      append(1);
      await until(() => reporter.status.failures >= 2);
    }
    expect(receiver.requests).toEqual([]);
  });

  test('renewed files are used without a restart; a missing one is a failure that passes', async () => {
    const receiver = await tlsReceiver(false);
    const caFile = file('changing.pem');
    writeFileSync(caFile, pem('other-ca.pem'));
    const { append, reporter } = startReporter(receiver.url, { caFile });
    append(1);
    await until(() => reporter.status.failures >= 2);
    rmSync(caFile);
    await until(() => reporter.status.problem?.includes(`${caFile} cannot be read`) ?? false);
    writeFileSync(caFile, pem('ca.pem'));
    await receiver.until(() => receiver.events.length === 1);
  });

  test('what cannot work or would give a secret away is refused at once', () => {
    const make = (options: Partial<WebhookOptions>) => () =>
      new Webhook({ url: 'https://example.com/', nodeId: 'n1', clock: systemClock, ...options });
    for (const options of [
      { url: 'no url' },
      { url: 'ftp://example.com/' },
      { url: 'https://user:canary@example.com/' },
      { certFile: '/some/file' },
      { url: 'http://example.com/', tokenFile: '/some/token' },
    ]) {
      expect(make(options)).toThrow(WebhookConfigError);
      expect(make(options)).not.toThrow(/canary/);
    }
    expect(make({ url: 'http://127.0.0.1:1/', tokenFile: '/some/token' })).not.toThrow();
  });

  test('an empty or broken token file sends nothing', async () => {
    const receiver = await startReceiver();
    for (const content of ['', '\n', 'two\nlines', 'ünicode']) {
      writeFileSync(file('bad-token'), content);
      const webhook = new Webhook({
        url: receiver.url,
        nodeId: 'n1',
        clock: systemClock,
        tokenFile: file('bad-token'),
      });
      const batch = [new OutboxMachine().outbox.append(fact(1))];
      await expect(webhook.send(batch, new AbortController().signal)).rejects.toThrow('holds no token');
      webhook.close();
    }
    expect(receiver.requests).toEqual([]);
  });
});

test('R02 R04 a receiver at random: 1,000 facts arrive once and in order', async () => {
  const receiver = await startReceiver();
  const random = new SeededRandom(11);
  for (let index = 0; index < 60; index++) {
    receiver.answerNext(
      random.pick([
        {},
        {},
        { status: 503 },
        { drop: 'cut', store: true },
        { drop: 'cut', store: false },
        { status: 500, store: true },
      ]),
    );
  }
  const { append, outbox } = startReporter(receiver.url, {}, { ...fast, batch: 17 });
  for (let round = 0; round < 10; round++) {
    append(100);
    await receiver.until(() => receiver.events.length >= (round + 1) * 50);
  }
  await until(() => receiver.events.length === 1_000 && outbox.stats().waiting === 0);
  expect(numbers(receiver)).toEqual(upTo(1_000));
  expect(receiver.forks).toEqual([]);
});

/** Waits for a state of ours that no request announces. */
async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error('it did not come to that within 10 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function fail(): never {
  throw new Error('expected something to be there');
}
