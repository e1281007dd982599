// Goal: on a real file system nothing accepted is lost in silence and no number means two facts.
// Method: a writer in a process of its own is killed again and again; files are torn, flipped, put back and filled.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { gapDataOf, gapKind } from '../../src/upstream/fact.ts';
import { Outbox } from '../../src/upstream/outbox.ts';
import { OutboxRefusedError } from '../../src/upstream/outbox-errors.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { drain, fact, places } from './outbox-fixture.ts';

const child = join(import.meta.dirname, 'run-child.ts');
let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'outbox-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function open(where = directory, limits = {}): Outbox {
  return new Outbox({
    directory: join(where, 'outbox'),
    witness: join(where, 'witness'),
    disk: realDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    limits,
  });
}

function segmentPath(): string {
  const [name = ''] = readdirSync(join(directory, 'outbox')).filter((one) => one.endsWith('.jsonl'));
  return join(directory, 'outbox', name);
}

function fill(count: number): void {
  const outbox = open();
  for (let number = 1; number <= count; number++) outbox.append(fact(number));
  outbox.close();
}

/** Runs the writer until it has printed `lines` lines and a little longer, then kills it; returns what it printed. */
async function writeAndKill(lines: number, random: SeededRandom): Promise<string[]> {
  const writer = spawn(process.execPath, [child, 'write', directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  const printed: string[] = [];
  const ended = once(writer, 'close');
  for await (const line of createInterface({ input: writer.stdout })) {
    printed.push(line);
    // The kill falls somewhere into the writes that follow.
    if (printed.length === lines) setTimeout(() => writer.kill('SIGKILL'), random.fraction() * 4);
  }
  await ended;
  expect(writer.signalCode).toBe('SIGKILL');
  return printed;
}

describe('killed', () => {
  test('A07 R10 kill -9 in a write loop, 20 times: what was accepted is there, each number once, in one stream', async () => {
    const random = new SeededRandom(20);
    const accepted = new Map<number, string>();
    const streams = new Set<string>();
    for (let round = 0; round < 20; round++) {
      for (const line of await writeAndKill(10 + random.below(60), random)) {
        const [word, stream = '', seq, id = ''] = line.split(' ');
        expect(word).toBe('accepted');
        expect(accepted.has(Number(seq)), `number ${seq} was given out twice`).toBe(false);
        accepted.set(Number(seq), id);
        streams.add(stream);
      }
      const outbox = open();
      const present = outbox.read({ limit: 100_000 });
      outbox.close();
      expect(present.map((one) => one.seq)).toEqual(present.map((_, index) => index + 1));
      for (const [seq, id] of accepted) expect(present[seq - 1]?.id, `number ${seq} after kill ${round}`).toBe(id);
      expect(present.filter((one) => one.kind === gapKind)).toEqual([]);
    }
    expect(streams.size).toBe(1);
    process.stdout.write(`outbox on disk: killed 20 times, ${accepted.size} accepted, 0 lost, 0 numbers used twice\n`);
  }, 240_000);
});

describe('damaged', () => {
  test('R11 A14 a torn tail, in text, zeros or rubbish, is cut and the stream goes on', () => {
    for (const tail of ['0badc0de 1 {"kind":"member.rem', '\0'.repeat(4_096), 'ÿ\n\n\0x\n']) {
      rmSync(join(directory, 'outbox'), { recursive: true, force: true });
      rmSync(join(directory, 'witness'), { force: true });
      fill(3);
      const size = statSync(segmentPath()).size;
      appendFileSync(segmentPath(), tail);
      const outbox = open();
      expect(statSync(segmentPath()).size).toBe(size);
      outbox.append(fact(4));
      expect(places(drain(outbox))).toEqual(['a1', 'a2', 'a3', 'a4']);
      outbox.close();
    }
  });

  test('A15 every single bit flip in a segment is either harmless or named', () => {
    fill(6);
    const good = readFileSync(segmentPath());
    const random = new SeededRandom(3);
    const witness = readFileSync(join(directory, 'witness'));
    const path = segmentPath();
    const stream = path.slice(-22, -6);
    for (let round = 0; round < 150; round++) {
      rmSync(join(directory, 'outbox'), { recursive: true });
      mkdirSync(join(directory, 'outbox'));
      const flipped = Buffer.from(good);
      const bit = random.below(good.byteLength * 8);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      writeFileSync(path, flipped);
      writeFileSync(join(directory, 'witness'), witness);
      const outbox = open();
      const sent = drain(outbox);
      outbox.close();
      const named = sent.flatMap((one) => gapDataOf(one)?.missing ?? []);
      const here = new Set(sent.filter((one) => one.stream === stream && one.kind !== gapKind).map((one) => one.seq));
      for (let seq = 1; seq <= 6; seq++) {
        const isNamed = named.some((range) => range.stream === stream && range.from <= seq && seq <= (range.to ?? seq));
        expect(here.has(seq) || isNamed, `number ${seq} after flipping bit ${bit}`).toBe(true);
      }
      expect(named.length, `flipping bit ${bit} went unnoticed`).toBeGreaterThan(0);
    }
  }, 240_000);

  test('an old copy put back by an operator is noticed', () => {
    fill(4);
    cpSync(join(directory, 'outbox'), join(directory, 'copy'), { recursive: true });
    fill(3);
    rmSync(join(directory, 'outbox'), { recursive: true });
    cpSync(join(directory, 'copy'), join(directory, 'outbox'), { recursive: true });
    const outbox = open();
    const sent = drain(outbox);
    outbox.close();
    expect(places(sent)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1']);
    expect(sent.at(-1)?.data).toMatchObject({ missing: [{ from: 5, to: 7 }] });
  });
});

describe('full', () => {
  test('A19 a full file system: refused facts take no number, accepted ones stay, and it goes on when there is room', (context) => {
    const mount = join(directory, 'small');
    mkdirSync(mount);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', mount], { encoding: 'utf8' });
    if (mounted.status !== 0) {
      const why = `a small tmpfs cannot be mounted here (${mounted.stderr.trim() || mounted.error?.message})`;
      if (process.env['CI'] === 'true') throw new Error(why);
      process.stdout.write(`NOT RUN: outbox on a full file system: ${why}\n`);
      return context.skip(why);
    }
    try {
      const accepted: string[] = [];
      let outbox = open(mount, { segmentBytes: 16_384 });
      let refused = 0;
      for (let number = 1; refused < 20; number++) {
        try {
          accepted.push(outbox.append(fact(number, { data: { number, text: 'x'.repeat((number * 37) % 900) } })).id);
        } catch (error) {
          expect(error).toBeInstanceOf(OutboxRefusedError);
          refused++;
        }
      }
      expect(outbox.stats().refusing).toContain('ENOSPC');
      expect(outbox.page(100).length).toBe(100);
      outbox.close();
      outbox = open(mount, { segmentBytes: 16_384 });
      expect(outbox.read({ limit: 100_000 }).map((one) => one.id)).toEqual(accepted);
      execFileSync('mount', ['-o', 'remount,size=1m', mount]);
      accepted.push(outbox.append(fact(0)).id);
      const sent = drain(outbox);
      outbox.close();
      expect(sent.map((one) => one.id)).toEqual(accepted);
      expect(sent.map((one) => one.seq)).toEqual(accepted.map((_, index) => index + 1));
    } finally {
      execFileSync('umount', [mount]);
    }
  });

  test('A19 a read-only file system: what waits is still sent', (context) => {
    const mount = join(directory, 'small');
    mkdirSync(mount);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mount], { encoding: 'utf8' });
    if (mounted.status !== 0) {
      const why = `a small tmpfs cannot be mounted here (${mounted.stderr.trim() || mounted.error?.message})`;
      if (process.env['CI'] === 'true') throw new Error(why);
      process.stdout.write(`NOT RUN: outbox on a read-only file system: ${why}\n`);
      return context.skip(why);
    }
    try {
      const before = open(mount);
      for (let number = 1; number <= 5; number++) before.append(fact(number));
      before.close();
      execFileSync('mount', ['-o', 'remount,ro', mount]);
      const outbox = open(mount);
      expect(() => outbox.append(fact(6))).toThrow(OutboxRefusedError);
      expect(places(drain(outbox))).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
      expect(outbox.stats().refusing).toContain('EROFS');
    } finally {
      execFileSync('umount', [mount]);
    }
  });
});

describe('large', () => {
  test('R05 a backlog of 100,000 facts is opened and sent with a heap of 32 MB', () => {
    const run = (args: readonly string[]) =>
      execFileSync(process.execPath, ['--max-old-space-size=32', '--max-semi-space-size=1', child, ...args], {
        encoding: 'utf8',
      });
    run(['fill', directory, '100000']);
    const result: unknown = JSON.parse(run(['drain', directory]));
    expect(result).toMatchObject({ sent: 100_000, waiting: 0, dropped: 0 });
    process.stdout.write(`outbox of 100,000: ${JSON.stringify(result)}\n`);
  }, 400_000);
});
