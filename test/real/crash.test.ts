// Goal: how etcd ended is known, and the right thing follows: a crash is restarted at once, a cause that lasts is not
// hammered, what must be held is held, and everything comes back by itself once the cause is gone.
// Method: one node, its agent, a real etcd; the binary is swapped for a stub where real etcd does not do it on demand.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import {
  alarmOf,
  blockedBy,
  etcdProcesses,
  lifeOf,
  readyAfter,
  signalEtcd,
  test,
  verdictOn,
} from '../support/crash-node.ts';
import { binaries, type EtcdBinary, versionNumbers } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';

describe('ends that are restarted', () => {
  test('C01 C02 signals from outside are crash or killed, and serve again at once', async ({ lab: { node } }) => {
    const agentPid = node.agentPid;
    for (const [signal, expected] of [
      ['SIGABRT', 'crash'],
      ['SIGSEGV', 'crash'],
      ['SIGQUIT', 'crash'],
      ['SIGKILL', 'killed'],
    ] as const) {
      const from = performance.now();
      const life = await signalEtcd(node, signal);
      await readyAfter(node, life);
      const servingMs = Math.round(performance.now() - from);
      const verdict = await verdictOn(node, life);
      process.stderr.write(`${signal}: ${verdict.class}, serving again after ${servingMs} ms\n`);
      expect(verdict).toMatchObject({ life, class: expected });
      expect(await restartDelayMs(node, life)).toBe(0);
      expect(await lifeOf(node)).toBe(life + 1);
      // What an operator does after having looked: the next end counts as the first again.
      await node.post('/v1/start');
    }
    expect(node.agentPid).toBe(agentPid);
    expect(etcdProcesses(node)).toHaveLength(1);
  });

  test('C01 C11 a bare panic is a crash; a loop of them is restarted with growing delays, then slowly and with an alarm', async ({
    lab: { node, place },
  }) => {
    place.useStub({ kind: 'panic', message: 'something else broke' });
    const first = await signalEtcd(node, 'SIGKILL');
    expect(await verdictOn(node, first + 1)).toMatchObject({ class: 'crash', code: 2 });
    await verdictOn(node, first + 3);
    const [atOnce, second, third] = await Promise.all([0, 1, 2].map((ago) => restartDelayMs(node, first + ago)));
    expect(atOnce).toBe(0);
    expect(second).toBeGreaterThanOrEqual(800);
    expect(third).toBeGreaterThanOrEqual(1_600);
    // The rest takes minutes, so all but two of the ten restarts are written down as made.
    await node.endAgent('SIGKILL');
    const last = spendRestarts(node, 8);
    await node.startAgent();
    const loop = await node.until(
      (status) => alarmOf(status, 'restartBudgetExhausted') !== undefined,
      'the alarm',
      60_000,
    );
    expect(loop.process).toMatchObject({ phase: 'down', restarts: 10 });
    expect(node.lives()).toBe(last + 2);
    expect(msUntil(loop.process.nextStart)).toBeGreaterThan(4 * 60_000);
    const events = await node.events();
    expect(events.filter(({ kind }) => kind === 'process.restartBudgetExhausted')).toHaveLength(1);
    const exits = events.filter(({ kind, data }) => kind === 'process.exited' && Number(data['life']) >= first);
    expect(exits.map(({ data }) => data['life'])).toEqual(
      Array.from({ length: last + 3 - first }, (_, index) => first + index),
    );
    // A new agent goes on counting: it starts nothing early.
    await node.endAgent('SIGKILL');
    await node.startAgent();
    const again = await node.until(
      ({ process: { nextStart } }) => nextStart !== null,
      'it knows when the next start is',
    );
    expect(msUntil(again.process.nextStart)).toBeGreaterThan(4 * 60_000);
    expect(node.lives()).toBe(last + 2);
    place.useReal();
    await node.post('/v1/start');
    const back = await readyAfter(node, first);
    expect(alarmOf(back, 'restartBudgetExhausted')).toBeUndefined();
  });

  test('C08 a start that never becomes ready is not taken for ready, raises an alarm, and is left to go on', async ({
    lab: { node, place },
  }) => {
    place.useStub({ kind: 'answer503' });
    const life = await signalEtcd(node, 'SIGKILL');
    const status = await node.until((seen) => alarmOf(seen, 'etcdNotReady') !== undefined, 'the alarm');
    expect(status.process).toMatchObject({ phase: 'starting', life: life + 1 });
    place.useReal();
    await signalEtcd(node, 'SIGTERM');
    const back = await readyAfter(node, life + 1);
    await node.until((seen) => alarmOf(seen, 'etcdNotReady') === undefined, 'the alarm is over');
    expect(back.process.lastExit).toMatchObject({ class: 'killed', life: life + 1 });
  });

  test('C07 a slow start is waited for', async ({ lab: { node, place } }) => {
    place.useStub({ kind: 'slow', seconds: 4 });
    const life = await signalEtcd(node, 'SIGKILL');
    const back = await readyAfter(node, life);
    expect(back.process.life).toBe(life + 1);
  });

  test('C29 an etcd that is killed while it stops counts as stopped and is not started again', async ({
    lab: { node, place },
  }) => {
    place.useStub({ kind: 'ignoreTerm' });
    const life = await signalEtcd(node, 'SIGKILL');
    await node.until(({ process: { phase, life: now } }) => phase === 'starting' && now === life + 1, 'the stub runs');
    const stopped = node.post('/v1/stop');
    await node.until(({ process: { phase } }) => phase === 'stopping', 'TERM was sent');
    await signalEtcd(node, 'SIGKILL');
    await stopped;
    expect(await verdictOn(node, life + 1)).toMatchObject({ class: 'stopped', signal: 'SIGKILL' });
    await blockedBy(node, 'stoppedByOperator');
    expect(node.lives()).toBe(life + 1);
  });

  test('C23 a flood of log costs neither the agent nor the disk', async ({ lab: { node, place } }) => {
    place.useStub({ kind: 'flood', mib: 300 });
    const life = await signalEtcd(node, 'SIGKILL');
    await node.until(({ process: { life: now } }) => now === life + 1, 'the stub runs');
    const log = join(node.memberDir, 'etcd', 'lives', String(life + 1).padStart(8, '0'), 'log');
    await eventually(() => statSync(log).size >= 300 * 1024 * 1024, { withinMs: 120_000, what: 'the flood' });
    await eventually(() => statSync(log).blocks * 512 < 64 * 1024 * 1024, {
      withinMs: 120_000,
      what: 'the log is cut',
    });
    const rssMib = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${node.agentPid}/status`, 'utf8'))?.[1]) / 1024;
    process.stderr.write(`RSS of the agent after 300 MiB of log: ${Math.round(rssMib)} MiB\n`);
    expect(rssMib).toBeLessThan(200);
  });
});

describe('causes that last', () => {
  test('C18 a port that somebody else listens on: the holder is named and left alone, and etcd comes back by itself', async ({
    lab: { node },
  }) => {
    await node.post('/v1/stop');
    await blockedBy(node, 'stoppedByOperator');
    const { port, stop } = await foreignListener(node.peerUrl);
    await node.post('/v1/start');
    const life = await lifeOf(node);
    const verdict = await verdictOn(node, life + 1);
    expect(verdict).toMatchObject({ class: 'portInUse', code: 1 });
    expect(verdict.because).toContain(`port ${port} is held by process ${stop.pid} (`);
    const waits = await node.until(({ process: { nextStart } }) => nextStart !== null, 'it waits');
    expect(msUntil(waits.process.nextStart)).toBeLessThan(3_000);
    await verdictOn(node, life + 2);
    expect(stop.exitCode).toBeNull();
    expect(stop.signalCode).toBeNull();
    stop.kill('SIGKILL');
    const back = await readyAfter(node, life + 2);
    expect(back.process.restarts, 'it costs no budget').toBe(0);
  });

  test('C26 a binary that is missing, not executable, garbage, truncated or no etcd is named, and repaired it starts by itself', async ({
    lab: { node, place },
  }) => {
    const canary = join(node.directory, 'was-run-as-a-script');
    place.remove();
    const life = await signalEtcd(node, 'SIGKILL');
    const whole = readFileSync(place.real.etcd);
    const cases: readonly (readonly [string, () => void, RegExp])[] = [
      ['missing', () => place.remove(), /cannot be opened/],
      ['a loop of links', () => place.useLoop(), /cannot be opened: ELOOP/],
      ['not executable', () => place.useContent(whole, 0o644), /is not executable/],
      ['garbage', () => place.useContent(`touch ${canary}\n`), /neither an ELF program nor a script/],
      ['empty', () => place.useContent(''), /it is empty/],
      ['truncated', () => place.useContent(whole.subarray(0, 1_000_000)), /it is truncated/],
      ['another machine', () => place.useContent(forAnotherMachine(whole)), /is for another machine/],
      ['no etcd', () => place.useContent('#!/bin/sh\necho hello\n'), /--version ended with code 0: hello/],
      ['fails', () => place.useContent('#!/bin/sh\necho broken >&2\nexit 3\n'), /--version ended with code 3: broken/],
    ];
    for (const [what, put, text] of cases) {
      put();
      await node.until(({ plan }) => plan.what === 'preflight' && text.test(plan.because), `${what} is named`);
    }
    expect(() => statSync(canary)).toThrow();
    expect(node.lives()).toBe(life);
    place.useReal();
    await readyAfter(node, life);
    expect(await lifeOf(node)).toBe(life + 1);
  });

  test('C27 an older etcd is refused before it touches newer data', async ({ lab: { node, place } }) => {
    const newer = place.real;
    const older = olderLineThan(newer.version);
    place.useReal(older);
    const life = await signalEtcd(node, 'SIGKILL');
    // First the binary is asked which version it is; that blocks as well.
    const refused = `etcd ${older.version} is older than ${newer.version}`;
    await node.until(({ plan }) => plan.because.includes(refused), 'the older one is refused');
    const before = fingerprints(node.dataDir);
    await node.endAgent('SIGKILL');
    await node.startAgent();
    await node.until(({ plan }) => plan.because.includes(refused), 'also by a new agent');
    expect(fingerprints(node.dataDir)).toEqual(before);
    expect(node.lives()).toBe(life);
    place.useReal();
    await readyAfter(node, life);
  });

  test('a flag value that only etcd refuses is held until the configuration changes; a reload with a good one starts it', async ({
    lab: { node, config: good },
  }) => {
    writeFileSync(node.configFile, good.replace('etcd:\n', "etcd:\n  flags: {auth-token: 'no-such-kind'}\n"));
    process.kill(node.agentPid, 'SIGHUP');
    await eventually(() => node.agentLog().includes('the configuration was read again'));
    const life = await signalEtcd(node, 'SIGKILL');
    const held = await blockedBy(node, 'held');
    expect(held.process.lastExit).toMatchObject({ class: 'config', life: life + 1 });
    expect(held.process.intent).toBe('held');
    expect(held.plan.hint).toContain('as soon as the configuration');
    // A31: a bad file changes nothing, and says so.
    writeFileSync(node.configFile, `${good}\nbogus: 1\n`);
    process.kill(node.agentPid, 'SIGHUP');
    await eventually(() => /the reload failed and changed nothing/.test(node.agentLog()));
    // A new agent knows of the hold.
    writeFileSync(node.configFile, good.replace('etcd:\n', "etcd:\n  flags: {auth-token: 'no-such-kind'}\n"));
    await node.endAgent('SIGKILL');
    await node.startAgent();
    await blockedBy(node, 'held');
    expect(node.lives()).toBe(life + 1);
    writeFileSync(node.configFile, good);
    process.kill(node.agentPid, 'SIGHUP');
    const back = await readyAfter(node, life + 1);
    expect(back.process.intent).toBe('run');
  });

  test('C12 a damaged log is held as corrupt, kept as it is, across agents; start tries again, and repaired it serves', async ({
    lab: { node },
  }) => {
    await node.post('/v1/stop');
    await blockedBy(node, 'stoppedByOperator');
    const wal = join(node.dataDir, 'member', 'wal');
    const segment = join(wal, readdirSync(wal).find((name) => name.endsWith('.wal')) ?? '');
    const whole = readFileSync(segment);
    const damaged = Buffer.from(whole);
    damaged[120] = (damaged[120] ?? 0) ^ 0xff;
    writeFileSync(segment, damaged);
    const life = await lifeOf(node);
    await node.post('/v1/start');
    const held = await blockedBy(node, 'held');
    expect(held.process.lastExit).toMatchObject({ class: 'dataCorrupt', life: life + 1 });
    expect(readFileSync(segment).equals(damaged), 'the damaged log is kept').toBe(true);
    await node.endAgent('SIGKILL');
    await node.startAgent();
    await blockedBy(node, 'held');
    expect(node.lives()).toBe(life + 1);
    await node.post('/v1/start');
    expect(await verdictOn(node, life + 2)).toMatchObject({ class: 'dataCorrupt' });
    const again = await blockedBy(node, 'held');
    expect(again.process.intent).toBe('held');
    const reports = (await node.events()).filter((event) => event.kind === 'process.held');
    expect(reports.slice(-2).map((event) => event.data['class'])).toEqual(['dataCorrupt', 'dataCorrupt']);
    writeFileSync(segment, whole);
    await node.post('/v1/start');
    await readyAfter(node, life + 2);
  });

  test('a data directory that a foreign etcd holds is seen before the start, and the foreigner is left alone', async ({
    lab: { node, place },
  }) => {
    await node.post('/v1/stop');
    await blockedBy(node, 'stoppedByOperator');
    const foreign = runForeign(place.real.etcd, [
      `--data-dir=${node.dataDir}`,
      '--name=foreign',
      ...['peer', 'client'].map((side) => `--listen-${side}-urls=http://127.0.0.1:0`),
      '--advertise-client-urls=http://127.0.0.1:1',
      '--logger=zap',
    ]);
    await eventually(() => foreign.holds(join(node.dataDir, 'member', 'snap', 'db')), { what: 'the foreign etcd' });
    const life = await lifeOf(node);
    await node.post('/v1/start');
    const blocked = await blockedBy(node, 'preflight');
    expect(blocked.plan.because).toContain(`is held by process ${foreign.pid}`);
    expect(node.lives()).toBe(life);
    expect(foreign.running()).toBe(true);
    await foreign.end();
    await readyAfter(node, life);
  });

  test('a data directory that is taken while etcd starts: ended by the verdict, held, and started once it is free', async ({
    lab: { node, place },
  }) => {
    place.useStub({ kind: 'slow', seconds: 3 });
    const life = await signalEtcd(node, 'SIGKILL');
    await node.until(({ process }) => process.phase === 'starting' && process.life === life + 1, 'the next life');
    // As etcd itself locks it: flock on the database.
    const foreign = runForeign('flock', [join(node.dataDir, 'member', 'snap', 'db'), 'sleep', '600']);
    const from = performance.now();
    const verdict = await verdictOn(node, life + 1, 40_000);
    process.stderr.write(`locked directory: verdict after ${Math.round((performance.now() - from) / 1000)} s\n`);
    expect(verdict.class).toBe('dataLocked');
    await blockedBy(node, 'preflight');
    expect(foreign.running()).toBe(true);
    place.useReal();
    await foreign.end();
    await readyAfter(node, life + 1);
  });
});

/** An etcd here of an older line. */
function olderLineThan(version: string): EtcdBinary {
  const older = binaries().findLast((binary) => lineOf(binary.version) !== lineOf(version));
  if (older === undefined) throw new Error('two lines of etcd are needed; run scripts/get-etcd');
  return older;
}

function lineOf(version: string): string {
  return versionNumbers(version).slice(0, 2).join('.');
}

/** Writes down that so many restarts were made just now, and that the next is due; returns the newest life that started. */
function spendRestarts(node: FleetNode, count: number): number {
  const path = join(node.stateDir, 'restarts');
  const reading = decodeRecord(readFileSync(path, 'utf8'), 1);
  if (reading.kind !== 'ok') throw new Error(`${path} is ${reading.kind}`);
  const at = { wallMs: Date.now(), monotonicMs: 0, epoch: 'a test' };
  const restarts = Array.from({ length: count }, () => at);
  writeFileSync(path, encodeRecord({ ...(reading.value as object), restarts, delayMs: 0 }, 1));
  return node.lives();
}

function msUntil(time: string | null): number {
  return time === null ? Number.NaN : Date.parse(time) - Date.now();
}

/** e_machine of an ELF program changed to one that nobody here has. */
function forAnotherMachine(program: Buffer): Buffer {
  const other = Buffer.from(program);
  other.writeUInt16LE(2, 18);
  return other;
}

/** Names, sizes and times of all files below a directory. */
function fingerprints(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { size, mtimeMs, ino } = statSync(join(directory, name));
      return `${name} ${ino} ${size} ${mtimeMs}`;
    });
}

/** A process of somebody else that listens where `url` points. */
async function foreignListener(url: string): Promise<{ readonly port: number; readonly stop: ChildProcess }> {
  const port = Number(new URL(url).port);
  const script = `require('node:net').createServer().listen(${port}, '127.0.0.1', () => console.log('listening'))`;
  const stop = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void stop.kill('SIGKILL'));
  if (stop.stdout !== null) await once(stop.stdout, 'data');
  return { port, stop };
}

/** A process that is not the agent's. */
function runForeign(program: string, args: readonly string[]) {
  const child = spawn(program, [...args], { stdio: 'ignore', detached: true });
  const ended = once(child, 'exit');
  const running = () => child.exitCode === null && child.signalCode === null;
  const end = async () => {
    // The whole group: flock runs another program.
    if (running() && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    await ended;
  };
  onTestFinished(end);
  const holds = (path: string) => {
    const { ino } = statSync(path);
    return readdirSync(`/proc/${child.pid}/fd`).some((fd) => {
      return statSync(`/proc/${child.pid}/fd/${fd}`, { throwIfNoEntry: false })?.ino === ino;
    });
  };
  return { pid: child.pid, running, end, holds };
}

/** The delay that was reported for the restart after the end of `life`. Unit: ms. */
async function restartDelayMs(node: FleetNode, life: number): Promise<unknown> {
  const events = await node.events();
  const end = events.findIndex((event) => event.kind === 'process.exited' && event.data['life'] === life);
  const restarting = events.slice(end).find((event) => event.kind === 'process.restarting');
  return restarting?.data['delayMs'];
}
