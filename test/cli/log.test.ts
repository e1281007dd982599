// Goal: a log line is one line of JSON, carries no secret, and no value in it can pretend to be another line (X14, X15).

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { createLog, type LogOptions } from '../../src/cli/log.ts';

function capture(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const clock = { wallMs: () => 0, monotonicMs: () => 0, after: () => () => {} };
  const root = createLog({ clock, level: 'debug', journal: false, write: (line) => lines.push(line), ...options });
  return { ...root, lines, last: () => JSON.parse(lines.at(-1)?.replace(/^<\d>/, '') ?? '') };
}

test('a line has level, time, the fields of the part and of the call, and the message', () => {
  const { log, lines } = capture();
  log.child({ part: 'supervisor' }).child({ life: 3 }).info({ pid: 7 }, 'etcd runs');
  expect(lines).toEqual([
    '{"level":"info","time":"1970-01-01T00:00:00.000Z","part":"supervisor","life":3,"pid":7,"msg":"etcd runs"}\n',
  ]);
});

test('under the journal each line begins with its priority', () => {
  const { log, lines } = capture({ journal: true });
  log.debug({}, 'a');
  log.info({}, 'b');
  log.warn({}, 'c');
  log.error({}, 'd');
  expect(lines.map((line) => line.slice(0, 3))).toEqual(['<7>', '<6>', '<4>', '<3>']);
});

test('the level holds for children that exist already, and can be changed', () => {
  const { log, lines, setLevel } = capture({ level: 'warn' });
  const child = log.child({ part: 'x' });
  child.info({}, 'unseen');
  setLevel('debug');
  child.debug({}, 'seen');
  expect(lines).toHaveLength(1);
});

const hostile = 'a\n<0>forged\r\u001b[2J\u009b31m\u2028\u202e{"level":"error"}\u0000';

test('X14: newlines, escapes and marks stay inside their line, in message, field, name and error', () => {
  const { log, lines } = capture({ journal: true });
  log.info({ [hostile]: hostile, list: [hostile], error: new Error(hostile) }, hostile);
  expect(lines).toHaveLength(1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there is none is the point
  expect(lines[0]?.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
  expect(lines[0]).toMatch(/^<6>\{/);
});

test('X14: a name of 1 MB is cut', () => {
  const { log, lines } = capture();
  const started = performance.now();
  log.info({ name: 'x'.repeat(2 ** 20), names: Array(100_000).fill('y') }, 'z'.repeat(2 ** 20));
  for (const evil of ['://', 'Bearer ', 'a:', '-----BEGIN PRIVATE KEY', '://a:b', ' '])
    log.info({ evil: evil.repeat(50_000) }, 'x');
  // Each takes milliseconds; an expression that backtracks takes seconds.
  expect(performance.now() - started).toBeLessThan(3000);
  expect(lines[0]?.length).toBeLessThan(30_000);
});

test('no field can pass for level, time or message', () => {
  const { log, last } = capture();
  log.error({ level: 'debug', time: 'never', msg: 'all is well' }, 'it burns');
  expect(last()).toMatchObject({
    level: 'error',
    msg: 'it burns',
    level_: 'debug',
    time_: 'never',
    msg_: 'all is well',
  });
});

test('X15: secrets are taken out by name and by form, at any depth', () => {
  const { log, lines } = capture();
  const canary = 'CANARY7f3a';
  const pem = `-----BEGIN EC PRIVATE KEY-----\n${canary}\n-----END EC PRIVATE KEY-----`;
  log.child({ token: canary }).info(
    {
      password: canary,
      bearerToken: canary,
      tls: { key: canary, privateKey: canary, nested: { clientSecret: canary, Authorization: canary } },
      url: `https://root:${canary}@10.0.0.1/`,
      header: `Bearer ${canary}`,
      file: pem,
      torn: pem.slice(0, 60),
      error: new Error(`cannot use ${pem}`, { cause: { cookie: canary } }),
      bytes: Buffer.from(canary),
    },
    'x',
  );
  expect(lines.join()).not.toContain(canary);
});

test('what is no secret stays readable', () => {
  const { log, last } = capture();
  log.info({ keyPath: '/tls/a.key', keys: 3, url: 'https://10.0.0.1:2380', id: 12n, at: new Date(0) }, 'x');
  expect(last()).toMatchObject({
    keyPath: '/tls/a.key',
    keys: 3,
    url: 'https://10.0.0.1:2380',
    id: '12',
    at: '1970-01-01T00:00:00.000Z',
  });
});

test('fuzz: any fields give exactly one line of JSON, also cyclic ones', () => {
  const { log, lines } = capture();
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  log.info({ cyclic }, 'x');
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true })),
      fc.string(),
      (fields, message) => {
        lines.length = 0;
        log.info(fields, message);
        expect(lines).toHaveLength(1);
        expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info' });
        expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1);
      },
    ),
    { numRuns: 500 },
  );
  silentLog.info({}, 'the silent log takes the same');
});
