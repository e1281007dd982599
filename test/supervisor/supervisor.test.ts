// Goal: one child, whatever it is and however it ends, is started, followed and ended as told; never two of them.
// Method: tiny real programs under the real keeper.
import { chmodSync, copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockState, runCommand } from '../../src/supervisor/run.ts';
import { eventually } from '../support/eventually.ts';
import { Harness, path } from './harness.ts';

let at: Harness;
beforeEach(() => {
  at = new Harness();
});
afterEach(() => at.dispose());

async function endOf(life: number) {
  return await eventually(() => at.ends.find((each) => each.life.number === life)?.end, {
    what: `end of life ${life}`,
  });
}

describe('ends', () => {
  test('C01 a child that exits with 2 is told as code 2, after all its lines', async () => {
    const supervisor = at.supervisor();
    const life = await supervisor.start(at.script('echo one; echo two >&2; printf torn; exit 2'));
    const end = await endOf(life.number);
    expect(end.exit).toEqual({ kind: 'code', code: 2 });
    expect(end.stop).toBeUndefined();
    expect(end.lockStillHeld).toBe(false);
    expect(Math.abs((end.endedAtMs ?? 0) - Date.now())).toBeLessThan(10_000);
    expect(at.lines.map(({ text, offset, cut }) => [text, offset, cut])).toEqual([
      ['one', 0, false],
      ['two', 4, false],
      ['torn', 8, true],
    ]);
    expect(at.ends[0]?.linesBefore).toBe(3);
    expect(supervisor.view().phase).toBe('ended');
  });

  test('C02 a child that is killed from outside is told as signal 9, and the next life gets the next number', async () => {
    const supervisor = at.supervisor();
    const life = await supervisor.start(at.script(`echo up; ${sleeper}`));
    await eventually(() => at.lines.length > 0);
    process.kill(life.pid, 'SIGKILL');
    expect((await endOf(1)).exit).toEqual({ kind: 'signal', signal: 9, name: 'SIGKILL' });
    const next = await supervisor.start(at.script('exit 0'));
    expect(next.number).toBe(2);
    expect((await endOf(2)).exit).toEqual({ kind: 'code', code: 0 });
  });

  test.each(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGABRT', 'SIGSEGV', 'SIGTERM', 'SIGUSR1'] as const)(
    'an end by %s is told by its name: the keeper passes no ignored signal on',
    async (name) => {
      await at.supervisor().start(at.script(`kill -${name.slice(3)} $$; sleep 5`));
      expect((await endOf(1)).exit).toMatchObject({ kind: 'signal', name });
    },
  );

  test('stopping an ended child, or none, answers at once', async () => {
    const supervisor = at.supervisor();
    const options = { graceMs: 1000, by: 'test', reason: 'none' };
    expect(await supervisor.stop(options)).toBeUndefined();
    await supervisor.start(at.script('exit 0'));
    await endOf(1);
    expect(await supervisor.stop(options)).toBeUndefined();
  });
});

describe('start', () => {
  test('a second start is refused while the first child lives, or is being launched', async () => {
    const supervisor = at.supervisor();
    const first = supervisor.start(at.script(sleeper));
    await expect(supervisor.start(at.script(sleeper))).rejects.toThrow(/no second child/);
    const life = await first;
    await expect(supervisor.start(at.script(sleeper))).rejects.toMatchObject({ code: 'SUPERVISOR_ALREADY_RUNNING' });
    expect(at.living()).toEqual([life.pid]);
  });

  test('the child gets its own environment and nothing else (no NOTIFY_SOCKET, no agent variables)', async () => {
    process.env['NOTIFY_SOCKET'] = '/run/notify';
    process.env['ETCD_NAME'] = 'inherited';
    try {
      await at.supervisor().start({
        binary: '/usr/bin/env',
        args: [],
        environment: { PATH: path, ONLY: 'this' },
        identity: at.identity,
      });
      await endOf(1);
    } finally {
      delete process.env['NOTIFY_SOCKET'];
      delete process.env['ETCD_NAME'];
    }
    expect(at.lines.map(({ text }) => text).sort()).toEqual(['ONLY=this', `PATH=${path}`]);
    expect(at.lifeDir(1).spec()?.environmentNames).toEqual(['ONLY', 'PATH']);
  });

  test('C26 a missing, unexecutable, foreign, truncated or empty program is refused before a life begins', async () => {
    const supervisor = at.supervisor();
    const make = (name: string, change: (file: string) => void) => {
      const file = join(at.root, name);
      copyFileSync('/bin/true', file);
      chmodSync(file, 0o755);
      change(file);
      return file;
    };
    const foreign = (file: string) => {
      const bytes = readFileSync(file);
      bytes.writeUInt16LE(8, 18); // MIPS
      writeFileSync(file, bytes);
    };
    const cases: [string, RegExp][] = [
      ['/nonexistent/program', /cannot be opened/],
      [at.root, /not a file|cannot be opened/],
      [make('unexecutable', (file) => chmodSync(file, 0o644)), /not executable|cannot be run/],
      [make('foreign', foreign), /another machine/],
      [make('truncated', (file) => truncateSync(file, 9000)), /truncated/],
      [make('head', (file) => truncateSync(file, 40)), /truncated/],
      [make('empty', (file) => truncateSync(file, 0)), /empty/],
    ];
    for (const [binary, why] of cases) {
      const spec = { ...at.script(''), binary };
      await expect(supervisor.start(spec), binary).rejects.toMatchObject({ code: 'SUPERVISOR_BINARY_UNUSABLE' });
      await expect(supervisor.start(spec)).rejects.toThrow(why);
      expect(supervisor.view().phase).toBe('ended');
    }
    expect(at.living()).toEqual([]);
    const good = make('good', () => {});
    await supervisor.start({ ...at.script(''), binary: good });
    expect((await endOf(1)).exit).toEqual({ kind: 'code', code: 0 });
  });

  test('C26 a program that goes away between the look and the exec is code 127', async () => {
    const spec = at.script('', { prefix: ['/nonexistent/prefix'] });
    await at.supervisor().start(spec);
    expect((await endOf(1)).exit).toEqual({ kind: 'code', code: 127 });
    expect(at.lines.map(({ text }) => text).join()).toMatch(/nonexistent/);
  });

  test('a prefix sets limits, and the program behind it is the one that is recorded', async () => {
    const life = await at
      .supervisor()
      .start(at.script(`ulimit -n; ${sleeper}`, { prefix: ['prlimit', '--nofile=77:77'] }));
    await eventually(() => at.lines.some(({ text }) => text === '77'));
    expect(at.living()).toEqual([life.pid]);
  });

  test('a lock held by a stranger is refused by its pid and command line, and nothing is started', async () => {
    writeFileSync(at.lockFile, '');
    const aborter = new AbortController();
    const stranger = runCommand('flock', [at.lockFile, 'sleep', '1000'], { timeoutMs: 60_000, signal: aborter.signal });
    await eventually(async () => (await lockState(at.lockFile)) === 'held');
    const supervisor = at.supervisor({ lookMs: 300 });
    const refusal = { code: 'SUPERVISOR_LOCK_HELD', message: expect.stringContaining('sleep 1000') };
    await expect(supervisor.recover()).rejects.toMatchObject(refusal);
    await expect(supervisor.start(at.script(sleeper))).rejects.toMatchObject(refusal);
    expect(supervisor.view().phase).toBe('ended');
    expect(at.living()).toEqual([]);
    aborter.abort();
    await stranger;
    await supervisor.start(at.script('exit 0'));
    await eventually(() => at.ends.length === 1);
  });

  test('a script as program is held and signalled like any other', async () => {
    const file = join(at.root, 'wrapper');
    writeFileSync(file, `#!/bin/sh\necho "$1"\n${sleeper}\n`, { mode: 0o755 });
    const supervisor = at.supervisor();
    await supervisor.start({ binary: file, args: [at.identity], environment: { PATH: path }, identity: at.identity });
    await eventually(() => at.lines.length > 0);
    const end = await supervisor.stop({ graceMs: 10_000, by: 'test', reason: 'enough' });
    expect(end?.exit).toMatchObject({ name: 'SIGTERM' });
  });
});

describe('stop', () => {
  test('TERM ends the child; who asked stands on disk before the signal', async () => {
    const supervisor = at.supervisor();
    await supervisor.start(at.script(`trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done`));
    await eventually(() => at.lines.length > 0);
    const end = await supervisor.stop({ graceMs: 10_000, by: 'operator', reason: 'maintenance' });
    expect(end?.exit).toEqual({ kind: 'code', code: 5 });
    expect(end?.stop).toMatchObject({ by: 'operator', reason: 'maintenance', signals: [{ name: 'SIGTERM' }] });
    expect(at.lifeDir(1).stop()).toEqual(end?.stop);
  });

  test('C28 a child that ignores TERM is killed after the grace, and both signals are recorded', async () => {
    const supervisor = at.supervisor();
    await supervisor.start(at.script(`trap '' TERM; echo up; while :; do sleep 0.05; done`));
    await eventually(() => at.lines.length > 0);
    const end = await supervisor.stop({ graceMs: 300, by: 'operator', reason: 'maintenance' });
    expect(end?.exit).toMatchObject({ signal: 9 });
    expect(end?.stop?.signals.map(({ name }) => name)).toEqual(['SIGTERM', 'SIGKILL']);
  });

  test('C29 a child that is killed by somebody else during a stop has ended as asked, with the true signal', async () => {
    const supervisor = at.supervisor();
    const life = await supervisor.start(at.script(`trap '' TERM; echo up; while :; do sleep 0.05; done`));
    await eventually(() => at.lines.length > 0);
    const stopping = supervisor.stop({ graceMs: 60_000, by: 'operator', reason: 'maintenance' });
    await eventually(() => at.lifeDir(1).stop() !== undefined);
    process.kill(life.pid, 'SIGKILL');
    const end = await stopping;
    expect(end?.exit).toMatchObject({ signal: 9 });
    expect(end?.stop?.signals.map(({ name }) => name)).toEqual(['SIGTERM']);
    expect(supervisor.view().phase).toBe('ended');
  });

  test('a stop during the launch waits for the child and ends it', async () => {
    const supervisor = at.supervisor();
    const starting = supervisor.start(at.script(sleeper));
    const end = await supervisor.stop({ graceMs: 10_000, by: 'test', reason: 'at once' });
    await starting;
    expect(end?.exit).toMatchObject({ kind: 'signal' });
    expect(at.living()).toEqual([]);
  });

  test('a dump is a stop that begins with QUIT', async () => {
    const supervisor = at.supervisor();
    await supervisor.start(at.script(`trap 'echo dump; exit 2' QUIT; echo up; while :; do sleep 0.05; done`));
    await eventually(() => at.lines.length > 0);
    const end = await supervisor.stop({ graceMs: 10_000, by: 'plan', reason: 'stuck', firstSignal: 'SIGQUIT' });
    expect(end?.exit).toEqual({ kind: 'code', code: 2 });
    expect(at.lines.map(({ text }) => text)).toContain('dump');
  });

  test('C28 a frozen (SIGSTOP) child is killed all the same', async () => {
    const supervisor = at.supervisor();
    const life = await supervisor.start(at.script(sleeper));
    process.kill(life.pid, 'SIGSTOP');
    const end = await supervisor.stop({ graceMs: 200, by: 'test', reason: 'frozen' });
    expect(end?.exit).toMatchObject({ signal: 9 });
  });
});

const sleeper = 'while :; do sleep 0.05; done';
