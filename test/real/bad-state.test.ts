// Goal: with records that are damaged, newer, unreadable, lost or cannot be written, etcd goes on running and is restarted
// when it crashes; memberships are not touched, nothing is written over, and the status says why. A data volume that is
// away is waited for, and nothing is made in its place.
// Method: one node; its agent is ended, a record is damaged, the next agent is looked at.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import type { StatusView } from '../../src/agent/control.ts';
import { alarmOf, blockedBy, mayMount, readyAfter, signalEtcd, test, verdictOn } from '../support/crash-node.ts';
import { contentsBelow, type Damage, damageFile, damages } from '../support/damage.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';

const everything = process.env['ETCD_TEST_VERSIONS'] === 'all';

/** One damage for each file here; every damage for every file in the full run. test/agent/state-damage.test.ts has them all. */
const cases: readonly (readonly [file: string, damage: Damage])[] = everything
  ? ['identity', 'founding', 'volume', 'reported', 'ends', 'restarts', 'used-version', 'journal'].flatMap((file) =>
      damages
        .filter((damage) => file !== 'journal' || isFatalToJournal(damage))
        .map((damage) => [file, damage] as const),
    )
  : [
      ['identity', 'bit flip'],
      ['volume', 'directory'],
      ['ends', 'newer version'],
      ['journal', 'directory'],
    ];

describe('records that cannot be trusted', () => {
  test.for(cases)('A14 A15 A16 %s: %s', async ([file, damage], { lab: { node } }) => {
    const before = await node.status();
    await node.endAgent('SIGKILL');
    const path = join(node.stateDir, file);
    const repair = damageFile(path, damage);
    onTestFinished(() => repairNode(node, repair));
    const damaged = fingerprint(path);
    await node.startAgent();
    const status = await isSuperviseOnly(node, path);
    expect(status.process).toMatchObject({ pid: before.process.pid, adopted: true });
    await crashesAndIsRestarted(node);
    await refusesMembership(node);
    await endsInOrder(node);
    expect(fingerprint(path), 'it is not written over').toBe(damaged);
  });

  test.for([
    ['a segment of facts', 'outbox/0*.jsonl', 'bit flip'],
    ['the position', 'outbox/position', 'NULs'],
    ['the witness', 'outbox-witness', 'truncated'],
  ] as const)(
    'R11 the outbox, %s: reports go on, in a way that a receiver can follow',
    async ([, pattern, damage], { lab: { node } }) => {
      await node.endAgent('SIGKILL');
      damageFile(matching(node.stateDir, pattern), damage);
      await node.startAgent();
      await node.ready();
      const life = await signalEtcd(node, 'SIGKILL');
      await readyAfter(node, life);
      const status = await node.status();
      expect(status.supervision.kind).toBe('full');
      const events = await node.events();
      expect(events.some(({ kind, data }) => kind === 'process.exited' && data['life'] === life)).toBe(true);
    },
  );

  test.for([
    ['newer', 'newer version', 'outbox/position'],
    ['unreadable', 'directory', 'outbox-witness'],
  ] as const)(
    'A16 an outbox that is %s: nothing is reported and nothing written over, and etcd is looked after',
    async ([, damage, file], { lab: { node } }) => {
      const { process: before } = await node.status();
      await node.endAgent('SIGKILL');
      const repair = damageFile(join(node.stateDir, file), damage);
      onTestFinished(() => repairNode(node, repair));
      const outbox = contentsBelow(join(node.stateDir, 'outbox'));
      await node.startAgent();
      const status = await isSuperviseOnly(node, join(node.stateDir, file));
      expect(status.process.pid).toBe(before.pid);
      expect(status.outbox.lastError).toContain(file);
      await crashesAndIsRestarted(node);
      await endsInOrder(node);
      expect(contentsBelow(join(node.stateDir, 'outbox'))).toEqual(outbox);
    },
  );

  test('A14 the state directory is lost: the member is known by the copy beside its data; adopt writes the records anew', async ({
    lab: { node },
  }) => {
    const before = await node.status();
    await node.endAgent('SIGKILL');
    rmSync(node.stateDir, { recursive: true });
    await node.startAgent();
    const status = await isSuperviseOnly(node, node.stateDir);
    expect(status.process.pid).toBe(before.process.pid);
    expect(status.member?.memberId).toBe(before.member?.memberId);
    expect(status.plan.hint).toContain('adopt');
    await crashesAndIsRestarted(node);
    expect(existsSync(join(node.stateDir, 'identity')), 'no identity is made up').toBe(false);
    await expect(node.post('/v1/found')).rejects.toThrow(/holds no record/);
    await node.post('/v1/adopt');
    const after = await node.until(({ supervision }) => supervision.kind === 'full', 'adopted');
    expect(after.member?.memberId).toBe(before.member?.memberId);
    expect(after.process.phase).toBe('ready');
  });

  test('A14 the run intent: one copy is enough; with none of them etcd runs on, is not started anew, and start repairs it', async ({
    lab: { node },
  }) => {
    const copies = [join(node.stateDir, 'run-intent'), join(node.memberDir, 'run-intent')] as const;
    const pid = await node.etcdPid();
    await node.endAgent('SIGKILL');
    damageFile(copies[0], 'bit flip');
    await node.startAgent();
    await node.ready();
    await crashesAndIsRestarted(node);
    // The start has written both anew.
    await node.endAgent('SIGKILL');
    for (const copy of copies) damageFile(copy, 'truncated');
    await node.startAgent();
    const running = await node.ready();
    expect(running.process.pid).not.toBe(pid);
    expect(running.process.adopted).toBe(true);
    const life = await signalEtcd(node, 'SIGKILL');
    await blockedBy(node, 'intentUnknown');
    expect(node.lives()).toBe(life);
    await node.post('/v1/start');
    await readyAfter(node, life);
  });

  test.runIf(mayMount())(
    'A19 A21 a state directory that is read-only: etcd is adopted, restarted, and everything works once it can be written',
    async ({ lab: { node } }) => {
      const { process: before } = await node.status();
      await node.endAgent('SIGKILL');
      execFileSync('mount', ['--bind', node.stateDir, node.stateDir]);
      execFileSync('mount', ['-o', 'remount,ro,bind', node.stateDir]);
      onTestFinished(() => repairNode(node, () => void execFileSync('umount', [node.stateDir])));
      const contents = contentsBelow(node.stateDir);
      await node.startAgent();
      const status = await node.ready();
      expect(status.process).toMatchObject({ pid: before.pid, adopted: true });
      const life = await crashesAndIsRestarted(node);
      const read = await node.status();
      expect(read.outbox.lastError).toMatch(/read-only/i);
      expect(alarmOf(read, 'superviseOnly')).toMatch(/read-only/i);
      expect(contentsBelow(node.stateDir)).toEqual(contents);
      execFileSync('mount', ['-o', 'remount,rw,bind', node.stateDir]);
      await node.until(({ supervision }) => supervision.kind === 'full', 'it can be written again');
      // The end that could not be reported is not lost.
      await eventually(async () => {
        const events = await node.events();
        return events.some(({ kind, data }) => kind === 'process.exited' && data['life'] === life);
      });
    },
  );
});

describe('a data volume that is away', () => {
  test('is noticed within a second or so, nothing is made in its place, and it comes back by itself', async ({
    lab: { node },
  }) => {
    const root = join(node.directory, 'data');
    const away = join(node.directory, 'data-away');
    await node.post('/v1/stop');
    await blockedBy(node, 'stoppedByOperator');
    renameSync(root, away);
    onTestFinished(() => repairNode(node, () => putBack(away, root)));
    const noticed = performance.now();
    const status = await blockedBy(node, 'volumeMissing');
    process.stderr.write(`volume missing: noticed after ${Math.round(performance.now() - noticed)} ms\n`);
    expect(alarmOf(status, 'volumeMissing')).toBe(root);
    await node.post('/v1/start');
    // Another agent finds the same, also with an empty directory in its place: a mount point without its volume.
    mkdirSync(root);
    await node.endAgent('SIGKILL');
    await node.startAgent();
    await blockedBy(node, 'volumeMissing');
    expect(readdirSync(root)).toEqual([]);
    putBack(away, root);
    const back = await node.ready();
    expect(alarmOf(back, 'volumeMissing')).toBeUndefined();
    const kinds = (await node.events()).map(({ kind }) => kind);
    expect(kinds).toContain('volume.missing');
    expect(kinds).toContain('volume.returned');
  });

  test('another volume in its place is not it', async ({ lab: { node } }) => {
    const root = join(node.directory, 'data');
    const marker = join(root, '.etcd-node-agent-volume');
    const own = readFileSync(marker);
    const life = (await node.status()).process.life ?? 0;
    writeFileSync(marker, 'the marker of somebody else\n');
    onTestFinished(() => writeFileSync(marker, own));
    await signalEtcd(node, 'SIGKILL');
    await blockedBy(node, 'volumeMissing');
    expect(node.lives()).toBe(life);
    writeFileSync(marker, own);
    await readyAfter(node, life);
  });

  test('mustBeMount demands a mount point, from the first start on', async ({ lab: { node, config } }) => {
    const life = (await node.status()).process.life ?? 0;
    await node.endAgent('SIGKILL');
    writeFileSync(node.configFile, `${config}\nmustBeMount: true\n`);
    await node.startAgent();
    await blockedBy(node, 'volumeMissing');
    await signalEtcd(node, 'SIGKILL');
    await verdictOn(node, life);
    await blockedBy(node, 'volumeMissing');
    expect(node.lives()).toBe(life);
    await node.endAgent('SIGKILL');
  });
});

/** The agent says that it only supervises, and names what cannot be trusted. */
async function isSuperviseOnly(node: FleetNode, path: string): Promise<StatusView> {
  const status = await node.until(
    ({ supervision, process: { phase } }) => supervision.kind === 'superviseOnly' && phase === 'ready',
    'it is supervise-only',
  );
  expect(status.supervision.because).toContain(path);
  const told = await blockedBy(node, 'superviseOnly');
  expect(alarmOf(told, 'superviseOnly')).toContain(path);
  return told;
}

async function crashesAndIsRestarted(node: FleetNode): Promise<number> {
  const life = await signalEtcd(node, 'SIGKILL');
  const status = await readyAfter(node, life);
  expect(status.process.lastExit).toMatchObject({ class: 'killed', life });
  return life;
}

async function refusesMembership(node: FleetNode): Promise<void> {
  await expect(node.post('/v1/found')).rejects.toThrow();
  await expect(node.post('/v1/found/prepare')).rejects.toThrow();
  await expect(node.post('/v1/adopt')).rejects.toThrow();
}

/** An agent that only supervises ends with 0 all the same, and etcd runs on. */
async function endsInOrder(node: FleetNode): Promise<void> {
  const pid = await node.etcdPid();
  await node.endAgent('SIGTERM');
  const log = node.agentLog();
  expect(log.slice(log.lastIndexOf('"msg":"the agent starts"'))).toContain('"msg":"the agent has ended"');
  expect(node.processes()).toContain(pid);
}

/** Whatever a test left behind: the agent is ended before the records are put back as they were. */
async function repairNode(node: FleetNode, repair: () => void): Promise<void> {
  await node.endAgent('SIGKILL');
  repair();
}

/** The volume comes back: what stands in its place is empty. */
function putBack(away: string, root: string): void {
  if (!existsSync(away)) return;
  rmSync(root, { recursive: true, force: true });
  renameSync(away, root);
}

function fingerprint(path: string): string {
  return statSync(path).isDirectory() ? `directory ${readdirSync(path).join()}` : readFileSync(path, 'base64');
}

/** The newest file of that pattern; `*` stands for anything in its name. */
function matching(stateDir: string, pattern: string): string {
  const [name = '', ...parents] = pattern.split('/').reverse();
  const directory = join(stateDir, ...parents.reverse());
  const expression = new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
  const found = readdirSync(directory)
    .filter((one) => expression.test(one))
    .sort()
    .at(-1);
  if (found === undefined) throw new Error(`there is no ${pattern} in ${stateDir}`);
  return join(directory, found);
}

/** Damaged lines of the journal are passed over: an interrupted act is resolved by looking. */
function isFatalToJournal(damage: Damage): boolean {
  return damage === 'newer version' || damage === 'directory';
}
