import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base } from 'vitest';
import type { StatusView } from '../../src/agent/control.ts';
import { Fleet, type FleetNode } from './fleet.ts';
import { EtcdPlace } from './stub-etcd.ts';

/** Rhythms that let a test see in seconds what takes minutes on a node. */
export const quickTimings = ['timing: {idleTurn: 1s, probeInterval: 200ms, probeDeadline: 1s, probeMisses: 3}'].join(
  '\n',
);

export type LastExit = NonNullable<StatusView['process']['lastExit']>;

/** Waits for the verdict on life `life` (or a later one). */
export async function verdictOn(node: FleetNode, life: number, withinMs = 20_000): Promise<LastExit> {
  const status = await node.until(
    ({ process: { lastExit } }) => lastExit !== null && lastExit.life >= life,
    `life ${life} has a verdict`,
    withinMs,
  );
  if (status.process.lastExit === null) throw new Error('there is no verdict');
  return status.process.lastExit;
}

/** The number of the life that runs, or ran last. */
export async function lifeOf(node: FleetNode): Promise<number> {
  return (await node.status()).process.life ?? 0;
}

/** Resolves when a life after `life` is ready. */
export async function readyAfter(node: FleetNode, life: number, withinMs = 30_000): Promise<StatusView> {
  return await node.until(
    ({ process }) => process.phase === 'ready' && (process.life ?? 0) > life,
    `a life after ${life} is ready`,
    withinMs,
  );
}

/** What the plan is blocked by, once it is blocked by `what`. */
export async function blockedBy(node: FleetNode, what: string, withinMs = 20_000): Promise<StatusView> {
  return await node.until(
    ({ plan }) => plan.kind === 'blocked' && plan.what === what,
    `it is blocked: ${what}`,
    withinMs,
  );
}

/** Ends etcd of this node by a signal from outside; returns its life. */
export async function signalEtcd(node: FleetNode, signal: NodeJS.Signals): Promise<number> {
  const { process: seen } = await node.status();
  if (seen.pid === null || seen.life === null) throw new Error(`etcd of ${node.name} does not run`);
  process.kill(seen.pid, signal);
  return seen.life;
}

/** An alarm that is raised now; its detail. */
export function alarmOf(status: StatusView, alarm: string): string | undefined {
  return status.alarms.find((one) => one.alarm === alarm)?.detail;
}

/** Pids of the etcd processes on this node's data directory; keepers, which have it among their arguments, are none. */
export function etcdProcesses(node: FleetNode): readonly number[] {
  return node.processes().filter((pid) => !isKeeper(pid));
}

function isKeeper(pid: number): boolean {
  try {
    return /\/keeper\.sh$/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1] ?? '');
  } catch {
    return false;
  }
}

/** One founded node for all tests of a file; its binary can be swapped. */
interface Shared {
  readonly fleet: Fleet;
  readonly place: EtcdPlace;
  /** The configuration as it was at first. */
  readonly config: string;
}

/**
 * vitest's `test` with `lab`: one founded node, which each test finds with its real etcd ready, its first configuration,
 * a running agent and an empty history of restarts, whatever the test before did to it.
 */
export const test = base
  .extend(
    'shared',
    { scope: 'file' },
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern
    async ({}, { onCleanup }): Promise<Shared> => {
      const place = new EtcdPlace();
      const fleet = await Fleet.founded({ size: 1, yaml: quickTimings, binary: place.binary });
      onCleanup(async () => {
        await fleet.close();
        place[Symbol.dispose]();
      });
      return { fleet, place, config: readFileSync(fleet.node('n1').configFile, 'utf8') };
    },
  )
  .extend('lab', async ({ shared, task }, { onCleanup }) => {
    const { fleet, place, config } = shared;
    const node = fleet.node('n1');
    place.useReal();
    writeFileSync(node.configFile, config);
    if (!node.agentRuns()) await node.startAgent();
    node.mark(task.name);
    await node.post('/v1/start');
    // A stub of the test before lives on until somebody ends it.
    await node.ready(8_000).catch(() => {
      for (const pid of etcdProcesses(node)) process.kill(pid, 'SIGKILL');
    });
    await node.ready(60_000);
    onCleanup(() => {
      if (task.result?.state === 'fail') process.stderr.write(`${task.name}\n${fleet.lastLines(60)}\n`);
    });
    return { node, place, config };
  });

/** Runs a second agent on a configuration until it ends by itself. */
export async function runAgentToEnd(
  configFile: string,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = process.env['ETCD_NODE_AGENT_BUNDLE'] ?? join(import.meta.dirname, '../../src/cli/agent.ts');
  const child = spawn(process.execPath, [program, 'run', '--config', configFile], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '' },
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => void output.push(String(chunk)));
  const limit = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(limit);
  return { code, output: output.join('') };
}

/** Whether this user may mount file systems here; where not, the tests that need it are named as not run. */
export function mayMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'may-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory], { stdio: 'ignore' });
    execFileSync('umount', [directory]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
