// Goal: a log is followed line by line to its true end, and stays within bounds where the file system allows it.
// Method: real files; a log that outruns its reader is made by not reading it.
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Log, silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { fillLifeDir, LifeDir } from '../../src/supervisor/life-dir.ts';
import type { LogLine } from '../../src/supervisor/line-splitter.ts';
import { type LogLimits, LogSpace, trimReserve } from '../../src/supervisor/log-space.ts';
import { LogTail, readLog } from '../../src/supervisor/log-tail.ts';
import { runCommand } from '../../src/supervisor/run.ts';
import { eventually } from '../support/eventually.ts';

const mebibyte = 1024 * 1024;
const limits: LogLimits = {
  headBytes: 64 * 1024,
  tailBytes: mebibyte,
  stepBytes: mebibyte,
  unreadBytes: 2 * mebibyte,
  reserveBytes: mebibyte,
};
const spec = { prefix: [], binary: '', args: [], environmentNames: [], identity: '', startedAtMs: 0, bootId: '' };

let directory: string;
let dir: LifeDir;
const warnings: string[] = [];
const log: Log = { ...silentLog, warn: (_, message) => void warnings.push(message) };
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'supervisor-log-'));
  const path = join(directory, '00000001');
  mkdirSync(path);
  await fillLifeDir(path, spec);
  dir = new LifeDir(path, 1);
  warnings.length = 0;
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function space(run = runCommand, more: Partial<LogLimits> = {}): LogSpace {
  return new LogSpace({ dir, clock: systemClock, log, run, limits: { ...limits, ...more } });
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `${String(from + n).padStart(99, '.')}\n`).join('');

describe('tail', () => {
  test('lines come as they are written; a torn one waits for its rest, or for the end of the life', async () => {
    const lines: LogLine[] = [];
    const tail = new LogTail({
      path: dir.log,
      clock: systemClock,
      onLine: (line) => lines.push(line),
      freed: () => undefined,
      onError: () => {},
    });
    tail.start();
    appendFileSync(dir.log, 'one\ntw');
    await eventually(() => lines.length === 1 && tail.offset === 6);
    appendFileSync(dir.log, 'o\nthr');
    await eventually(() => lines.length === 2);
    appendFileSync(dir.log, 'ee\nfour');
    await tail.finish();
    expect(lines.map(({ text, cut }) => [text, cut])).toEqual([
      ['one', false],
      ['two', false],
      ['three', false],
      ['four', true],
    ]);
  });

  test('a closed tail delivers nothing more', async () => {
    const lines: LogLine[] = [];
    const tail = new LogTail({
      path: dir.log,
      clock: systemClock,
      onLine: (line) => lines.push(line),
      freed: () => undefined,
      onError: () => {},
    });
    tail.start();
    appendFileSync(dir.log, 'one\n');
    await tail.close();
    const heard = lines.length;
    appendFileSync(dir.log, 'two\n');
    await tail.finish();
    expect(lines).toHaveLength(heard);
  });

  test('a log that somebody removed is no error of a callback: it is told once, and read again when it is back', async () => {
    const [errors, unreadable, lines]: [unknown[], unknown[], LogLine[]] = [[], [], []];
    const tail = new LogTail({
      path: dir.log,
      clock: systemClock,
      onLine: (line) => lines.push(line),
      freed: () => undefined,
      onError: (error) => errors.push(error),
      onUnreadable: (error) => unreadable.push(error),
      netMs: 20,
    });
    rmSync(dir.log);
    tail.start();
    await eventually(() => unreadable.length > 0);
    writeFileSync(dir.log, 'back\n');
    await eventually(() => lines.length === 1);
    rmSync(dir.log);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await tail.close();
    expect(errors).toEqual([]);
    expect(unreadable).toMatchObject([{ code: 'ENOENT' }]);
    await readLog({ path: dir.log, clock: systemClock, onLine: () => {}, freed: () => undefined });
  });

  test('what a callback throws is told as an error, not swallowed', async () => {
    const errors: unknown[] = [];
    const fail = () => {
      throw new Error('a bug');
    };
    const tail = new LogTail({
      path: dir.log,
      clock: systemClock,
      onLine: fail,
      freed: () => undefined,
      onError: (error) => errors.push(error),
    });
    appendFileSync(dir.log, 'one\n');
    tail.start();
    await eventually(() => errors.length > 0);
    await tail.close();
  });
});

describe('space', () => {
  test('C23 unread text is freed only beyond its bound, and that is said; readers find one hole and whole lines around it', async () => {
    writeFileSync(dir.log, numbered(0, 100_000)); // 10 MB
    const keeper = space();
    keeper.grown(0);
    await keeper.close();
    expect(keeper.freed).toEqual({ from: limits.headBytes, to: 6 * mebibyte });
    expect(warnings).toEqual(['the log grows faster than it can be read']);
    expect(statSync(dir.log).blocks * 512).toBeLessThan(5 * mebibyte);
    expect(statSync(dir.log).size).toBe(10_000_000);
    const lines: LogLine[] = [];
    const freed = dir.freed();
    await readLog({ path: dir.log, clock: systemClock, onLine: (line) => lines.push(line), freed: () => freed });
    const hole = lines.findIndex(({ freedBytes }) => freedBytes !== undefined);
    expect(lines[hole]).toMatchObject({ offset: limits.headBytes, freedBytes: 6 * mebibyte - limits.headBytes });
    expect(lines.filter(({ cut }) => cut)).toHaveLength(3); // the hole, and the line on each side
    expect(lines.every(({ text }) => !text.includes('\0'))).toBe(true);
    expect(Number(lines.at(-1)?.text.replaceAll('.', ''))).toBe(99_999);
    // A new agent goes on from where the former one was.
    appendFileSync(dir.log, numbered(100_000, 120_000));
    const next = space();
    next.grown(12_000_000);
    await next.close();
    expect(next.freed).toEqual({ from: limits.headBytes, to: 10 * mebibyte });
  });

  test('read text is freed down to the tail; nothing within head and tail ever', async () => {
    writeFileSync(dir.log, numbered(0, 30_000));
    const keeper = space();
    keeper.grown(3_000_000);
    await keeper.close();
    expect(keeper.freed).toBeUndefined(); // less than a step is due
    appendFileSync(dir.log, numbered(30_000, 40_000));
    keeper.grown(2_500_000); // read up to here only
    await keeper.close();
    expect(keeper.freed).toEqual({ from: limits.headBytes, to: 2 * mebibyte });
    expect(warnings).toEqual([]);
  });

  test('blocks are held ready behind the end, and given back when the life is over', async () => {
    const keeper = space();
    keeper.grown(0);
    await keeper.close();
    expect(statSync(dir.log)).toMatchObject({ size: 0 });
    expect(statSync(dir.log).blocks * 512).toBeGreaterThanOrEqual(limits.reserveBytes);
    appendFileSync(dir.log, 'last\n');
    trimReserve(dir);
    expect(statSync(dir.log).size).toBe(5);
    expect(statSync(dir.log).blocks * 512).toBeLessThanOrEqual(4096);
  });

  test('a file system that refuses is named once, and the log goes on', async () => {
    let calls = 0;
    const refusing = async () => {
      calls += 1;
      return { code: 1, stdout: '', stderr: 'fallocate: Operation not supported', problem: undefined };
    };
    writeFileSync(dir.log, numbered(0, 100_000));
    const keeper = space(refusing);
    for (let n = 0; n < 5; n++) {
      keeper.grown(10_000_000);
      await keeper.close();
    }
    expect(calls).toBe(2); // once to punch, once to reserve
    expect(warnings).toEqual(Array(2).fill('this log cannot be kept within its bounds'));
  });
});
