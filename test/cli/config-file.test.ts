// Goal: a bad configuration of any field ends in an error that names line, column, field and what is wanted; a good one
// always gives the same frozen Config.
// Method: one correct file, into which one mistake after another is put.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { ConfigError, formatProblem } from '../../src/cli/config-error.ts';
import { loadConfig, parseConfig, readRunDir } from '../../src/cli/config-file.ts';
import { configSchemaJson } from '../../src/cli/config-schema.ts';

type Tree = { [key: string]: unknown };

/** Correct, with every section in it. */
function correct(): Tree {
  const files = (name: string) => ({ cert: `/tls/${name}.crt`, key: `/tls/${name}.key`, ca: '/tls/ca.crt' });
  return {
    node: { id: 'n1' },
    cluster: { name: 'blue' },
    dataRoot: '/srv/etcd',
    mustBeMount: true,
    stateDir: '/var/lib/agent',
    runDir: '/run/agent',
    etcd: {
      binaries: { '3.5.30': '/opt/etcd/3.5.30/etcd', '3.6.16': '/opt/etcd/3.6.16/etcd' },
      version: '3.5.30',
      name: 'one',
      peerUrl: 'https://10.0.0.1:2380',
      clientUrl: 'https://n1.example.com:2379',
      listenPeerUrls: ['https://0.0.0.0:2380'],
      listenClientUrls: ['https://10.0.0.1:2379', 'https://[::1]:2379'],
      metricsUrl: 'http://127.0.0.1:2381',
      flags: { 'quota-backend-bytes': 8_589_934_592, 'auto-compaction-retention': '1h', 'pre-vote': true },
      user: 'etcd',
      oomScoreAdjust: -500,
      stopGrace: '45s',
    },
    tls: { peer: files('peer'), server: files('server'), client: files('client') },
    role: { file: '/etc/agent/role.json' },
    upstream: {
      kind: 'webhook',
      url: 'https://hooks.example.com/a?b=c',
      tls: { ca: '/tls/up.crt' },
      tokenFile: '/tls/token',
    },
    metrics: { listen: '10.0.0.1:9379' },
    log: { level: 'debug' },
    archives: { keep: 3, minDays: 14 },
    outbox: { maxBytes: '32MiB', maxFacts: 5000, keepDays: 0 },
    timing: {
      idleTurn: '5s',
      probeInterval: '1s',
      probeDeadline: '2s',
      probeMisses: 3,
      statusInterval: '1m',
      listInterval: '30s',
      reportFirst: '200ms',
      reportMax: '5m',
    },
  };
}

const smallest = `
node: { id: n1 }
dataRoot: /srv/etcd
etcd: { binary: /usr/bin/etcd, peerUrl: 'http://10.0.0.1:2380', clientUrl: 'http://10.0.0.1:2379' }
role: { file: /etc/role.json }
`;

function problemsOf(text: string): readonly string[] {
  try {
    parseConfig(text, 'a.yaml');
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(formatProblem);
  }
}

/** The correct file with one field set (or, with undefined, left out). */
function withField(path: string, value: unknown): string {
  const tree = correct();
  const keys = path.split('/');
  const last = keys.pop() ?? '';
  let at: Tree = tree;
  for (const key of keys) at = at[key] as Tree;
  if (value === undefined) delete at[last];
  else Object.defineProperty(at, last, { value, enumerable: true, configurable: true });
  return stringify(tree);
}

test('a file with every field is read, and nothing of it can be changed afterwards', () => {
  const config = parseConfig(stringify(correct()), '/etc/a.yaml');
  expect(config).toMatchObject({
    file: '/etc/a.yaml',
    node: { id: 'n1' },
    etcd: {
      binary: '/opt/etcd/3.5.30/etcd',
      version: '3.5.30',
      name: 'one',
      flags: { 'quota-backend-bytes': '8589934592', 'auto-compaction-retention': '1h', 'pre-vote': 'true' },
      stopGraceMs: 45_000,
    },
    metrics: { listen: { host: '10.0.0.1', port: 9379 } },
    outbox: { maxBytes: 32 * 2 ** 20, maxFacts: 5000, keepDays: 0 },
    timing: { listIntervalMs: 30_000 },
  });
  expect(
    Object.isFrozen(config) && Object.isFrozen(config.etcd.flags) && Object.isFrozen(config.etcd.listenPeerUrls),
  ).toBe(true);
});

test('the smallest file gets the documented defaults', () => {
  expect(parseConfig(smallest, '/etc/a.yaml')).toEqual({
    file: '/etc/a.yaml',
    node: { id: 'n1' },
    cluster: { name: 'default' },
    dataRoot: '/srv/etcd',
    mustBeMount: false,
    stateDir: '/var/lib/etcd-node-agent',
    runDir: '/run/etcd-node-agent',
    etcd: {
      name: 'n1',
      binary: '/usr/bin/etcd',
      version: undefined,
      binaries: {},
      peerUrl: 'http://10.0.0.1:2380',
      clientUrl: 'http://10.0.0.1:2379',
      listenPeerUrls: ['http://10.0.0.1:2380'],
      listenClientUrls: ['http://10.0.0.1:2379'],
      metricsUrl: 'http://127.0.0.1:2381',
      flags: {},
      user: undefined,
      oomScoreAdjust: -900,
      stopGraceMs: 30_000,
    },
    tls: { peer: undefined, server: undefined, client: undefined },
    role: { file: '/etc/role.json' },
    upstream: { kind: 'none' },
    metrics: { listen: undefined },
    log: { level: 'info' },
    archives: { keep: 2, minDays: 7 },
    outbox: { maxBytes: 64 * 2 ** 20, maxFacts: 100_000, keepDays: 7 },
    timing: {
      idleTurnMs: 10_000,
      probeIntervalMs: 2000,
      probeDeadlineMs: 3000,
      probeMisses: 5,
      statusIntervalMs: 30_000,
      listIntervalMs: 60_000,
      reportFirstMs: 1000,
      reportMaxMs: 60_000,
    },
  });
});

const badLabels = ['', 'N1', '-a', 'a-', 'a.b', 'a/b', '..', 'a b', 'é', 'x'.repeat(64), 'a\nb', 5, null, true, [], {}];
const badPaths = [
  '',
  '/',
  'srv',
  './srv',
  '~/srv',
  '//srv',
  '/srv/',
  '/srv//x',
  '/srv/../etc',
  '/srv/./x',
  '/srv/..',
  '/srv\n/x',
  '/srv/\u001b[2J',
  `/${'x'.repeat(256)}`,
  `/${'x/'.repeat(600)}y`,
  5,
  null,
  [],
  {},
];
const badUrls = [
  '',
  'n1:2380',
  'https://',
  'https://10.0.0.1',
  'https://10.0.0.1:0',
  'https://10.0.0.1:65536',
  'https://10.0.0.1:02380',
  'https://10.0.0.1:2380/',
  'https://10.0.0.1:2380/x',
  'https://10.0.0.1:2380?x',
  'https://10.0.0.1:2380#x',
  'https://a:b@10.0.0.1:2380',
  'https://a@10.0.0.1:2380',
  'unix:///run/x',
  'unixs://localhost:1',
  'file:///etc/passwd',
  'ftp://10.0.0.1:2380',
  'HTTPS://10.0.0.1:2380',
  'https://N1:2380',
  'https://10.0.0.256:2380',
  'https://0x7f.0.0.1:2380',
  'https://127.1:2380',
  'https://2130706433:2380',
  'https://010.0.0.1:2380',
  'https://[::g]:2380',
  'https://::1:2380',
  'https://-a:2380',
  'https://a..b:2380',
  ' https://10.0.0.1:2380',
  'https://10.0.0.1:2380\n',
  'https://10.0.0.1\n:2380',
  'https://0.0.0.0:2380',
  'https://[::]:2380',
  'https://169.254.169.254:2380',
  'https://[fe80::1]:2380',
  'https://[::ffff:169.254.169.254]:2380',
  'https://[::ffff:a9fe:a9fe]:2380',
  'https://224.0.0.1:2380',
  5,
  null,
  [],
  {},
];
const badListenUrls = badUrls.filter((url) => url !== 'https://0.0.0.0:2380' && url !== 'https://[::]:2380');
const badWebhooks = [
  '',
  'hooks.example.com',
  'ftp://a/',
  'file:///etc/passwd',
  'unix:/run/x',
  'https://',
  'https:///x',
  'https://a:b@h/',
  'https://u@h/',
  'https://h/#f',
  'https://h/a b',
  'https://h\\@evil/',
  'https://H/',
  'https://169.254.169.254/latest',
  'http://[::ffff:169.254.169.254]/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0.0.0.0/',
  'https://h:99999/',
  `https://h/${'x'.repeat(2100)}`,
  'https://h/\n',
  5,
  null,
];
const badDurations = ['', '5', '1.5s', '-1s', '1 s', '1S', '1h30m', '1w', 'soon', `${'9'.repeat(20)}s`, 5, null, true];
const badWholes = [-1_000_000, 1e9, 1.5, '3', null, true, [], Number.NaN];
const badSections = [null, 'x', 5, true, []];

const badFields: readonly (readonly [path: string, values: readonly unknown[]])[] = [
  ['node', badSections],
  ['node/id', badLabels],
  ['cluster', badSections],
  ['cluster/name', badLabels],
  ['dataRoot', badPaths],
  ['stateDir', badPaths],
  ['runDir', badPaths],
  ['mustBeMount', ['yes', 1, null, 'true']],
  ['etcd', badSections],
  [
    'etcd/binaries',
    ['x', 5, null, [], {}, { '3.5': '/x' }, { latest: '/x' }, { '3.5.30': 'etcd' }, { '3.5.30': null }],
  ],
  ['etcd/version', ['3.5', '3.7.3', 'latest', 3.5, null, true]],
  ['etcd/name', badLabels],
  ['etcd/peerUrl', badUrls],
  ['etcd/clientUrl', badUrls],
  ['etcd/metricsUrl', [...badListenUrls, 'http://n1.example.com:2381']],
  [
    'etcd/listenPeerUrls',
    [[], 'https://10.0.0.1:2380', ['https://n1.example.com:2380'], Array(9).fill('https://10.0.0.1:1'), null],
  ],
  ['etcd/listenClientUrls', badListenUrls.map((url) => [url])],
  [
    'etcd/flags',
    [
      '--x',
      5,
      null,
      [],
      { '--x': 1 },
      { 'x=y': 1 },
      { X: 1 },
      { a: null },
      { a: [] },
      { a: {} },
      { a: 'x\ny' },
      { a: 2 ** 60 },
      { 'wal-dir': '/x' },
    ],
  ],
  ['etcd/user', ['', 'root!', 'a b', '-x', 0, null, 'x'.repeat(40), '../x']],
  ['etcd/oomScoreAdjust', [-1001, 1001, ...badWholes]],
  ['etcd/stopGrace', ['19s', '11m', '0s', ...badDurations]],
  ['tls', badSections],
  ['tls/peer', badSections],
  ['tls/server', badSections],
  ['tls/client', badSections],
  ['tls/peer/cert', badPaths],
  ['tls/peer/key', badPaths],
  ['tls/peer/ca', badPaths],
  ['tls/server/cert', badPaths],
  ['tls/client/key', badPaths],
  ['role', badSections],
  ['role/file', badPaths],
  ['upstream', badSections],
  ['upstream/kind', ['grpc', 'Webhook', '', 5, null]],
  ['upstream/url', badWebhooks],
  ['upstream/tokenFile', badPaths],
  ['upstream/tls', badSections],
  ['upstream/tls/ca', badPaths],
  ['upstream/tls/cert', badPaths],
  ['metrics', badSections],
  [
    'metrics/listen',
    ['', '9379', ':9379', 'n1:9379', '10.0.0.1', '10.0.0.1:0', '10.0.0.1:x', 'http://10.0.0.1:1', 5, null],
  ],
  ['log', badSections],
  ['log/level', ['', 'Info', 'trace', 30, null]],
  ['archives', badSections],
  ['archives/keep', [0, 101, ...badWholes]],
  ['archives/minDays', [0, 366, ...badWholes]],
  ['outbox', badSections],
  ['outbox/maxBytes', ['1KiB', '2GiB', '64MB', '64', 64, null, '']],
  ['outbox/maxFacts', [99, 1_000_001, 1.5, '3', null]],
  ['outbox/keepDays', [-1, 91, 1.5, '3', null]],
  ['timing', badSections],
  ['timing/idleTurn', ['499ms', '301s', ...badDurations]],
  ['timing/probeInterval', ['199ms', '61s', ...badDurations]],
  ['timing/probeDeadline', ['199ms', '61s', ...badDurations]],
  ['timing/probeMisses', [1, 101, ...badWholes]],
  ['timing/statusInterval', ['4999ms', '11m', ...badDurations]],
  ['timing/listInterval', ['1999ms', '11m', ...badDurations]],
  ['timing/reportFirst', ['99ms', '61s', ...badDurations]],
  ['timing/reportMax', ['999ms', '2h', ...badDurations]],
];

test.each(badFields)(
  '%s: every bad value is refused, at its field, and the error says what is wanted',
  (path, values) => {
    for (const value of values) {
      const problems = problemsOf(withField(path, value));
      const field = path.replaceAll('/', '.');
      const about = problems.filter((problem) => problem.includes(`: ${field}`));
      expect([value, problems.length > 0, about.length > 0], problems.join('\n')).toEqual([value, true, true]);
      for (const problem of problems) {
        expect(problem).toMatch(/^a\.yaml:\d+:\d+: [\w.=-]+: (is|has|stands|would|want|overlaps|must)/);
        expect(problem).toContain('want');
        // biome-ignore lint/suspicious/noControlCharactersInRegex: that there is none is the point
        expect(problem).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      }
    }
  },
);

test('every field of the schema is in the table of bad values above', () => {
  const tried = new Set(badFields.map(([path]) => path.replaceAll('/', '.')));
  const untried = fieldsOf(configSchemaJson()).filter((field) => !tried.has(field));
  // The other files of TLS are of the same kind as those that are tried; binary excludes binaries, tried below.
  expect(untried.sort()).toEqual([
    'etcd.binary',
    'tls.client.ca',
    'tls.client.cert',
    'tls.server.ca',
    'tls.server.key',
    'upstream.tls.key',
  ]);
});

/** All fields of a JSON schema, by path. */
function fieldsOf(schema: unknown, path: readonly string[] = []): readonly string[] {
  const at = (key: string) => (typeof schema === 'object' && schema !== null ? Reflect.get(schema, key) : undefined);
  const choices = at('oneOf') ?? at('anyOf');
  if (Array.isArray(choices)) return [...new Set(choices.flatMap((choice) => fieldsOf(choice, path)))];
  const properties = Object.entries(at('properties') ?? {});
  const own = path.length === 0 ? [] : [path.join('.')];
  return [...own, ...properties.flatMap(([key, inner]) => fieldsOf(inner, [...path, key]))];
}

test.each([
  ['node/id', 'node.id'],
  ['dataRoot', 'dataRoot'],
  ['etcd/peerUrl', 'etcd.peerUrl'],
  ['etcd/clientUrl', 'etcd.clientUrl'],
  ['etcd/binaries', 'etcd.binary'],
  ['etcd/version', 'etcd.version'],
  ['tls/peer', 'tls.peer'],
  ['tls/server', 'tls.server'],
  ['tls/client', 'tls.client'],
  ['tls/peer/key', 'tls.peer.key'],
  ['role/file', 'role.file'],
  ['upstream/url', 'upstream.url'],
  ['upstream/kind', 'upstream.kind'],
  ['etcd/listenClientUrls', 'etcd.listenClientUrls'],
])('%s cannot be left out of that file', (path, field) => {
  expect(problemsOf(withField(path, undefined)).join('\n')).toMatch(
    new RegExp(`: ${field.replaceAll('.', '\\.')}: is`),
  );
});

test.each([
  ['etcd/binary', '/usr/bin/etcd', /etcd\.binaries: stands beside binary/],
  ['tls', {}, /tls\.peer: is missing; etcd\.peerUrl is https/],
  ['etcd/peerUrl', 'http://10.0.0.1:2380', /tls\.peer: is given, but etcd\.peerUrl is not https/],
  ['etcd/listenPeerUrls', ['http://0.0.0.0:2380'], /etcd\.listenPeerUrls\.0: is http while peerUrl is https/],
  [
    'etcd/listenClientUrls',
    ['https://10.0.0.1:2380'],
    /etcd\.listenClientUrls\.0: has port 2380, as etcd\.listenPeerUrls\.0 has/,
  ],
  ['etcd/metricsUrl', 'http://127.0.0.1:2380', /etcd\.metricsUrl: has port 2380/],
  ['metrics/listen', '10.0.0.1:2379', /metrics\.listen: has port 2379/],
  ['stateDir', '/srv/etcd', /stateDir: overlaps: dataRoot and stateDir/],
  ['stateDir', '/srv/etcd/state', /stateDir: overlaps/],
  ['runDir', '/srv', /runDir: overlaps/],
  ['runDir', `/run/${'x'.repeat(95)}`, /runDir: has 100 bytes; want at most 96/],
  ['timing/reportMax', '1s', /^$/],
  ['upstream/url', 'http://hooks.example.com/', /upstream\.tokenFile: would cross the network readable/],
  ['upstream/url', 'http://127.0.0.1:8080/', /upstream\.tls: is given, but url is http/],
])('fields are compared with each other: %s = %j', (path, value, expected) => {
  expect(problemsOf(withField(path, value)).join('\n')).toMatch(expected);
});

test('a certificate without its key, and a key without its certificate, are refused', () => {
  expect(problemsOf(withField('upstream/tls', { cert: '/a' })).join()).toContain('upstream.tls.key: is missing');
  expect(problemsOf(withField('upstream/tls', { key: '/a' })).join()).toContain('upstream.tls.cert: is missing');
});

test('where addresses to listen on are needed, the example has the port of that side', () => {
  const text = smallest.replaceAll('10.0.0.1', 'n1.example.com');
  expect(problemsOf(text).join('\n')).toMatch(/listenPeerUrls: is missing; .* such as \[http:\/\/0\.0\.0\.0:2380\]/);
  expect(problemsOf(text).join('\n')).toMatch(/listenClientUrls: is missing; .* such as \[http:\/\/0\.0\.0\.0:2379\]/);
});

test('delays out of order are refused', () => {
  expect(problemsOf(`${smallest}timing: { reportFirst: 30s, reportMax: 10s }`)).toEqual([
    'a.yaml:6:40: timing.reportMax: want reportFirst to be at most reportMax',
  ]);
});

test('all mistakes are named at once, in the order of the file, each where it stands', () => {
  const text = `node:
  id: N1
  nmae: x
dataRoot: srv
etcd:
  peer-url: https://10.0.0.1:2380
  clientUrl: http://10.0.0.1:2379
  stopGrace: 5s
`;
  expect(problemsOf(text)).toEqual([
    'a.yaml:1:1: role: is missing; want a mapping with file',
    "a.yaml:2:7: node.id: is 'N1'; want a name of 1 to 63 lower-case letters, digits and -, such as n1",
    'a.yaml:3:3: node.nmae: is no key of this file; want one of id',
    "a.yaml:4:11: dataRoot: is 'srv'; want an absolute path without .., . and doubled slashes, such as /srv/etcd",
    'a.yaml:5:1: etcd.peerUrl: is missing; want http:// or https:// with a lower-case host and a port and nothing else, such as https://10.0.0.1:2380',
    'a.yaml:5:1: etcd.binary: is missing; want the absolute path of an etcd, or binaries by version',
    'a.yaml:6:3: etcd.peer-url: is no key of this file; want peerUrl',
    "a.yaml:8:14: etcd.stopGrace: is '5s'; want a duration such as 30s, from 20s to 10m",
  ]);
});

test.each([
  ['an empty file', '', /want a mapping/],
  ['a comment', '# nothing', /want a mapping/],
  ['a text', 'hello', /is 'hello'; want a mapping|want a mapping/],
  ['a list', '- a', /is a list; want a mapping/],
  ['a key twice', `${smallest}role: { file: /x }`, /a\.yaml:6:1: .*unique/],
  ['a key twice inside', smallest.replace('id: n1', 'id: n1, id: n2'), /a\.yaml:2:17: .*unique/],
  ['two documents', `${smallest}---\n${smallest}`, /a\.yaml:6:1: /],
  ['broken quotes', "node: { id: 'n1 }", /a\.yaml:\d+:\d+: /],
  ['a tab as indentation', 'node:\n\tid: n1', /a\.yaml:2:\d+: /],
  ['an unknown tag', smallest.replace('id: n1', 'id: !!js/function n1'), /a\.yaml:2:/],
  ['an unknown alias', smallest.replace('id: n1', 'id: *who'), /Unresolved alias.*who/],
  ['aliases of aliases', bomb(), /a\.yaml:1:1: .*alias/i],
  ['__proto__', `${smallest}__proto__: { mustBeMount: true }`, /a\.yaml:6:1: __proto__: is no key/],
  ['__proto__ inside', smallest.replace('id: n1', 'id: n1, __proto__: { id: x }'), /node\.__proto__: is no key/],
  [
    '__proto__ in free keys',
    smallest.replace('binary: /usr', 'flags: { __proto__: x }, binary: /usr'),
    /flags\.__proto__: is no key/,
  ],
  ['constructor', `${smallest}constructor: 1`, /constructor: is no key/],
  ['60 000 brackets', '['.repeat(60_000), /nested|a\.yaml:1:/],
  ['more than 64 KiB', `#${'x'.repeat(65_536)}`, /a\.yaml: cannot be read: it is longer than 64 KiB/],
  ['15 000 braces', '{a: '.repeat(15_000), /nested|a\.yaml:/],
  [
    'a version that YAML reads as a number',
    withField('etcd/version', undefined).replace('name: one', 'version: 3.6'),
    /etcd\.version: is 3\.6; want a version in quotes/,
  ],
])('%s is refused', (_name, text, expected) => {
  expect(problemsOf(text).join('\n')).toMatch(expected);
});

function bomb(): string {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const lines = names.map((name, index) => {
    const before = names[index - 1];
    return `${name}: &${name} [${Array(9)
      .fill(before === undefined ? 'x' : `*${before}`)
      .join(', ')}]`;
  });
  return lines.join('\n');
}

test('a password in a URL is not repeated in the error', () => {
  const text = withField('etcd/peerUrl', 'https://root:hunter2@10.0.0.1:2380');
  expect(problemsOf(text).join('\n')).toContain('etcd.peerUrl');
  expect(problemsOf(text).join('\n')).not.toContain('hunter2');
});

test('the judge of etcd flags is asked with flags and version, and its word is placed at the flag', () => {
  const text = `${smallest}`.replace('binary: /usr/bin/etcd', "binaries: { 3.5.30: /x }, flags: { 'data-dir': /y }");
  const asked: unknown[] = [];
  const check = () =>
    parseConfig(text, 'a.yaml', {
      checkFlags: (flags, version) => {
        asked.push(flags, version);
        return [{ flag: 'data-dir', problem: 'is set by the agent; want it gone' }];
      },
    });
  expect(check).toThrow('a.yaml:4:44: etcd.flags.data-dir: is set by the agent; want it gone');
  expect(asked).toEqual([{ 'data-dir': '/y' }, '3.5.30']);
});

test.each([
  ['is absent', () => '/nonexistent/a.yaml', /a\.yaml: cannot be read: there is no such file/],
  ['is a directory', (dir: string) => dir, /cannot be read: it is no file/],
  ['is a device', () => '/dev/zero', /cannot be read: it is no file/],
  ['is not UTF-8', (dir: string) => write(dir, Buffer.from([0x6e, 0xff, 0xfe])), /cannot be read: it is not UTF-8/],
  ['is longer than 64 KiB', (dir: string) => write(dir, Buffer.alloc(300_000, '#')), /longer than 64 KiB/],
])('a file that %s is an error of its own', (_name, make, expected) => {
  const directory = mkdtempSync(join(tmpdir(), 'config-'));
  try {
    expect(() => loadConfig(make(directory))).toThrow(expected);
    expect(() => loadConfig(make(directory))).toThrow(ConfigError);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

function write(directory: string, content: Buffer): string {
  const file = join(directory, 'a.yaml');
  writeFileSync(file, content);
  return file;
}

test('runDir is found in a file that is wrong elsewhere', () => {
  const directory = mkdtempSync(join(tmpdir(), 'config-'));
  try {
    expect(readRunDir(write(directory, Buffer.from('runDir: /run/x\nnode: 5\n')))).toBe('/run/x');
    expect(readRunDir(write(directory, Buffer.from('node: 5\n')))).toBeUndefined();
    expect(readRunDir(write(directory, Buffer.from('node: [\nrunDir: /run/x # here\n')))).toBe('/run/x');
    // Whoever guessed the default one would speak to another agent.
    expect(() => readRunDir(write(directory, Buffer.from('runDir: [\n')))).toThrow(ConfigError);
    expect(() => readRunDir(write(directory, Buffer.from('node: [\n')))).toThrow(/a\.yaml:2:1: /);
    expect(() => readRunDir(write(directory, Buffer.from('runDir: 5\n')))).toThrow(/runDir: is no absolute path/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('fuzz: no text makes the parser throw anything but a ConfigError with a place for each problem', () => {
  const yamlish = fc.string({
    unit: fc.constantFrom(...'{}[]:,-&*!|>\'"#%@\n\t ab01é\u0000\u2028'.split('')),
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.oneof(yamlish, fc.string({ maxLength: 300 })), (text) => {
      const problems = problemsOf(text);
      expect(problems.length).toBeGreaterThan(0);
      for (const problem of problems) expect(problem).toMatch(/^a\.yaml:[1-9]\d*:[1-9]\d*: \S/);
    }),
    { numRuns: 500 },
  );
});

test('fuzz: any value in any field gives a frozen Config or a ConfigError, and never an unknown key', () => {
  const fields = fieldsOf(configSchemaJson()).filter((field) => !field.startsWith('etcd.binary'));
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.webUrl(),
    fc.constantFrom('/a/b', '10s', '1MiB', 'n1', 7, true),
  );
  fc.assert(
    fc.property(fc.constantFrom(...fields), value, (field, chosen) => {
      try {
        const config = parseConfig(withField(field.replaceAll('.', '/'), chosen), 'a.yaml');
        expect(Object.isFrozen(config)).toBe(true);
        expect(config.etcd.binary).toMatch(/^\//);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
    { numRuns: 500 },
  );
});
