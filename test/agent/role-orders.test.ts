// Goal: an operator changes the role, or where it comes from, by commands; what is refused changes nothing and says what is wanted.
// Method: real role files in a directory of the test, the real link and keeper, the agent's own records on a disk in memory.
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/agent/config.ts';
import type { AgentEvent } from '../../src/agent/events.ts';
import { layoutOf } from '../../src/agent/layout.ts';
import { RoleOrders, type RoleSetRequest } from '../../src/agent/role-orders.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import { silentLog } from '../../src/base/log.ts';
import { encodeRecord } from '../../src/base/record.ts';
import { RoleLink } from '../../src/cli/role-link.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const document = 'nodeId: n1\nrole: consensus-member # for ever\ngrantId: g1\ngeneration: 4\n';

describe('role switch-source', () => {
  test('without --accept only if nothing would change by it', async () => {
    const node = await start({ 'old.yaml': document, 'new.yaml': document.replace('generation: 4', 'generation: 1') });
    expect(await node.orders.switchSource({ file: node.path('new.yaml'), accept: false, dryRun: false })).toMatchObject(
      {
        done: true,
        lines: [
          expect.stringContaining('new.yaml'),
          'nothing else changes by that',
          expect.stringContaining('role.file'),
        ],
      },
    );
    expect(node.orders.show()).toMatchObject({
      source: `the file ${node.path('new.yaml')}`,
      generation: 1,
      problem: '',
    });
    expect(node.audit()).toEqual(['role switch-source']);
  });

  test('a change needs --accept, and a dry run does nothing', async () => {
    const node = await start({ 'old.yaml': document, 'new.yaml': document.replace('consensus-member', 'leaving') });
    const file = node.path('new.yaml');
    await expect(node.orders.switchSource({ file, accept: false, dryRun: false })).rejects.toThrow(
      /would change role \("consensus-member" → "leaving"\); switch with --accept/,
    );
    expect(await node.orders.switchSource({ file, accept: true, dryRun: true })).toMatchObject({ done: false });
    expect(node.orders.show()).toMatchObject({ role: 'consensus-member', file: node.path('old.yaml') });
    expect(node.audit()).toEqual([]);
    await node.orders.switchSource({ file, accept: true, dryRun: false });
    expect(node.orders.show()).toMatchObject({ role: 'leaving', file });
  });

  test('a role.file that was changed in the configuration takes effect by the command that the refusal names', async () => {
    const node = await start({ 'old.yaml': document, 'new.yaml': document });
    const after = await node.restart('new.yaml');
    const { problem } = after.orders.show();
    expect(problem).toContain(`etcd-node-agent role switch-source ${node.path('new.yaml')}`);
    const { lines } = await after.orders.switchSource({ file: node.path('new.yaml'), accept: false, dryRun: false });
    expect(lines).toHaveLength(2);
    expect(after.orders.show()).toMatchObject({ problem: '', source: `the file ${node.path('new.yaml')}` });
    expect((await after.restart('new.yaml')).orders.show().problem).toBe('');
  });

  test('a record that was lost is set anew with --accept', async () => {
    const node = await start({ 'old.yaml': document });
    node.disk.put('/state/role', 'rubbish');
    const after = await node.restart('old.yaml');
    const file = node.path('old.yaml');
    expect(after.orders.show()).toMatchObject({ known: false, problem: expect.stringContaining(`${file} --accept`) });
    expect(after.link.unusable()).toContain('is damaged');
    await expect(after.orders.switchSource({ file, accept: false, dryRun: false })).rejects.toThrow('--accept');
    await after.orders.switchSource({ file, accept: true, dryRun: false });
    expect(after.orders.show()).toMatchObject({ known: true, role: 'consensus-member', problem: '' });
    expect(after.link.unusable()).toBeUndefined();
  });

  test('a record of a newer agent is not touched, and makes the agent supervise-only', async () => {
    const node = await start({ 'old.yaml': document });
    node.disk.put('/state/role', encodeRecord({}, 2));
    const after = await node.restart('old.yaml');
    expect(after.link.unusable()).toContain('is of version 2');
    const file = node.path('old.yaml');
    await expect(after.orders.switchSource({ file, accept: true, dryRun: false })).rejects.toThrow('is of version 2');
    await expect(after.orders.set(order('leaving'))).rejects.toThrow('is of version 2');
    expect(readFileSync(file, 'utf8')).toBe(document);
    expect(after.orders.show()).toMatchObject({ known: false, problem: expect.stringContaining('is of version 2') });
  });

  test.each([
    ['is missing', undefined],
    ['is empty', ''],
    ['bad.yaml:2:7: role: want one of consensus-member, leaving, none', 'nodeId: n1\nrole: king\ngrantId: g\n'],
    ['it is for node n9', document.replace('n1', 'n9')],
  ])('refused: %s', async (why, text) => {
    const node = await start({ 'old.yaml': document });
    if (text !== undefined) writeFileSync(node.path('bad.yaml'), text);
    await expect(
      node.orders.switchSource({ file: node.path('bad.yaml'), accept: true, dryRun: false }),
    ).rejects.toThrow(why);
    expect(node.orders.show()).toMatchObject({ role: 'consensus-member', file: node.path('old.yaml'), problem: '' });
  });
});

describe('role set', () => {
  test('writes the file, keeps its comments, counts its generation, and is in force when it answers', async () => {
    const node = await start({ 'old.yaml': document });
    chmodSync(node.path('old.yaml'), 0o640);
    const answer = await node.orders.set(order('leaving'));
    expect(answer.lines).toEqual([
      `${node.path('old.yaml')}: changed`,
      'role ("consensus-member" → "leaving")',
      'generation 5',
    ]);
    expect(node.text()).toBe('nodeId: n1\nrole: leaving # for ever\ngrantId: g1\ngeneration: 5\n');
    expect(statSync(node.path('old.yaml')).mode & 0o777).toBe(0o640);
    expect(node.orders.show()).toMatchObject({ role: 'leaving', grantId: 'g1', generation: 5, problem: '' });
    expect(node.audit()).toEqual(['role set']);
    expect(readdirSync(node.directory)).toEqual(['old.yaml']);
  });

  test('a role that is granted anew has a new grant; one that is given is taken', async () => {
    const node = await start({ 'old.yaml': document });
    await node.orders.set(order('none'));
    expect(node.orders.show().grantId).toBe('g1');
    await node.orders.set(order('consensus-member'));
    const { grantId } = node.orders.show();
    expect(grantId).toMatch(/^[0-9a-f]{16}$/);
    await node.orders.set(order('consensus-member', { endpoints: ['http://127.0.0.1:1'] }));
    expect(node.orders.show()).toMatchObject({ grantId, endpoints: ['http://127.0.0.1:1'] });
    await node.orders.set(order('consensus-member', { grantId: 'mine' }));
    expect(node.orders.show().grantId).toBe('mine');
  });

  test('a grant that ended with the removal of its member is replaced', async () => {
    const node = await start({ 'old.yaml': document });
    const stone = { clusterId: 7n, memberId: 1n, grantId: 'g1', at: '', evidence: [], archive: '', retired: false };
    node.state.tombstones.write([stone]);
    expect(node.orders.show().spent).toBe(true);
    await node.orders.set(order('consensus-member'));
    expect(node.orders.show()).toMatchObject({ spent: false, grantId: expect.not.stringMatching(/^g1$/) });
  });

  test('a file that is not there is made for everybody to read, and says all that was in force', async () => {
    const node = await start({ 'old.yaml': `${document}endpoints: ['http://127.0.0.1:1']\n` });
    rmSync(node.path('old.yaml'));
    const before = process.umask(0o077);
    onTestFinished(() => void process.umask(before));
    await node.orders.set(order('consensus-member'));
    expect(statSync(node.path('old.yaml')).mode & 0o777).toBe(0o644);
    expect(node.orders.show()).toMatchObject({
      grantId: 'g1',
      generation: 5,
      endpoints: ['http://127.0.0.1:1'],
      problem: '',
    });
  });

  test('the first role of a node', async () => {
    const node = await start({});
    const { lines } = await node.orders.set(order('consensus-member', { grantId: 'g7' }));
    expect(lines).toEqual([`${node.path('old.yaml')}: a new file`, 'role consensus-member, grant g7']);
    expect(node.text()).toBe('nodeId: n1\nrole: consensus-member\ngrantId: g7\n');
    expect(node.orders.show()).toMatchObject({ known: true, role: 'consensus-member' });
  });

  test('a link stays a link', async () => {
    const node = await start({ 'old.yaml': document });
    mkdirSync(node.path('real'));
    writeFileSync(node.path('real/role.yaml'), document);
    rmSync(node.path('old.yaml'));
    symlinkSync('real/role.yaml', node.path('old.yaml'));
    await node.orders.set(order('leaving'));
    expect(lstatSync(node.path('old.yaml')).isSymbolicLink()).toBe(true);
    expect(readFileSync(node.path('real/role.yaml'), 'utf8')).toContain('leaving');
  });

  test('what it says already is not written', async () => {
    const node = await start({ 'old.yaml': document });
    expect(await node.orders.set(order('consensus-member'))).toMatchObject({ done: false });
    expect(node.text()).toBe(document);
    expect(node.audit()).toEqual([]);
  });

  test('a dry run shows it and writes nothing', async () => {
    const node = await start({ 'old.yaml': document });
    expect(await node.orders.set(order('leaving', { dryRun: true }))).toMatchObject({
      done: false,
      dryRun: true,
      lines: expect.arrayContaining(['generation 5']),
    });
    expect(node.text()).toBe(document);
  });

  test('zero tolerance is accepted for this member and the list that is known', async () => {
    const node = await start({ 'old.yaml': document });
    await expect(node.orders.set(order('leaving', { acceptZeroTolerance: true }))).rejects.toThrow('is no member');
    expect(node.text()).toBe(document);
    node.becomeMember();
    await node.orders.set(order('leaving', { acceptZeroTolerance: true }));
    expect(node.orders.show().accept).toEqual([
      { kind: 'zero-tolerance', memberId: 'ab', listHash: expect.stringMatching(/^[0-9a-f]{16}$/) },
    ]);
  });

  test.each([
    [
      'a mistake',
      'nodeId: n1\nrole: king\ngrantId: g\n',
      'old.yaml:2:7: role: want one of consensus-member, leaving, none',
    ],
    ['no YAML', 'role: [\n', /old\.yaml:2:1: /],
    ['another node', document.replace('n1', 'n9'), /old\.yaml: it is for node n9/],
    ['an older one', document.replace('generation: 4', 'generation: 3'), /old\.yaml: it is older/],
  ])('a file with %s is not written, and the answer says what is wanted', async (_what, text, why) => {
    const node = await start({ 'old.yaml': document });
    writeFileSync(node.path('old.yaml'), text);
    await expect(node.orders.set(order('leaving'))).rejects.toThrow(why);
    expect(node.text()).toBe(text);
    expect(node.orders.show()).toMatchObject({ role: 'consensus-member', generation: 4 });
    expect(node.audit()).toEqual([]);
  });

  test('a file that cannot be written is named, and nothing is left beside it', async () => {
    const node = await start({});
    const after = await node.restart('no-such-directory/role.yaml');
    await expect(after.orders.set(order('none'))).rejects.toThrow(/role\.yaml could not be written/);
    expect(existsSync(node.path('no-such-directory'))).toBe(false);
    expect(readdirSync(node.directory)).toEqual([]);
  });

  test('two orders at once are two generations', async () => {
    const node = await start({ 'old.yaml': document });
    await Promise.all([node.orders.set(order('leaving')), node.orders.set(order('none'))]);
    expect(node.orders.show()).toMatchObject({ role: 'none', generation: 6, problem: '' });
  });
});

function order(role: RoleSetRequest['role'], more: Partial<RoleSetRequest> = {}): RoleSetRequest {
  return {
    role,
    grantId: undefined,
    endpoints: undefined,
    acceptZeroTolerance: false,
    withoutRecord: false,
    dryRun: false,
    ...more,
  };
}

/** A node whose configuration names `old.yaml`, with these files in its directory. */
async function start(files: Readonly<Record<string, string>>) {
  const directory = mkdtempSync(join(tmpdir(), 'role-orders-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const disk = new MemoryDisk(new SeededRandom(1));
  disk.ensureDirectory('/state');
  return await boot(directory, disk, 'old.yaml');
}

async function boot(directory: string, disk: MemoryDisk, roleFile: string) {
  const layout = layoutOf({ stateDir: '/state', dataRoot: '/data', clusterName: 'c', memberName: 'n1' });
  const state = new AgentState({ disk, layout });
  const events: AgentEvent[] = [];
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const path = (name: string) => join(directory, name);
  const config = () => ({ file: '/etc/c.yaml', node: { id: 'n1' }, role: { file: path(roleFile) } }) as Config;
  const link = new RoleLink({
    config,
    disk,
    clock: new FakeClock(), // only orders and the start read the file here
    log: silentLog,
    stateDir: '/state',
    clusterId: () => state.knownIdentity()?.clusterId,
    onEvent: (event) => events.push(event),
    onChange: () => {},
    signal: stop.signal,
  });
  link.start();
  if (link.unusable() === undefined || !link.unusable()?.includes('version')) await link.watch(path(roleFile));
  const report = (event: AgentEvent) => void events.push(event);
  const orders = new RoleOrders({
    preview: async ({ role }) => [`preview of ${role}`],
    link,
    config,
    state,
    membership: { latest: undefined },
    reports: { report },
    random: new SeededRandom(2),
    log: silentLog,
  });
  return {
    directory,
    disk,
    state,
    link,
    orders,
    path,
    text: () => readFileSync(path('old.yaml'), 'utf8'),
    audit: () => events.flatMap((event) => (event.kind === 'operator.command' ? [event.command] : [])),
    becomeMember() {
      const self = { id: 0xabn, name: 'n1', peerUrls: [], clientUrls: [], isLearner: false };
      const names = { nodeId: 'n1', clusterName: 'c', name: 'n1', peerUrl: '', clientUrl: '', grantId: 'g1' };
      const first = { initialCluster: '', initialClusterToken: '', lastVoters: [self], lastMembers: [self] };
      state.recordIdentity({ ...names, ...first, clusterId: 7n, memberId: 0xabn });
    },
    restart(file: string) {
      stop.abort();
      return boot(directory, disk, file);
    },
  };
}
