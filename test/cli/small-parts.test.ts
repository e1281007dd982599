import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isForbiddenHost, parseEndpoint, parseListenAddress } from '../../src/cli/endpoint.ts';
import { environmentOf } from '../../src/cli/environment.ts';
import { printable } from '../../src/cli/printable.ts';
import { table } from '../../src/cli/table.ts';
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/cli/units.ts';

test('durations and sizes are read back as they are written', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 39), (value) => {
      expect(parseDuration(formatDuration(value))).toBe(value);
      expect(parseSize(formatSize(value))).toBe(value);
    }),
  );
  expect([parseDuration('500ms'), parseDuration('2h'), parseSize('64MiB')]).toEqual([500, 7_200_000, 67_108_864]);
  for (const bad of ['', '1', 's', '1 s', '-1s', '1.5s', '1e3s', '1h1m', '1MB', '1constructor', '٣s']) {
    expect([bad, parseDuration(bad), parseSize(bad)]).toEqual([bad, undefined, undefined]);
  }
});

test('X13: an endpoint is scheme, host and port and nothing else', () => {
  expect(parseEndpoint('https://n1.example.com:2380')).toEqual({
    scheme: 'https',
    host: 'n1.example.com',
    port: 2380,
    isAddress: false,
  });
  expect(parseEndpoint('http://[2001:db8::1]:2380')).toEqual({
    scheme: 'http',
    host: '2001:db8::1',
    port: 2380,
    isAddress: true,
  });
  expect(parseListenAddress('[::1]:9100')).toEqual({ host: '::1', port: 9100 });
  expect(parseListenAddress('localhost:9100')).toBeUndefined();
});

test('X13: link-local and multicast addresses are refused, however they are written', () => {
  for (const host of [
    '169.254.169.254',
    'fe80::1',
    'febf::1',
    '::ffff:169.254.169.254',
    '0:0:0:0:0:ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '224.0.0.1',
    '255.255.255.255',
    'ff02::1',
  ]) {
    expect([host, isForbiddenHost(host)]).toEqual([host, true]);
  }
  for (const host of ['10.0.0.1', '127.0.0.1', '192.168.1.1', '::1', '2001:db8::1', 'fd00::1', 'n1.example.com']) {
    expect([host, isForbiddenHost(host)]).toEqual([host, false]);
  }
});

test('fuzz: an endpoint that is accepted is what the URL class of the platform reads as well', () => {
  const hostish = fc.string({
    unit: fc.constantFrom(...'0123456789abcdefx.:[]-/@?#%\\ '.split('')),
    minLength: 1,
    maxLength: 24,
  });
  fc.assert(
    fc.property(hostish, fc.nat(70_000), (host, port) => {
      const endpoint = parseEndpoint(`http://${host}:${port}`);
      if (endpoint === undefined) return;
      const url = new URL(`http://${host}:${port}`);
      if (!endpoint.host.includes(':')) expect(url.hostname).toBe(endpoint.host);
      expect([url.username, url.pathname, url.search, url.hash]).toEqual(['', '/', '', '']);
      expect(Number(url.port || 80)).toBe(endpoint.port);
    }),
    { numRuns: 5000 },
  );
});

test('X14: nothing printable() returns can move a cursor or begin a line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that there is none is the point
      expect(printable(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
    }),
  );
  expect(printable('x'.repeat(20), 5)).toBe('xxxxx… (20 characters)');
});

test('a table keeps its columns, whatever stands in the cells', () => {
  expect(
    table(
      [
        ['8e9e', 'n1'],
        ['9', 'a\n\u001b[2Jb'],
      ],
      ['member', 'name'],
    ),
  ).toBe('MEMBER  NAME\n8e9e    n1\n9       a\\n\\x1b[2Jb\n');
});

test('the environment: only what is documented, empty is not set, and the journal only if it is our output', () => {
  expect(
    environmentOf(
      { ETCD_NAME: 'x', ETCD_NODE_AGENT_CONFIG: '', JOURNAL_STREAM: '8:1', WATCHDOG_USEC: '30000000' },
      '8:2',
    ),
  ).toEqual({
    configFile: undefined,
    socket: undefined,
    journal: false,
    notifySocket: undefined,
    watchdogMs: 30_000,
    crashAt: undefined,
    path: '/usr/sbin:/usr/bin:/sbin:/bin',
  });
  expect(environmentOf({ JOURNAL_STREAM: '8:1', WATCHDOG_USEC: 'x' }, '8:1')).toMatchObject({
    journal: true,
    watchdogMs: undefined,
    crashAt: undefined,
  });
});
