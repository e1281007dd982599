// Goal: whatever a client sends ends in an answer or a closed connection, and changes nothing that it may not change.
// Method: the real API on a real unix socket, over an agent that only remembers what it was asked.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startApi } from '../../../src/agent/api/server.ts';
import { SocketError, SocketInUseError } from '../../../src/agent/api/socket.ts';
import { AgentError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/base/system-clock.ts';
import { call, raw, startFixture } from '../../support/api-fixture.ts';
import { exampleEvent, exampleRole, exampleStatus, FakeControl } from '../../support/fake-control.ts';

class Refusal extends AgentError {
  readonly code = 'QUORUM_WOULD_BE_LOST';
}

test('reads answer with the views of the agent', async () => {
  await using fixture = await startFixture();
  const { socket } = fixture;
  expect((await call(socket, 'GET', '/v1/status')).json).toEqual(exampleStatus());
  expect((await call(socket, 'GET', '/v1/plan')).json).toEqual(exampleStatus().plan);
  expect((await call(socket, 'GET', '/v1/why')).json).toMatchObject({ refusals: [{ what: 'stop' }] });
  expect((await call(socket, 'GET', '/v1/role')).json).toEqual(exampleRole());
  const metrics = await call(socket, 'GET', '/metrics');
  expect(metrics).toMatchObject({ status: 200, text: '# nothing\n' });
});

const memberId = '8e9e05c52164694d';
const commands: readonly [path: string, body: unknown, method: string, request: unknown][] = [
  ['/v1/stop', undefined, 'stop', { force: false, dryRun: false }],
  ['/v1/stop', { force: true, dryRun: true }, 'stop', { force: true, dryRun: true }],
  ['/v1/start', { acceptLogRegression: 'a3' }, 'start', { acceptLogRegression: 'a3', dryRun: false }],
  ['/v1/shutdown', undefined, 'shutdown', { dryRun: false }],
  ['/v1/start', {}, 'start', { dryRun: false }],
  ['/v1/pause', { reason: 'work' }, 'pause', { forMs: 14_400_000, reason: 'work' }],
  ['/v1/pause', { forMs: 60_000, reason: 'work' }, 'pause', { forMs: 60_000, reason: 'work' }],
  ['/v1/resume', undefined, 'resume', {}],
  ['/v1/reload', undefined, 'reload', {}],
  ['/v1/found', { dryRun: true }, 'found', { dryRun: true, alone: false }],
  ['/v1/found/prepare', undefined, 'foundPrepare', {}],
  ['/v1/found/list', { lines: ['n1 http://a:1 x'] }, 'foundList', { lines: ['n1 http://a:1 x'], dryRun: false }],
  ['/v1/adopt', { newClusterId: 'cdf8' }, 'adopt', { dryRun: false, newClusterId: 'cdf8' }],
  ['/v1/adopt', undefined, 'adopt', { dryRun: false, newClusterId: undefined }],
  ['/v1/confirm-removed', { memberId }, 'confirmRemoved', { memberId }],
  ['/v1/reject-removal', { memberId }, 'rejectRemoval', { memberId }],
  ['/v1/events/skip', { seq: 7, reason: 'gone' }, 'skipEvent', { seq: 7, reason: 'gone' }],
  ['/v1/role/switch-source', { file: '/r' }, 'switchSource', { file: '/r', accept: false, dryRun: false }],
  [
    '/v1/role/set',
    { role: 'leaving' },
    'set',
    {
      role: 'leaving',
      grantId: undefined,
      endpoints: undefined,
      acceptZeroTolerance: false,
      withoutRecord: false,
      dryRun: false,
    },
  ],
  [
    '/v1/role/set',
    { role: 'none', grantId: 'g', endpoints: [], acceptZeroTolerance: true, dryRun: true },
    'set',
    { role: 'none', grantId: 'g', endpoints: [], acceptZeroTolerance: true, withoutRecord: false, dryRun: true },
  ],
];

test.each(commands)('POST %s with %j reaches %s as %j', async (path, body, method, request) => {
  await using fixture = await startFixture();
  const answer = await call(fixture.socket, 'POST', path, body);
  expect(answer.status).toBe(200);
  expect(answer.json).toMatchObject({ lines: [expect.stringContaining(method)] });
  expect(fixture.control.calls).toEqual([{ method, request }]);
});

const allPosts = [...new Set(commands.map(([path]) => path))];
const badBodies: readonly [name: string, body: string, status: number][] = [
  ['no JSON', '{', 400],
  ['a text', '"x"', 400],
  ['a list', '[]', 400],
  ['a number', '5', 400],
  ['null bytes', '\u0000', 400],
  ['an unknown field', '{"dryrun":true}', 400],
  ['__proto__', '{"__proto__":{"dryRun":true,"force":true}}', 400],
  ['an escaped __proto__', '{"\\u005f_proto__":{"force":true}}', 400],
  ['constructor', '{"constructor":{"prototype":{"force":true}}}', 400],
  ['a key twice', '{"dryRun":true,"dryRun":false}', 400],
  ['a key twice, once escaped', '{"dryRun":true,"\\u0064ryRun":false}', 400],
  ['deep nesting', `{"a":${'['.repeat(9)}${']'.repeat(9)}}`, 400],
  ['30 000 brackets', '['.repeat(30_000), 400],
  ['30 000 closed brackets', `${'['.repeat(30_000)}${']'.repeat(30_000)}`, 400],
  ['more than 64 KiB', `{"reason":"${'x'.repeat(66_000)}"}`, 413],
];

test.each(badBodies)('X08: every command refuses %s and does nothing', async (_name, body, status) => {
  await using fixture = await startFixture();
  for (const path of allPosts) {
    const answer = await call(fixture.socket, 'POST', path, body);
    expect([path, answer.status]).toEqual([path, status]);
    expect(answer.json).toEqual({
      code: expect.stringMatching(/^API_/),
      message: expect.stringMatching(/./),
      hint: '',
    });
  }
  expect(fixture.control.calls).toEqual([]);
  expect(Object.prototype).not.toHaveProperty('force');
});

const badFields: readonly [path: string, body: unknown][] = [
  ['/v1/stop', { force: 'yes' }],
  ['/v1/stop', { force: 1 }],
  ['/v1/stop', { dryRun: null }],
  ['/v1/start', { dryRun: 'false' }],
  ['/v1/pause', {}],
  ['/v1/pause', { reason: '' }],
  ['/v1/pause', { reason: '  ' }],
  ['/v1/pause', { reason: 'a\nb' }],
  ['/v1/pause', { reason: '\u001b[2J' }],
  ['/v1/pause', { reason: 'x'.repeat(501) }],
  ['/v1/pause', { reason: 'x', forMs: 0 }],
  ['/v1/pause', { reason: 'x', forMs: -1 }],
  ['/v1/pause', { reason: 'x', forMs: 1.5 }],
  ['/v1/pause', { reason: 'x', forMs: 8 * 86_400_000 }],
  ['/v1/pause', { reason: 'x', forMs: '4h' }],
  ['/v1/resume', { now: true }],
  ['/v1/role/switch-source', { file: 'role.yaml' }],
  ['/v1/role/switch-source', { file: '/a\u0000b' }],
  ['/v1/role/set', { role: 'king' }],
  ['/v1/role/set', { role: 'none', endpoints: ['file:///etc/passwd'] }],
  ['/v1/role/set', { role: 'none', grantId: '' }],
  ['/v1/reload', { file: '/etc/passwd' }],
  ['/v1/found', { dryRun: 0 }],
  ['/v1/found/prepare', { name: 'n1' }],
  ['/v1/found/list', {}],
  ['/v1/found/list', { lines: [] }],
  ['/v1/found/list', { lines: 'n1' }],
  ['/v1/found/list', { lines: [''] }],
  ['/v1/found/list', { lines: ['a\nb'] }],
  ['/v1/found/list', { lines: Array.from({ length: 65 }, () => 'n') }],
  ['/v1/adopt', { newClusterId: '0xcdf8' }],
  ['/v1/adopt', { newClusterId: '' }],
  ['/v1/adopt', { newClusterId: '11112222333344445' }],
  ['/v1/confirm-removed', {}],
  ['/v1/confirm-removed', { memberId: '8E9E' }],
  ['/v1/confirm-removed', { memberId: 8 }],
  ['/v1/reject-removal', { memberId: '../x' }],
  ['/v1/reject-removal', { memberId: ['8e9e'] }],
  ['/v1/events/skip', { seq: 0, reason: 'x' }],
  ['/v1/events/skip', { seq: 1 }],
  ['/v1/events/skip', { seq: 1e300, reason: 'x' }],
];

test.each(badFields)('POST %s refuses %j, names the field, and does nothing', async (path, body) => {
  await using fixture = await startFixture();
  const answer = await call(fixture.socket, 'POST', path, body);
  expect(answer).toMatchObject({ status: 400, json: { code: 'API_BAD_REQUEST' } });
  expect(fixture.control.calls).toEqual([]);
});

test.each([
  ['/v1/status?x=1', 400],
  ['/v1/events?limit=0', 400],
  ['/v1/events?limit=1001', 400],
  ['/v1/events?limit=ten', 400],
  ['/v1/events?after=-1', 400],
  ['/v1/events?limit=1&limit=2', 400],
  ['/v1/events?follow=1', 400],
  ['/v1/events?__proto__=1', 400],
  ['/v1/logs?lines=10001', 400],
  ['/v1/logs?life=0', 400],
  ['/v1/logs?life=1&follow=true', 409],
  ['/v1/nothing', 404],
  ['/v1/stop', 404],
  [`/${'x'.repeat(2000)}`, 404],
  ['/v1/%ff', 400],
])('GET %s is answered with %i', async (path, status) => {
  await using fixture = await startFixture();
  const answer = await call(fixture.socket, 'GET', path);
  expect(answer.status).toBe(status);
  expect(answer.json).toMatchObject({ code: expect.any(String), message: expect.any(String) });
});

test('a refusal of the agent is 409 with code, message, causes and hint', async () => {
  await using fixture = await startFixture();
  fixture.control.failure = new Refusal('2 of 3 voters would not answer', {
    cause: new Error('n3 is silent'),
    hint: 'Use --force.',
  });
  expect(await call(fixture.socket, 'POST', '/v1/stop')).toMatchObject({
    status: 409,
    json: {
      code: 'QUORUM_WOULD_BE_LOST',
      message: '2 of 3 voters would not answer: n3 is silent',
      hint: 'Use --force.',
    },
  });
});

test.each([new Error('secret of the inside'), 'a text', null, Object.create(null), { statusCode: 99_999 }])(
  'I28: an unforeseen %s is 500, tells nothing of the inside, and the next request is served',
  async (failure) => {
    await using fixture = await startFixture();
    for (const path of ['/v1/status', '/v1/plan', '/v1/why', '/v1/events', '/v1/logs', '/metrics']) {
      fixture.control.failure = failure ?? new Error('null');
      const answer = await call(fixture.socket, 'GET', path);
      expect(answer).toMatchObject({ status: 500, json: { code: 'API_INTERNAL' } });
      expect(answer.text).not.toContain('secret');
    }
    expect((await call(fixture.socket, 'GET', '/v1/status')).status).toBe(200);
  },
);

test('only JSON is taken: another content type, a packed body and a form are refused', async () => {
  await using fixture = await startFixture();
  const { socket } = fixture;
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'nonsense']) {
    const answer = await call(socket, 'POST', '/v1/stop', '{}', { 'content-type': type });
    expect([type, answer.status]).toEqual([type, 415]);
  }
  const packed = await call(socket, 'POST', '/v1/stop', '\u001f\u008b\b', { 'content-encoding': 'gzip' });
  expect(packed.status).toBe(400);
  expect(fixture.control.calls).toEqual([]);
});

test('X09: a body of 1 GB is cut at the limit, announced or not, and costs no memory', async () => {
  await using fixture = await startFixture();
  const before = process.memoryUsage().rss;
  const announced = raw(
    fixture.socket,
    `POST /v1/stop HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${2 ** 30}\r\n\r\n`,
  );
  const unannounced = raw(
    fixture.socket,
    'POST /v1/stop HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  const sent = [
    await pour(announced.socket, 'x'.repeat(65_536)),
    await pour(unannounced.socket, `10000\r\n${'x'.repeat(65_536)}\r\n`),
  ];
  expect(await announced.closed).toContain('413');
  expect(await unannounced.closed).toContain('413');
  expect(Math.max(...sent)).toBeLessThan(64 * 1024 * 1024);
  expect(process.memoryUsage().rss - before).toBeLessThan(128 * 1024 * 1024);
  expect(fixture.control.calls).toEqual([]);
});

/** Writes until 1 GB went out or the other side closed; returns how much that was. */
function pour(socket: ReturnType<typeof connect>, chunk: string): Promise<number> {
  return new Promise((resolve) => {
    let sent = 0;
    const more = (): void => {
      while (!socket.destroyed && sent < 2 ** 30) {
        sent += chunk.length;
        if (!socket.write(chunk)) return void socket.once('drain', more);
      }
      resolve(sent);
    };
    socket.once('close', () => resolve(sent));
    more();
  });
}

test.each([
  ['nothing at all', ''],
  ['half a request line', 'GET /v1/sta'],
  ['headers without an end', 'POST /v1/stop HTTP/1.1\r\nHost: a\r\nX-A: b\r\n'],
  [
    'a body that never comes',
    'POST /v1/stop HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  ],
])('X10: a client that sends %s is cut off by the clock', async (_name, bytes) => {
  // Each timeout alone must do: the other one is far away.
  const requestTimeoutMs = bytes.includes('\r\n\r\n') ? 300 : 60_000;
  await using fixture = await startFixture({ headersTimeoutMs: 200, requestTimeoutMs, checkingIntervalMs: 50 });
  const client = raw(fixture.socket, bytes);
  await client.closed;
  expect((await call(fixture.socket, 'GET', '/v1/status')).status).toBe(200);
  expect(fixture.control.calls).toEqual([]);
});

test.each([
  '\u0000\u0001\u0002',
  'GET\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  `GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
])('X08: bytes that are no HTTP (%j) close the connection and nothing else', async (bytes) => {
  await using fixture = await startFixture();
  expect(await raw(fixture.socket, bytes).closed).toMatch(/^HTTP\/1.1 4\d\d|^$/);
  expect((await call(fixture.socket, 'GET', '/v1/status')).status).toBe(200);
});

test('X10: beyond the cap connections are closed at once, and places become free again', async () => {
  await using fixture = await startFixture({ maxConnections: 8, headersTimeoutMs: 60_000, requestTimeoutMs: 60_000 });
  const held = Array.from({ length: 300 }, () => raw(fixture.socket, ''));
  let closed = 0;
  for (const each of held) void each.closed.then(() => closed++);
  await vi.waitFor(() => expect(closed).toBe(292), 10_000);
  await expect(call(fixture.socket, 'GET', '/v1/status')).rejects.toThrow();
  for (const each of held) each.socket.destroy();
  await vi.waitFor(async () => expect((await call(fixture.socket, 'GET', '/v1/status')).status).toBe(200), 10_000);
});

test('a command that hangs is answered with 503, which says that it may still happen', async () => {
  await using fixture = await startFixture({ handlerTimeoutMs: 50 });
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.control.gate = promise;
  expect(await call(fixture.socket, 'POST', '/v1/stop')).toMatchObject({ status: 503, json: { code: 'API_TIMEOUT' } });
  resolve();
});

test('the socket is 0660 in a directory of 0750, which is narrowed if it was wider, and the umask is as before', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'api-'));
  mkdirSync(join(directory, 'run'));
  chmodSync(join(directory, 'run'), 0o777);
  const umask = process.umask();
  const socketPath = join(directory, 'run', 'agent.sock');
  const api = await startApi({ control: new FakeControl(), socketPath, clock: systemClock, log: silentLog });
  try {
    expect(statSync(socketPath).mode & 0o777).toBe(0o660);
    expect(statSync(join(directory, 'run')).mode & 0o777).toBe(0o750);
    expect(process.umask()).toBe(umask);
  } finally {
    await api.close();
  }
  expect(existsSync(socketPath)).toBe(false);
  rmSync(directory, { recursive: true });
});

test('A22: a second agent is refused while the first answers, and takes over a socket whose owner is gone', async () => {
  await using fixture = await startFixture();
  const options = { control: new FakeControl(), socketPath: fixture.socket, clock: systemClock, log: silentLog };
  await expect(startApi(options)).rejects.toThrow(SocketInUseError);
  expect((await call(fixture.socket, 'GET', '/v1/status')).status).toBe(200);

  const stale = join(fixture.directory, 'run', 'stale.sock');
  await leaveStaleSocket(stale);
  const second = await startApi({ ...options, socketPath: stale });
  expect((await call(stale, 'GET', '/v1/status')).status).toBe(200);
  await second.close();
});

/** A socket file that nobody listens on, as a killed agent leaves it. */
async function leaveStaleSocket(path: string): Promise<void> {
  const { linkSync } = await import('node:fs');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.live`, resolve));
  linkSync(`${path}.live`, path);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  expect(statSync(path).isSocket()).toBe(true);
}

test('a file in the place of the socket is refused and left alone', async () => {
  await using fixture = await startFixture();
  const socketPath = join(fixture.directory, 'run', 'file.sock');
  writeFileSync(socketPath, 'precious');
  const options = { control: new FakeControl(), socketPath, clock: systemClock, log: silentLog };
  await expect(startApi(options)).rejects.toThrow(SocketError);
  expect(statSync(socketPath).size).toBe(8);
});

test('following events resumes after a number, without a gap and without a double', async () => {
  await using fixture = await startFixture();
  const { control, socket } = fixture;
  control.eventViews = Array.from({ length: 2500 }, (_, index) => exampleEvent(index + 1));
  const stream = raw(socket, 'GET /v1/events?follow=true&after=100 HTTP/1.1\r\nHost: a\r\n\r\n');
  let text = '';
  stream.socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await vi.waitFor(() => expect(control.eventListeners.size).toBe(1));
  control.emit(exampleEvent(2501, { kind: 'with\nnewline' }));
  await vi.waitFor(() => expect(text).toContain('id: 77/2501\n'));
  const ids = [...text.matchAll(/^id: 77\/(\d+)$/gm)].map((match) => Number(match[1]));
  expect(ids).toEqual(Array.from({ length: 2401 }, (_, index) => index + 101));
  stream.socket.destroy();
  await vi.waitFor(() => expect(control.eventListeners.size).toBe(0));
});

test.each(['2', '77/2'])('Last-Event-ID %s resumes as well', async (id) => {
  await using fixture = await startFixture();
  fixture.control.eventViews = [1, 2, 3].map((seq) => exampleEvent(seq));
  const stream = raw(fixture.socket, `GET /v1/events?follow=true HTTP/1.1\r\nHost: a\r\nLast-Event-ID: ${id}\r\n\r\n`);
  let text = '';
  stream.socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await vi.waitFor(() => expect(text).toContain('id: 77/3\n'));
  expect(text).not.toContain('id: 77/2\n');
  stream.socket.destroy();
});

test('following the log shows lines that were written while the last ones were read exactly once', async () => {
  await using fixture = await startFixture();
  const { control, socket } = fixture;
  for (const line of ['one', 'two', 'two']) control.writeLog(line);
  const { promise, resolve } = Promise.withResolvers<void>();
  control.gate = promise;
  const stream = raw(socket, 'GET /v1/logs?follow=true HTTP/1.1\r\nHost: a\r\n\r\n');
  let text = '';
  stream.socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await vi.waitFor(() => expect(control.logListeners.size).toBe(1));
  control.writeLog('three');
  control.writeLog('four');
  resolve();
  await vi.waitFor(() => expect(text).toContain('four'));
  control.writeLog('five\nsix');
  await vi.waitFor(() => expect(text).toContain('five'));
  const lines = [...text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''));
  expect(lines).toEqual(['one', 'two', 'two', 'three', 'four', 'five\nsix']);
  stream.socket.destroy();
});

test('I30: a reader that does not read is cut off, and more than the cap of readers are refused', async () => {
  await using fixture = await startFixture({ maxStreams: 2, maxUnreadBytes: 100_000 });
  const { control, socket } = fixture;
  const deaf = raw(socket, 'GET /v1/logs?follow=true HTTP/1.1\r\nHost: a\r\n\r\n');
  deaf.socket.pause();
  const other = raw(socket, 'GET /v1/logs?follow=true HTTP/1.1\r\nHost: a\r\n\r\n');
  await vi.waitFor(() => expect(control.logListeners.size).toBe(2));
  expect(await call(socket, 'GET', '/v1/events?follow=true')).toMatchObject({
    status: 409,
    json: { code: 'API_TOO_MANY_STREAMS' },
  });
  other.socket.destroy();
  await vi.waitFor(() => expect(control.logListeners.size).toBe(1));
  for (let index = 0; index < 2000 && control.logListeners.size > 0; index++) control.writeLog('x'.repeat(10_000));
  expect(control.logListeners.size).toBe(0);
  deaf.socket.destroy();
});

test('closing the API ends streams and hanging clients at once', async () => {
  const fixture = await startFixture();
  const stream = raw(fixture.socket, 'GET /v1/events?follow=true HTTP/1.1\r\nHost: a\r\n\r\n');
  const silent = raw(fixture.socket, '');
  await vi.waitFor(() => expect(fixture.control.eventListeners.size).toBe(1));
  await fixture[Symbol.asyncDispose]();
  await Promise.all([stream.closed, silent.closed]);
  expect(fixture.control.eventListeners.size).toBe(0);
  expect(connect(fixture.socket).on('error', () => {})).toBeDefined();
});
