// Goal: every command sends what it says, prints what the agent answers, and ends with the documented code.
// Method: the program in this process, the real API on a real socket, an agent that only remembers.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test, vi } from 'vitest';
import { AgentError } from '../../src/base/errors.ts';
import { main } from '../../src/cli/agent.ts';
import { MemoryIo } from '../../src/cli/io.ts';
import { roleDetailText } from '../../src/cli/role-view.ts';
import { startFixture } from '../support/api-fixture.ts';
import { exampleEvent, exampleRole, exampleStatus } from '../support/fake-control.ts';

class Refusal extends AgentError {
  readonly code = 'QUORUM_WOULD_BE_LOST';
}

async function run(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const io = new MemoryIo(variables);
  const code = await main(args, io);
  return { code, out: io.stdout, err: io.stderr };
}

const id = '8e9e05c52164694d';
const joinOf = (endpoints: readonly string[]) => ({ endpoints, clusterId: undefined, dryRun: false });
const orderOf = (memberId: string, more: Readonly<Record<string, boolean>> = {}) => ({
  memberId,
  dryRun: false,
  acceptZeroTolerance: false,
  withoutRecord: false,
  ...more,
});
const commands: readonly [args: string, method: string, request: unknown][] = [
  ['stop', 'stop', { force: false, dryRun: false }],
  ['stop --force --dry-run', 'stop', { force: true, dryRun: true }],
  ['start', 'start', { dryRun: false }],
  ['start --dry-run', 'start', { dryRun: true }],
  ['pause --reason work', 'pause', { forMs: 14_400_000, reason: 'work' }],
  ['pause --for 2h --reason work', 'pause', { forMs: 7_200_000, reason: 'work' }],
  ['resume', 'resume', {}],
  ['start --accept-log-regression A3', 'start', { dryRun: false, acceptLogRegression: 'a3' }],
  ['shutdown', 'shutdown', { dryRun: false }],
  ['shutdown --dry-run', 'shutdown', { dryRun: true }],
  ['reload', 'reload', {}],
  ['found', 'found', { dryRun: false, alone: false }],
  ['found --dry-run', 'found', { dryRun: true, alone: false }],
  ['found --alone', 'found', { dryRun: false, alone: true }],
  ['adopt', 'adopt', { dryRun: false, newClusterId: undefined }],
  ['adopt --dry-run --new-cluster-id 0xCDF8', 'adopt', { dryRun: true, newClusterId: 'cdf8' }],
  ['join --endpoint http://h:1 http://h:2', 'join', joinOf(['http://h:1', 'http://h:2'])],
  [`join --cluster-id ${id} --dry-run`, 'join', { ...joinOf([]), clusterId: id, dryRun: true }],
  ['leave', 'leave', { acceptZeroTolerance: false, withoutRecord: false, dryRun: false }],
  [
    'leave --accept-zero-tolerance --dry-run',
    'leave',
    { acceptZeroTolerance: true, withoutRecord: false, dryRun: true },
  ],
  ['leave --without-record', 'leave', { acceptZeroTolerance: false, withoutRecord: true, dryRun: false }],
  [`members evict ${id}`, 'evictMember', orderOf(id)],
  [`members evict ${id} --dry-run`, 'evictMember', orderOf(id, { dryRun: true })],
  [`members evict ${id} --without-record`, 'evictMember', orderOf(id, { withoutRecord: true })],
  [`replace ${id} --accept-zero-tolerance`, 'replaceMember', orderOf(id, { acceptZeroTolerance: true })],
  [`retire --last-member ${id}`, 'retire', { clusterId: id, dryRun: false }],
  [`retire --last-member ${id} --dry-run`, 'retire', { clusterId: id, dryRun: true }],
  [`confirm-removed ${id}`, 'confirmRemoved', { memberId: id }],
  [`confirm-removed ${id.toUpperCase()}`, 'confirmRemoved', { memberId: id }],
  [`reject-removal ${id}`, 'rejectRemoval', { memberId: id }],
  ['events skip 7 --reason gone', 'skipEvent', { seq: 7, reason: 'gone' }],
  ['role switch-source /r.yaml', 'switchSource', { file: '/r.yaml', accept: false, dryRun: false }],
  ['role switch-source /r.yaml --accept --dry-run', 'switchSource', { file: '/r.yaml', accept: true, dryRun: true }],
  [
    'role set leaving',
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
    'role set consensus-member --grant g2 --endpoint http://a:1 --endpoint http://b:1 --accept-zero-tolerance --dry-run',
    'set',
    {
      role: 'consensus-member',
      grantId: 'g2',
      endpoints: ['http://a:1', 'http://b:1'],
      acceptZeroTolerance: true,
      withoutRecord: false,
      dryRun: true,
    },
  ],
];

test.each(commands)('%s', async (line, method, request) => {
  await using fixture = await startFixture();
  const dryRun = line.includes('--dry-run');
  const text = await run([...line.split(' '), '--socket', fixture.socket]);
  expect(text).toEqual({
    code: 0,
    out: dryRun ? `${method} would be done\ndry run: nothing was done\n` : `${method} was done\n`,
    err: '',
  });
  const json = await run([...line.split(' '), '--socket', fixture.socket, '--output', 'json']);
  expect(JSON.parse(json.out)).toEqual({ done: !dryRun, dryRun, lines: [expect.stringContaining(method)] });
  expect(fixture.control.calls).toEqual([
    { method, request },
    { method, request },
  ]);
});

test('role show prints the role in force, or why there is none', async () => {
  await using fixture = await startFixture();
  const { code, out } = await run(['role', 'show', '--socket', fixture.socket]);
  expect(code).toBe(0);
  for (const text of ['consensus-member', 'g1', 'epoch 1, generation 2', 'https://10.0.0.2:2379']) {
    expect(out).toContain(text);
  }
  const json = await run(['role', 'show', '--socket', fixture.socket, '--output', 'json']);
  expect(JSON.parse(json.out)).toEqual(exampleRole());
  expect(roleDetailText({ ...exampleRole(), known: false, problem: 'it is damaged' })).toMatch(
    /role +unknown\n[\s\S]*problem +it is damaged\n/,
  );
});

test('role switch-source takes a path from where the command is run', async () => {
  await using fixture = await startFixture();
  await run(['role', 'switch-source', 'role.yaml', '--socket', fixture.socket]);
  expect(fixture.control.calls).toMatchObject([{ request: { file: resolve('role.yaml') } }]);
});

test('found prepare prints its line alone on standard output, wherever the options stand', async () => {
  await using fixture = await startFixture();
  const { socket } = fixture;
  for (const args of [
    ['found', 'prepare', '--socket', socket],
    ['found', '--socket', socket, 'prepare'],
  ]) {
    const result = await run(args);
    expect(result).toMatchObject({ code: 0, out: 'n1 https://10.0.0.1:2380 5f3a\n' });
    expect(result.err).toContain('foundPrepare was done');
  }
  expect(JSON.parse((await run(['found', 'prepare', '--socket', socket, '-o', 'json'])).out)).toMatchObject({
    line: expect.any(String),
  });
});

test('found --list sends the lines of the file without comments and empty lines', async () => {
  await using fixture = await startFixture();
  const file = join(fixture.directory, 'founders');
  writeFileSync(file, '# three founders\nn1 http://a:1 x\n\n  n2 http://b:1 y  \n');
  expect((await run(['found', '--list', file, '--socket', fixture.socket])).code).toBe(0);
  expect(fixture.control.calls).toEqual([
    { method: 'foundList', request: { lines: ['n1 http://a:1 x', 'n2 http://b:1 y'], dryRun: false } },
  ]);
  writeFileSync(file, '# nobody\n');
  expect(await run(['found', '--list', file, '--socket', fixture.socket])).toMatchObject({
    code: 2,
    err: expect.stringContaining('has no founder'),
  });
  expect(await run(['found', '--list', '/nonexistent', '--socket', fixture.socket])).toMatchObject({ code: 2 });
  expect(fixture.control.calls).toHaveLength(1);
});

test('status shows the node on one screen, and all of it as JSON', async () => {
  await using fixture = await startFixture();
  const { code, out } = await run(['status', '--socket', fixture.socket]);
  expect(code).toBe(0);
  expect(out).toMatchInlineSnapshot(`
    "node       n1: n1 is a voter of a cluster of 3 and serves
    role       consensus-member (epoch 1, generation 2, grant g1) from file:/etc/etcd-node-agent/role.json
    etcd       ready (wanted: run) since 2026-01-01T00:00:01.000Z, pid 4712, version 3.5.30, life 3, 1 restarts, started by a former agent
    last exit  killed (SIGKILL) in life 2 at 2026-01-01T00:00:00.500Z: signal 9 that was not ours
    member     8e9e05c52164694d (n1) of cluster cdf818194e3a8c32, voter, leads, term 2, applied 41, db 20480 bytes
    urls       peer https://10.0.0.1:2380, client https://10.0.0.1:2379
    cluster    3 voters, 3 answer, quorum 2, may lose 1 (list of 2026-01-01T00:00:02.000Z)
    plan       converged: the role is fulfilled
    outbox     0 waiting, 12 of 12 acknowledged
    agent      version 0.1.0, pid 4711, since 2026-01-01T00:00:00.000Z

    MEMBER            NAME  KIND   PEER URLS
    8e9e05c52164694d  n1    voter  https://10.0.0.1:2380
    "
  `);
  const json = await run(['status', '--socket', fixture.socket, '-o', 'json']);
  expect(JSON.parse(json.out)).toEqual(exampleStatus());
});

test('status says what is wrong, and nothing in it can reach the terminal', async () => {
  await using fixture = await startFixture();
  const view = exampleStatus();
  fixture.control.view = {
    ...view,
    sentence: 'evil\u001b[2J\nforged',
    supervision: { kind: 'superviseOnly', because: 'its state is newer' },
    role: { ...view.role, known: false, problem: 'no such file' },
    paused: { until: '2026-01-02T00:00:00.000Z', reason: 'work' },
    process: { ...view.process, phase: 'down', pid: null, nextStart: '2026-01-01T00:05:00.000Z' },
    member: null,
    cluster: null,
    plan: { kind: 'blocked', what: 'lost quorum', because: '1 of 3 answers', hint: 'See docs/runbook.md.' },
    outbox: { ...view.outbox, waiting: 5, parked: { seq: 8, because: '400' }, lastError: 'refused' },
    alarms: [{ alarm: 'NOSPACE', detail: 'full', since: '2026-01-01T00:00:00.000Z' }],
  };
  const { out } = await run(['status', '--socket', fixture.socket]);
  expect(out).toMatchInlineSnapshot(`
    "node         n1: evil\\x1b[2J\\nforged
    supervision  superviseOnly: its state is newer
    role         unknown: no such file
    paused       until 2026-01-02T00:00:00.000Z: work
    etcd         down (wanted: run) since 2026-01-01T00:00:01.000Z, version 3.5.30, life 3, 1 restarts, started by a former agent
    last exit    killed (SIGKILL) in life 2 at 2026-01-01T00:00:00.500Z: signal 9 that was not ours
    next start   2026-01-01T00:05:00.000Z
    member       none yet
    plan         blocked lost quorum: 1 of 3 answers
                 See docs/runbook.md.
    outbox       5 waiting, 12 of 12 acknowledged
                 8 is refused for ever: 400; see events skip
                 last attempt: refused
    alarm        NOSPACE since 2026-01-01T00:00:00.000Z: full
    agent        version 0.1.0, pid 4711, since 2026-01-01T00:00:00.000Z
    "
  `);
});

test('why shows what stands against the plan, beside what was refused', async () => {
  await using fixture = await startFixture();
  const view = exampleStatus();
  fixture.control.view = {
    ...view,
    role: { ...view.role, problem: 'it is for cluster abc', refused: true },
    alarms: [{ alarm: 'noQuorum', detail: 'for 9 s', since: '2026-01-01T00:00:00.000Z' }],
  };
  const { out } = await run(['why', '--socket', fixture.socket]);
  expect(out).toContain('role   it is for cluster abc\n');
  expect(out).toContain('alarm  noQuorum since 2026-01-01T00:00:00.000Z: for 9 s\n');
  const status = (await run(['status', '--socket', fixture.socket])).out;
  expect(status).toContain('the newest document was refused: it is for cluster abc');
  fixture.control.view = { ...view, role: { ...view.role, problem: '/role.yaml is missing' } };
  const gone = (await run(['status', '--socket', fixture.socket])).out;
  expect(gone).toContain('it stays as it was accepted; its source says nothing now: /role.yaml is missing');
});

test('found prepare says nothing twice', async () => {
  await using fixture = await startFixture();
  fixture.control.prepared = ['n1 https://10.0.0.1:2380 5f3a'];
  expect(await run(['found', 'prepare', '--socket', fixture.socket])).toEqual({
    code: 0,
    out: 'n1 https://10.0.0.1:2380 5f3a\n',
    err: '',
  });
});

test('plan and why', async () => {
  await using fixture = await startFixture();
  expect((await run(['plan', '--socket', fixture.socket])).out).toBe('plan  converged: the role is fulfilled\n');
  expect((await run(['why', '--socket', fixture.socket])).out).toMatchInlineSnapshot(`
    "plan  converged: the role is fulfilled

    refused lately:
    2026-01-01T00:00:00.000Z  stop: quorum
                              Use --force.
    "
  `);
});

test('events are listed and followed in the same columns', async () => {
  await using fixture = await startFixture();
  const { control, socket } = fixture;
  control.eventViews = [
    exampleEvent(1),
    exampleEvent(2, { certainty: 'inferred', state: 'parked', data: { because: 'a\nb' } }),
  ];
  const listed = await run(['events', '--socket', socket]);
  expect(listed).toMatchInlineSnapshot(`
    {
      "code": 0,
      "err": "",
      "out": "    1  2026-01-01T00:00:00.000Z  process.ready  life=1
        2  2026-01-01T00:00:00.000Z  process.ready [inferred, parked]  because=a\\nb
    ",
    }
  `);
  expect((await run(['events', '--after', '1', '--limit', '1', '--socket', socket])).out).toMatch(/^ {4}2 /);

  const io = new MemoryIo();
  const following = main(['events', '--follow', '-o', 'json', '--socket', socket], io);
  await vi.waitFor(() => expect(control.eventListeners.size).toBe(1));
  control.emit(exampleEvent(3));
  await vi.waitFor(() => expect(io.stdout.split('\n')).toHaveLength(4));
  expect(
    io.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).seq),
  ).toEqual([1, 2, 3]);
  await fixture.api.close();
  expect(await following).toBe(5);
  expect(io.stderr).toContain('the agent ended the stream');
});

test('logs are printed without what a terminal would act on', async () => {
  await using fixture = await startFixture();
  fixture.control.logLines = ['one', 'two\u001b[31m'];
  expect(await run(['logs', '-n', '5', '--socket', fixture.socket])).toEqual({
    code: 0,
    out: 'one\ntwo\\x1b[31m\n',
    err: '',
  });
  const io = new MemoryIo();
  const following = main(['logs', '-f', '--socket', fixture.socket], io);
  await vi.waitFor(() => expect(fixture.control.logListeners.size).toBe(1));
  fixture.control.writeLog('three');
  await vi.waitFor(() => expect(io.stdout).toContain('three'));
  await fixture.api.close();
  await following;
});

test('a refusal ends with 4 and prints message and hint', async () => {
  await using fixture = await startFixture();
  const refuse = () => {
    fixture.control.failure = new Refusal('2 voters would be left of 3\u001b[2J', { hint: 'Use --force.' });
  };
  refuse();
  expect(await run(['stop', '--socket', fixture.socket])).toEqual({
    code: 4,
    out: '',
    err: 'refused: 2 voters would be left of 3\\x1b[2J\nhint: Use --force.\n',
  });
  refuse();
  const json = await run(['stop', '--socket', fixture.socket, '--output=json']);
  expect(json.code).toBe(4);
  expect(JSON.parse(json.err)).toMatchObject({ error: { code: 'QUORUM_WOULD_BE_LOST', hint: 'Use --force.' } });
});

test('a failure inside the agent ends with 1', async () => {
  await using fixture = await startFixture();
  fixture.control.failure = new Error('inside');
  expect(await run(['stop', '--socket', fixture.socket])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^failed: .*\nhint: /),
  });
});

test('without an agent it ends with 5 and says how to start one', async () => {
  const result = await run(['status', '--socket', '/nonexistent/agent.sock']);
  expect(result).toMatchObject({ code: 5, out: '' });
  expect(result.err).toMatch(/no agent listens on \/nonexistent\/agent\.sock\nhint: Start it: etcd-node-agent run/);
});

test('something else on the socket is no agent', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cli-'));
  const socket = join(directory, 's');
  const answers = [
    'garbage\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n<x>',
    'HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n',
    '',
  ];
  const server = createServer((connection) => connection.on('error', () => {}).end(answers.shift() ?? ''));
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  try {
    const codes = [];
    for (let index = 0; index < 4; index++) codes.push((await run(['status', '--socket', socket])).code);
    expect(codes).toEqual([5, 1, 4, 5]);
  } finally {
    server.close();
    rmSync(directory, { recursive: true });
  }
});

test.each([
  'nonsense',
  'stopp',
  'stop now',
  'stop --forse',
  'status --output xml',
  'status --socket',
  'pause',
  'pause --reason',
  'pause --for 8d --reason x',
  'pause --for soon --reason x',
  'pause --for 999ms --reason x',
  'members evict',
  'members evict xyz',
  'replace',
  'retire',
  'retire --last-member xyz',
  'confirm-removed',
  'confirm-removed xyz',
  'confirm-removed 1 2',
  'reject-removal 11112222333344445',
  'events skip',
  'events skip 0 --reason x',
  'events skip one --reason x',
  'events skip 1',
  'events --limit 1001',
  'events --after -1',
  'logs --lines 0',
  'logs --life x',
  'logs --life 1 --follow',
  'adopt --new-cluster-id g',
  'role',
  'role set',
  'role set king',
  'role switch-source',
  'config',
  'config chekc',
  'config check a b',
  'found --alone --list /dev/null',
  'run extra',
  '',
])('"%s" is a mistake in usage: 2, on standard error, and nothing is done', async (line) => {
  await using fixture = await startFixture();
  const args = line === '' ? [] : line.split(' ');
  const result = await run(args, { ETCD_NODE_AGENT_SOCKET: fixture.socket });
  expect([result.code, result.out]).toEqual([2, '']);
  expect(result.err).not.toBe('');
  expect(fixture.control.calls).toEqual([]);
});

test.each(['--help', '--version', 'help', 'stop --help', 'events skip --help', 'help found'])(
  '%s ends with 0',
  async (line) => {
    const result = await run(line.split(' '));
    expect(result.code).toBe(0);
    expect(result.out).not.toBe('');
  },
);

test('the socket: option, then configuration that is named, then environment', async () => {
  await using fixture = await startFixture();
  const config = join(fixture.directory, 'broken.yaml');
  writeFileSync(config, `runDir: ${fixture.directory}/run\nnode: { id: NOT VALID }\n`);
  expect((await run(['plan', '--config', config], { ETCD_NODE_AGENT_SOCKET: '/x' })).code).toBe(0);
  expect((await run(['plan'], { ETCD_NODE_AGENT_CONFIG: config })).code).toBe(0);
  expect((await run(['plan'], { ETCD_NODE_AGENT_SOCKET: fixture.socket, ETCD_NODE_AGENT_CONFIG: '/x' })).code).toBe(0);
  expect((await run(['plan', '--socket', '/x', '--config', config])).code).toBe(5);
  expect((await run(['plan', '--config', '/nonexistent.yaml'])).code).toBe(3);
});

test('a configuration that does not say where its agent is: named, and the default socket is not taken in its place', async () => {
  await using fixture = await startFixture();
  const config = join(fixture.directory, 'broken.yaml');
  writeFileSync(config, 'node: { id: n1\nrole: [\n');
  for (const variables of [{ ETCD_NODE_AGENT_CONFIG: config }, {}]) {
    const named = 'ETCD_NODE_AGENT_CONFIG' in variables ? [] : ['--config', config];
    const { code, err } = await run(['status', ...named], variables as Record<string, string>);
    expect(code).toBe(3);
    expect(err).toContain(`${config}:`);
    expect(err).toContain('hint: It does not say on which socket its agent runs. Name that with --socket PATH');
  }
  writeFileSync(config, `node: { id: n1\nrole: [\nrunDir: ${fixture.directory}/run\n`);
  expect((await run(['status', '--config', config])).code).toBe(0);
  writeFileSync(config, 'runDir: 5\n');
  expect(await run(['status', '--config', config])).toMatchObject({ code: 3, err: expect.stringContaining('runDir') });
  writeFileSync(config, 'node: { id: n1 }\n');
  expect((await run(['status', '--config', config])).code).toBe(5);
});

const example = join(import.meta.dirname, '../../systemd/example-agent.yaml');

test('config check: the example of the package is correct, and a wrong file ends with 3 and every mistake', async () => {
  expect(await run(['config', 'check', example, '--file-only'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('ok, node n1'),
  });
  expect(await run(['config', 'check', '--file-only'], { ETCD_NODE_AGENT_CONFIG: example })).toMatchObject({ code: 0 });
  const directory = mkdtempSync(join(tmpdir(), 'cli-'));
  const file = join(directory, 'a.yaml');
  writeFileSync(file, 'node: { id: N1 }\nrole: 5\n');
  try {
    const text = await run(['config', 'check', file]);
    expect(text.code).toBe(3);
    expect(text.err).toContain(`${file}:1:13: node.id: is 'N1'; want`);
    expect(text.err).toContain(`${file}:2:7: role: is 5; want`);
    const json = await run(['config', 'check', file, '-o', 'json']);
    expect(JSON.parse(json.err).error.problems).toContainEqual({
      file,
      line: 2,
      column: 7,
      path: 'role',
      message: 'is 5; want a mapping with file',
    });
    const ran = await run(['run', '--config', file]);
    expect(ran.code).toBe(3);
    expect(ran.err).toContain(
      'There is no last good configuration either: there is no /var/lib/etcd-node-agent/config.last-good',
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('config schema is a JSON schema that refuses unknown keys', async () => {
  const { code, out } = await run(['config', 'schema']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    type: 'object',
    additionalProperties: false,
    required: expect.arrayContaining(['node', 'etcd']),
  });
});
