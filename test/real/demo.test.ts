// Goal: `npm start` keeps its promises on this machine, says what it measured, and leaves nothing behind, whether it ends by
// itself or is interrupted.
// Method: scripts/demo as a person runs it, with a temporary directory of its own that must be empty afterwards.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base, expect } from 'vitest';
import { sweep } from '../../demo/sweep.ts';
import { binaries, type EtcdBinary, storyVersions } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';

const script = join(import.meta.dirname, '../..', 'scripts', 'demo');

/** One run of scripts/demo. */
class DemoRun {
  stdout = '';
  stderr = '';
  readonly exitCode: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #directory: string;

  constructor(directory: string, args: readonly string[]) {
    this.#directory = directory;
    this.#child = spawn(script, args, {
      env: { ...process.env, TMPDIR: directory, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.on('data', (chunk) => {
      this.stdout += String(chunk);
    });
    this.#child.stderr?.on('data', (chunk) => {
      this.stderr += String(chunk);
    });
    this.exitCode = once(this.#child, 'close').then(([code]) => code);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Files in its temporary directory, and processes that name it. */
  leftovers(): { readonly files: readonly string[]; readonly processes: readonly string[] } {
    const processes = readdirSync('/proc').filter((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(this.#directory);
      } catch {
        return false;
      }
    });
    return { files: readdirSync(this.#directory), processes };
  }
}

/** Runs `scripts/demo ARGS` with this etcd (default: as it chooses). All runs of a test share one temporary directory. */
type RunDemo = (binary: EtcdBinary | undefined, ...args: readonly string[]) => DemoRun;

const test = base.extend(
  'demo', // biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern
  async ({}, { onCleanup }): Promise<RunDemo> => {
    const directory = mkdtempSync(join(tmpdir(), 'demo-test-'));
    const runs: DemoRun[] = [];
    onCleanup(async () => {
      // What a failed test left: a run sweeps its own processes, a kept one is swept here.
      for (const run of runs) {
        run.kill('SIGTERM');
        await run.exitCode;
      }
      for (const left of readdirSync(directory)) await sweep(join(directory, left));
      rmSync(directory, { recursive: true, force: true });
    });
    return (binary, ...args) => {
      const etcd = binary === undefined ? [] : ['--etcd', binary.version];
      const run = new DemoRun(directory, [...etcd, ...args]);
      runs.push(run);
      return run;
    };
  },
);

for (const binary of storyVersions()) {
  test(`etcd ${binary.version}: the demo keeps its promises, and leaves nothing behind`, { timeout: 240_000 }, async ({
    demo,
  }) => {
    const run = demo(binary, '--json');
    expect(await run.exitCode, run.stderr).toBe(0);
    const summary = JSON.parse(run.stdout);
    expect(summary).toMatchObject({
      ok: true,
      broken: [],
      etcdVersion: binary.version,
      verdict: 'removed',
      agentPidUnchanged: true,
      startsAfterRemoval: 0,
      removalReports: 1,
      crashVerdict: 'killed',
      writesLost: 0,
      reportsLost: 0,
      keptIn: null,
    });
    // It is a race: of the panic it dies with 2, else it leaves with 0, or with 1 from 3.5.18 on.
    const codes = summary.panicSeen ? [2] : [0, 1];
    expect(summary.etcdExit.signal).toBeNull();
    expect(codes).toContain(summary.etcdExit.code);
    expect(summary.archivedTo).toContain(`/${summary.removedNode}/data/default/${summary.removedNode}/archive/`);
    expect(summary.reportsReceived).toBe(summary.reportsSent);
    expect(summary.reportsSent).toBeGreaterThan(20);
    expect(summary.writesAcknowledged).toBeGreaterThan(40);
    for (const figure of ['removalToVerdictMs', 'crashToServingMs', 'longestWriteGapMs', 'durationMs']) {
      expect(summary[figure], figure).toBeGreaterThan(0);
    }
    expect(run.leftovers()).toEqual({ files: [], processes: [] });
    process.stderr.write(
      `etcd ${binary.version}: ${run.stdout.replace(/\s+/g, ' ')}\n`, // the figures, for whoever compares them
    );
  });
}

const newest = binaries().at(-1);
/** One whole run more is for the full check. */
const full = process.env['ETCD_TEST_VERSIONS'] === 'all';

test.for([
  ['SIGINT', 130, 'agents run'],
  ['SIGTERM', 143, 'is told to remove'],
] as const)(
  '%s ends the demo with %i, and leaves nothing behind',
  { timeout: 120_000 },
  async ([signal, code, moment], { demo }) => {
    const run = demo(newest, '--json');
    await eventually(() => run.stderr.includes(moment), { withinMs: 60_000, what: `"${moment}"` });
    expect(run.leftovers().processes.length).toBeGreaterThan(3);
    run.kill(signal);
    expect(await run.exitCode, run.stderr).toBe(code);
    expect(run.stdout).toBe('');
    expect(run.leftovers()).toEqual({ files: [], processes: [] });
  },
);

test.runIf(full)(
  'a kept demo runs on without its parent, and --stop ends all of it',
  { timeout: 240_000 },
  async ({ demo }) => {
    const run = demo(newest, '--json', '--keep');
    expect(await run.exitCode, run.stderr).toBe(0);
    const { keptIn } = JSON.parse(run.stdout);
    expect(run.stderr).toContain(`--stop ${keptIn}`);
    // Three agents, the receiver, and a keeper with its etcd on each node that is still a member.
    expect(run.leftovers().processes).toHaveLength(8);
    const stop = demo(undefined, '--stop', keptIn);
    expect(await stop.exitCode, stop.stderr).toBe(0);
    expect(run.leftovers()).toEqual({ files: [], processes: [] });
  },
);

test('npm start adds nothing to standard output, where --json promises one object', { timeout: 60_000 }, async () => {
  // Refused before it starts anything: what is on standard output now is npm's own.
  const start = ['start', '--', '--json', '--stop', tmpdir()];
  const npm = spawn('npm', start, { stdio: ['ignore', 'pipe', 'ignore'] });
  const [out, [code]] = await Promise.all([npm.stdout.toArray(), once(npm, 'close')]);
  expect(Buffer.concat(out).toString('utf8')).toBe('');
  expect(code).toBe(1);
});

test('what makes no sense is refused with 2, before anything is started', { timeout: 60_000 }, async ({ demo }) => {
  const unknown = demo(undefined, '--jsno');
  expect(await unknown.exitCode).toBe(2);
  expect(unknown.stderr).toContain('--jsno');
  const nothing = demo(undefined, '--stop', tmpdir());
  expect(await nothing.exitCode).toBe(1);
  expect(nothing.stderr).toContain(`${tmpdir()} is not the directory of a demo`);
  expect(nothing.leftovers()).toEqual({ files: [], processes: [] });
});
