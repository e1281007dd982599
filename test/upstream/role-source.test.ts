// Real files and a real watch; the slow look is set so slow that only the watch can bring the news, except where said.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { RoleEvent } from '../../src/upstream/role-keeper.ts';
import { RoleKeeper } from '../../src/upstream/role-keeper.ts';
import { RoleSource, type RoleSourceOptions } from '../../src/upstream/role-source.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

let directory = '';
let stop = new AbortController();
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'role-'));
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  rmSync(directory, { recursive: true, force: true });
});

const document = (generation: number, more = '') =>
  `nodeId: n1\nrole: consensus-member\ngrantId: g1\ngeneration: ${generation}\n${more}`;

function startSource(options: Partial<RoleSourceOptions> = {}) {
  const disk = new MemoryDisk(new SeededRandom(1));
  disk.ensureDirectory('/state');
  const identity = () => ({ nodeId: 'n1', clusterId: undefined });
  const keeper = new RoleKeeper({ path: '/state/role', disk, clock: systemClock, log: silentLog, identity });
  const events: RoleEvent[] = [];
  const waiting = new Set<() => void>();
  const source = new RoleSource({
    path: join(directory, 'role.yaml'),
    keeper,
    clock: systemClock,
    log: silentLog,
    signal: stop.signal,
    settleMs: 20,
    lookMs: 600_000,
    onEvent: (event) => {
      events.push(event);
      for (const look of [...waiting]) look();
    },
    ...options,
  });
  const next = (holds: (event: RoleEvent) => boolean) =>
    new Promise<RoleEvent>((resolve, reject) => {
      const look = () => {
        const found = events.find(holds);
        if (found === undefined) return;
        clearTimeout(timer);
        waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => reject(new Error(`no such event: ${JSON.stringify(events)}`)), 5_000);
      waiting.add(look);
      look();
    });
  const generation = (number: number) => next((event) => event.kind === 'accepted' && event.role.generation === number);
  return { source, keeper, events, next, generation };
}

describe('a watched role file', () => {
  const path = () => join(directory, 'role.yaml');

  test('missing, empty, unreadable: unknown, and the accepted role stays', async () => {
    const { source, next, generation, keeper } = startSource();
    await next((event) => event.kind === 'unknown' && event.why.includes('is missing'));
    writeFileSync(path(), document(1));
    await generation(1);
    truncateSync(path(), 0);
    await next((event) => event.kind === 'unknown' && event.why.includes('is empty'));
    writeFileSync(path(), 'role: [\n');
    await next((event) => event.kind === 'refused' && event.why.includes('role.yaml:'));
    rmSync(path());
    mkdirSync(path());
    await source.readNow();
    await next((event) => event.kind === 'unknown' && event.why.includes('is no file'));
    expect(keeper.accepted?.role.generation).toBe(1);
  });

  test('a new file put in its place by rename is seen', async () => {
    writeFileSync(path(), document(1));
    const { generation, events } = startSource();
    await generation(1);
    for (let number = 2; number <= 5; number++) {
      writeFileSync(join(directory, 'new'), document(number));
      renameSync(join(directory, 'new'), path());
      await generation(number);
    }
    expect(events.map((event) => event.kind)).toEqual(Array(5).fill('accepted'));
  });

  test('links that are swapped, as Kubernetes does it, are seen', async () => {
    const version = (name: string, number: number) => {
      mkdirSync(join(directory, name));
      writeFileSync(join(directory, name, 'role.yaml'), document(number));
      symlinkSync(name, join(directory, '..data_tmp'));
      renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    };
    version('..v1', 1);
    symlinkSync(join('..data', 'role.yaml'), path());
    const { generation } = startSource();
    await generation(1);
    version('..v2', 2);
    await generation(2);
    rmSync(join(directory, '..v1'), { recursive: true });
    version('..v3', 3);
    await generation(3);
  });

  test('a file written in several steps is read once it is whole', async () => {
    writeFileSync(path(), document(1));
    const { generation, events } = startSource({ settleMs: 100 });
    await generation(1);
    const text = document(2, 'endpoints: ["http://127.0.0.1:2379"]\n');
    for (const part of text.match(/.{1,20}/gs) ?? [])
      writeFileSync(path(), part, { flag: part === text.slice(0, 20) ? 'w' : 'a' });
    await generation(2);
    expect(events).toHaveLength(2);
  });

  test('the slow look finds what no watch tells, and a directory that is made later', async () => {
    const late = join(directory, 'later', 'role.yaml');
    const { generation, next } = startSource({ path: late, lookMs: 30 });
    await next((event) => event.kind === 'unknown');
    mkdirSync(join(directory, 'later'));
    writeFileSync(late, document(1));
    await generation(1);
    rmSync(join(directory, 'later'), { recursive: true });
    await next((event) => event.kind === 'unknown' && event.why.includes('is missing'));
    mkdirSync(join(directory, 'later'));
    writeFileSync(late, document(2));
    await generation(2);
  });

  test('a FIFO, a huge file and binary rubbish neither block nor are taken', async () => {
    execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', path()]);
    const { source, next } = startSource();
    await next((event) => event.kind === 'unknown' && event.why.includes('is no file'));
    rmSync(path());
    writeFileSync(path(), '');
    truncateSync(path(), 2 ** 33);
    await source.readNow();
    await next((event) => event.kind === 'unknown' && event.why.includes('larger than'));
    writeFileSync(path(), Buffer.from([0xff, 0xfe, 0x00]));
    await source.readNow();
    await next((event) => event.kind === 'unknown' && event.why.includes('is not UTF-8'));
  });

  test('the same news is told once; an older file is refused once', async () => {
    writeFileSync(path(), document(5));
    const { source, generation, events, next } = startSource();
    await generation(5);
    await source.readNow();
    writeFileSync(path(), document(4));
    await next((event) => event.kind === 'refused');
    await source.readNow();
    expect(events.map((event) => event.kind)).toEqual(['accepted', 'refused']);
  });
});
