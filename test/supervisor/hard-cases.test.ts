// Goal: what an operator fears (full disk, frozen child, zombie, flood, a keeper that dies alone) is survived and told.
// Method: the fault itself where this machine can make it (tmpfs, freezer); skipped, and said so, where it cannot.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { exitOfStatus } from '../../src/supervisor/keeper-records.ts';
import { defaultLogLimits } from '../../src/supervisor/log-space.ts';
import { readProcessStat } from '../../src/supervisor/process.ts';
import { runCommand } from '../../src/supervisor/run.ts';
import { eventually } from '../support/eventually.ts';
import { Harness, isAlive } from './harness.ts';

let at: Harness;
const undo: (() => unknown)[] = [];
beforeEach(() => {
  at = new Harness();
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
  await at.dispose();
});

const sleeper = 'while :; do sleep 0.05; done';
const isRoot = process.getuid?.() === 0;
const freezer = '/sys/fs/cgroup/freezer';
const canFreeze = isRoot && statSync(`${freezer}/cgroup.procs`, { throwIfNoEntry: false }) !== undefined;

async function must(file: string, ...args: string[]): Promise<string> {
  const result = await runCommand(file, args, { timeoutMs: 30_000 });
  if (result.code !== 0) throw new Error(`${file} ${args.join(' ')}: ${result.stderr} ${result.problem}`);
  return result.stdout;
}

/** Fills a file system to the last block. */
function fill(directory: string): void {
  for (const size of [1024 * 1024, 4096, 512, 1]) {
    try {
      for (let n = 0; ; n++) writeFileSync(join(directory, `filler-${size}-${n}`), Buffer.alloc(size));
    } catch {
      // this size no longer fits
    }
  }
}

function keeperPidOf(child: number): number {
  return Number(readFileSync(`/proc/${child}/status`, 'utf8').match(/^PPid:\s+(\d+)/m)?.[1]);
}

// Only root may mount the small file systems.
describe.skipIf(!isRoot)('full disk', () => {
  test.each(['tmpfs', 'ext4'] as const)(
    'C14 on a full %s the end, the stop and the last words are recorded',
    async (kind) => {
      const mountPoint = join(at.root, 'small');
      mkdirSync(mountPoint);
      if (kind === 'tmpfs') {
        await must('mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', mountPoint);
      } else {
        const image = join(at.root, 'image');
        await must('truncate', '-s', '16M', image);
        await must('mkfs.ext4', '-q', '-m', '0', image);
        await must('mount', '-o', 'loop', image, mountPoint);
      }
      const small = new Harness(mountPoint);
      undo.push(() => must('umount', '--lazy', mountPoint));
      undo.push(() => small.endAll());
      const supervisor = small.supervisor();
      // 40 KiB of last words after the disk is full, the decisive one last.
      const script = `trap 'i=0; while [ $i -lt 400 ]; do echo "$i ${'x'.repeat(90)}"; i=$((i+1)); done; echo DECISIVE last; exit 3' TERM
      echo DECISIVE first; while :; do sleep 0.05; done`;
      await supervisor.start(small.script(script));
      await eventually(() => small.lines.length > 0);
      await eventually(() => statSync(small.lifeDir(1).log).blocks * 512 >= defaultLogLimits.reserveBytes);
      fill(mountPoint);
      expect(() => writeFileSync(join(mountPoint, 'one-more'), Buffer.alloc(4096))).toThrow(/ENOSPC/);
      const end = await supervisor.stop({ graceMs: 15_000, by: 'test', reason: 'disk full' });
      expect(end).toMatchObject({ exit: { kind: 'code', code: 3 }, stop: { reason: 'disk full' } });
      expect(small.lifeDir(1).exit()).toMatchObject({ kind: 'ok', value: exitOfStatus(3) });
      expect(small.lifeDir(1).stop()).toMatchObject({ by: 'test', signals: [{ name: 'SIGTERM' }] });
      expect(supervisor.evidence(1).map(({ text }) => text)).toEqual(['DECISIVE first', 'DECISIVE last']);
      expect(small.lines.at(-1)?.text).toBe('DECISIVE last');
      // A start on the full disk is refused, and nothing of it stays.
      fill(mountPoint);
      await expect(supervisor.start(small.script('exit 0'))).rejects.toMatchObject({
        code: 'SUPERVISOR_LIFE_NOT_PREPARED',
      });
      expect(small.lifeDir(2).spec()).toBeUndefined();
      for (const size of [1024 * 1024, 4096]) rmSync(join(mountPoint, `filler-${size}-0`), { force: true });
      await supervisor.start(small.script('exit 0'));
      await eventually(() => small.ends.length === 2);
    },
  );
});

// Only where this machine lets us make a cgroup that freezes.
test.skipIf(!canFreeze)(
  'C04 a child that cannot be killed: kill pending is told, nothing else is started, the thaw ends it',
  async () => {
    const group = join(freezer, `supervisor-test-${process.pid}`);
    mkdirSync(group);
    undo.push(() =>
      eventually(() => {
        rmdirSync(group);
        return true;
      }),
    );
    const supervisor = at.supervisor({ killPendingMs: 300 });
    const life = await supervisor.start(at.script(sleeper));
    writeFileSync(join(group, 'cgroup.procs'), String(life.pid));
    writeFileSync(join(group, 'freezer.state'), 'FROZEN');
    undo.push(() => writeFileSync(join(group, 'freezer.state'), 'THAWED'));
    await eventually(() => readFileSync(join(group, 'freezer.state'), 'utf8').trim() === 'FROZEN');
    const stopping = supervisor.stop({ graceMs: 100, by: 'test', reason: 'frozen' });
    await eventually(() => supervisor.view().killPending);
    expect(readProcessStat(life.pid)?.state).toBe('D');
    await expect(supervisor.start(at.script(sleeper))).rejects.toMatchObject({ code: 'SUPERVISOR_ALREADY_RUNNING' });
    // A new agent finds it as well, and starts nothing beside it.
    at.letGo();
    await expect(stopping).rejects.toMatchObject({ code: 'SUPERVISOR_CLOSED' });
    const next = at.supervisor({ killPendingMs: 300 });
    expect(await next.recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid } });
    expect(next.view().stop?.signals.map(({ name }) => name)).toEqual(['SIGTERM', 'SIGKILL']);
    const again = next.stop({ graceMs: 0, by: 'test', reason: 'still frozen' });
    await eventually(() => next.view().killPending);
    writeFileSync(join(group, 'freezer.state'), 'THAWED');
    expect((await again)?.exit).toMatchObject({ signal: 9 });
    expect(next.view()).toMatchObject({ phase: 'ended', killPending: false });
    expect(at.living()).toEqual([]);
  },
);

test('C05 a child that is dead and not reaped counts as dead, with its true status, and is never signalled', async () => {
  const supervisor = at.supervisor();
  const life = await supervisor.start(at.script(`echo up; ${sleeper}`));
  await eventually(() => at.lines.length > 0);
  const keeper = keeperPidOf(life.pid);
  process.kill(keeper, 'SIGSTOP'); // it reaps nothing and holds lock and fifo
  undo.push(() => process.kill(keeper, 'SIGKILL'));
  await eventually(() => readProcessStat(keeper)?.state === 'T');
  process.kill(life.pid, 'SIGSEGV');
  await eventually(() => readProcessStat(life.pid)?.state === 'Z');
  await eventually(() => at.ends.length === 1);
  expect(at.ends[0]?.end).toMatchObject({ lockStillHeld: true, exit: isRoot ? { signal: 11 } : {} });
  const brief = at.supervisor({ lookMs: 300 });
  await expect(brief.recover()).rejects.toMatchObject({ code: 'SUPERVISOR_LOCK_HELD' });
  process.kill(keeper, 'SIGCONT');
  undo.pop();
  expect(await eventually(() => brief.recover())).toMatchObject({ kind: 'ended', end: { exit: { signal: 11 } } });
});

test('C06 processes that the child left behind hold the lock: the end is told, and the next start names them', async () => {
  const supervisor = at.supervisor({ lookMs: 300 });
  await supervisor.start(at.script('sleep 1000 & echo $!; exit 4'));
  await eventually(() => at.ends.length === 1);
  expect(at.ends[0]?.end).toMatchObject({ exit: { kind: 'code', code: 4 }, lockStillHeld: true });
  const stray = Number(at.lines[0]?.text);
  undo.push(() => process.kill(stray, 'SIGKILL'));
  await expect(supervisor.start(at.script('exit 0'))).rejects.toThrow(`pid ${stray} (sleep 1000)`);
  undo.pop();
  process.kill(stray, 'SIGKILL');
  await supervisor.start(at.script('exit 0'));
  await eventually(() => at.ends.length === 2);
});

test('a keeper that dies alone: the child runs on, keeps the lock, is adopted, stopped, and its end is unknown', async () => {
  const supervisor = at.supervisor();
  const life = await supervisor.start(at.script(`echo up; ${sleeper}`));
  await eventually(() => at.lines.length > 0);
  process.kill(keeperPidOf(life.pid), 'SIGKILL');
  at.letGo();
  const next = at.supervisor();
  expect(await next.recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid, number: 1 } });
  await expect(next.start(at.script(sleeper))).rejects.toMatchObject({ code: 'SUPERVISOR_ALREADY_RUNNING' });
  expect(at.living()).toEqual([life.pid]);
  const end = await next.stop({ graceMs: 10_000, by: 'test', reason: 'enough' });
  expect(end?.exit.kind).toBe('unknown');
  expect(end?.stop?.signals.map(({ name }) => name)).toEqual(['SIGTERM']);
});

test('a keeper outlives every signal to its group, and records the end of its child', async () => {
  const supervisor = at.supervisor();
  const life = await supervisor.start(at.script(`trap '' HUP INT QUIT USR1; echo up; ${sleeper}`));
  await eventually(() => at.lines.length > 0);
  const keeper = keeperPidOf(life.pid);
  for (let n = 0; n < 50; n++) {
    for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGTERM', 'SIGPIPE', 'SIGALRM'] as const)
      process.kill(keeper, name);
  }
  for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1'] as const) process.kill(-keeper, name);
  expect(at.living()).toEqual([life.pid]);
  process.kill(-keeper, 'SIGTERM');
  await eventually(() => at.ends.length === 1);
  expect(at.ends[0]?.end.exit).toMatchObject({ name: 'SIGTERM' });
});

test('a program that was replaced on disk since (an upgrade) is still the child: adopted and stopped', async () => {
  const program = join(at.root, 'program');
  copyFileSync('/bin/sleep', program);
  chmodSync(program, 0o755);
  const spec = { binary: program, args: ['100000.125'], environment: {}, identity: '100000.125' };
  const life = await at.supervisor().start(spec);
  at.letGo();
  rmSync(program);
  copyFileSync('/bin/true', program);
  const next = at.supervisor();
  expect(await next.recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid } });
  const end = await next.stop({ graceMs: 5000, by: 'test', reason: 'enough' });
  expect(end?.exit).toMatchObject({ name: 'SIGTERM' });
});

// Only root may become another user.
test.skipIf(!isRoot)('a child that dropped to another user keeps lock and fifo, is adopted and stopped', async () => {
  const prefix = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs'];
  const life = await at.supervisor().start(at.script(`id -u; ${sleeper}`, { prefix }));
  await eventually(() => at.lines[0]?.text === '65534');
  process.kill(keeperPidOf(life.pid), 'SIGKILL');
  at.letGo();
  const next = at.supervisor();
  expect(await next.recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid } });
  expect((await next.stop({ graceMs: 5000, by: 'test', reason: 'enough' }))?.stop?.signals).toHaveLength(1);
});

test('C32 a pid that belongs to another process, boot or command line by now is not ours: no signal, no adoption', async () => {
  const supervisor = at.supervisor();
  const life = await supervisor.start(at.script(`echo up; ${sleeper}`));
  await eventually(() => at.lines.length > 0);
  at.letGo();
  const file = join(life.path, 'pid');
  const record = readFileSync(file, 'utf8');
  const forge = async (change: (line: string) => string) => {
    const body = change(record.split('\n')[0]?.split(' ').slice(0, 6).join(' ') ?? '');
    const sum = await runCommand('cksum', [], { timeoutMs: 5000, stdin: `${body}\n` });
    writeFileSync(file, `${body} ${sum.stdout.trim()}\n`);
  };
  const stranger = String(process.pid);
  for (const change of [
    (line: string) => line.replace(/^pid 1 \d+/, `pid 1 ${stranger}`),
    (line: string) => line.replace(/^(pid 1 \d+) (\d)/, '$1 9$2'),
    (line: string) => line.replace(/ [0-9a-f-]{36} /, ' 00000000-0000-0000-0000-000000000000 '),
    (line: string) => line.replace(/\d+:\d+$/, '1:1'),
  ]) {
    await forge(change);
    await expect(at.supervisor({ lookMs: 200 }).recover()).rejects.toMatchObject({ code: 'SUPERVISOR_LOCK_HELD' });
  }
  // A torn record is no loss: the one process with the lock and the identity that is no keeper is the child.
  writeFileSync(file, record.replace(/^pid 1 \d/, 'pid 1 _'));
  expect(await at.supervisor({ lookMs: 2000 }).recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid } });
  writeFileSync(file, record);
  const last = at.supervisor();
  expect(await last.recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid } });
  await last.stop({ graceMs: 5000, by: 'test', reason: 'enough' });
  expect(isAlive(process.pid, readProcessStat(process.pid)?.startTicks ?? '')).toBe(true);
});

test('C07 a slow start is told apart from a hang by its progress', async () => {
  const supervisor = at.supervisor();
  await supervisor.start(
    at.script(`i=0; while [ ! -e ${at.root}/calm ]; do i=$((i+1)); done; exec sleep 1000 2>/dev/null`),
  );
  await eventually(() => (supervisor.activity()?.cpuTicks ?? 0) > 150, { what: 'some use of the processor' });
  expect(supervisor.view()).toMatchObject({ phase: 'starting' });
  expect(supervisor.view().idleMs).toBeLessThan(1500);
  writeFileSync(join(at.root, 'calm'), '');
  await eventually(() => (supervisor.view().idleMs ?? 0) > 2000, { what: 'a child that does nothing' });
  expect(supervisor.view().phase).toBe('starting');
});

test('C11 a child that crashes at once, twenty times: each end is told once, in order, and old lives are pruned aloud', async () => {
  const supervisor = at.supervisor({ lifeLimits: { keepCount: 5, keepMs: 0, maxBytes: 1e9 } });
  for (let n = 1; n <= 20; n++) {
    expect((await supervisor.start(at.script(`exit ${n}`))).number).toBe(n);
    await eventually(() => at.ends.length === n);
  }
  expect(at.ends.map(({ end }) => end.exit)).toEqual(Array.from({ length: 20 }, (_, n) => exitOfStatus(n + 1)));
  expect(await supervisor.replay(1, () => {})).toBe(false);
  expect(await supervisor.replay(16, () => {})).toBe(true);
});

describe('C23 a flood', () => {
  test('is kept within its bounds by holes, its head and tail stay, and the reader says what is missing', async () => {
    const mebibyte = 1024 * 1024;
    const limits = {
      headBytes: 64 * 1024,
      tailBytes: 4 * mebibyte,
      stepBytes: mebibyte,
      unreadBytes: 400 * mebibyte,
      reserveBytes: 0,
    };
    // Processor time between two turns of the loop: what others take from this machine does not count.
    let longestMs = 0;
    let last = process.threadCpuUsage();
    const timer = setInterval(() => {
      const now = process.threadCpuUsage();
      longestMs = Math.max(longestMs, (now.user + now.system - last.user - last.system) / 1000);
      last = now;
    }, 5);
    undo.push(() => clearInterval(timer));
    let [lines, bytes, next] = [0, 0, 0];
    const supervisor = at.supervisor({
      logLimits: limits,
      onLine: (_, line) => {
        lines += 1;
        if (line.freedBytes !== undefined || line.offset !== next) throw new Error(`gap at ${line.offset}`);
        next = line.offset + Buffer.byteLength(line.text) + 1;
        bytes = next;
        if (line.text.includes('END')) at.lines.push(line);
      },
    });
    const count = 1_000_000;
    const text = '000000001 the quick brown fox jumps over the lazy dog, again and again, until the disk is full';
    const wait = `until [ -e ${at.root}/done ]; do sleep 0.1; done`;
    await supervisor.start(at.script(`yes '${text}' | head -n ${count}; echo END; ${wait}`));
    await eventually(() => at.lines.length === 1, { withinMs: 18_000 });
    const log = at.lifeDir(1).log;
    await eventually(() => statSync(log).blocks * 512 < limits.headBytes + limits.tailBytes + 3 * mebibyte, {
      what: 'a log within its bounds',
    });
    const size = statSync(log).size;
    expect(lines).toBe(count + 1);
    expect(size).toBeGreaterThan(90 * mebibyte);
    // Replay: what is left, around one hole.
    writeFileSync(join(at.root, 'done'), '');
    const seen: { text: string; freed: number | undefined }[] = [];
    await eventually(() => supervisor.view().phase === 'ended');
    await supervisor.replay(1, ({ text, freedBytes }) => seen.push({ text, freed: freedBytes }));
    expect(seen[0]?.text).toMatch(/^000000001 the quick/);
    expect(seen.at(-1)?.text).toBe('END');
    expect(seen.filter(({ freed }) => freed !== undefined)).toHaveLength(1);
    expect(seen.find(({ freed }) => freed !== undefined)?.text).toMatch(/^… \d+ bytes freed …$/);
    expect(seen.some(({ text }) => text.includes('\0'))).toBe(false);
    // biome-ignore lint/suspicious/noConsole: a figure for the record
    console.info(
      `flood: ${(size / mebibyte).toFixed(0)} MiB, longest hold of the event loop ${longestMs.toFixed(0)} ms`,
    );
    expect(longestMs).toBeLessThan(200);
    expect(bytes).toBe(size);
  });

  test('a line without end is cut at 1 MiB and marked, in bounded memory', async () => {
    const supervisor = at.supervisor();
    await supervisor.start(at.script('head -c 20000000 /dev/zero | tr "\\0" x; echo; echo after'));
    await eventually(() => at.ends.length === 1);
    expect(at.lines.map(({ text, cut, offset }) => [text.length, cut, offset])).toEqual([
      [1024 * 1024, true, 0],
      [5, false, 20_000_001],
    ]);
    expect(supervisor.view().phase).toBe('ended');
  });
});

test('the agent ends and the child stays, untouched', async () => {
  const supervisor = at.supervisor();
  const life = await supervisor.start(at.script(`echo up; ${sleeper}`));
  at.letGo();
  expect(at.living()).toEqual([life.pid]);
  const next = at.supervisor();
  expect(await next.recover()).toMatchObject({ kind: 'adopted', life: { pid: life.pid, adopted: true, number: 1 } });
  expect(next.view()).toMatchObject({ phase: 'starting', stop: undefined });
});

test('probes: ready at the first good answer, unresponsive after misses, for an adopted child as well', async () => {
  let good = false;
  const question = async () => {
    if (!good) throw new Error('not yet');
  };
  const probe = { ask: question, intervalMs: 20, deadlineMs: 1000, misses: 3 };
  const first = at.supervisor({ probes: () => ({ readiness: probe, liveness: probe }) });
  await first.start(at.script(sleeper));
  await eventually(() => first.view().liveness === 'bad');
  expect(first.view().phase).toBe('starting');
  good = true;
  await eventually(() => first.view().phase === 'ready' && first.view().liveness === 'good');
  expect(first.view().readyMs).toBeGreaterThanOrEqual(0);
  at.letGo();
  const next = at.supervisor({ probes: () => ({ readiness: probe, liveness: probe }) });
  await next.recover();
  await eventually(() => next.view().phase === 'ready');
  const end = await next.stop({ graceMs: 5000, by: 'test', reason: 'enough' });
  expect(end?.exit).toMatchObject({ name: 'SIGTERM' });
});
