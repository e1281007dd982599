/**
 * Resident memory of the agent beside bare Node, 10 s after it is ready, with the flags that the package runs the agent with.
 *
 *   scripts/node bench/memory.ts [--seconds N] [--max-rss MIB] [NAME=ENTRY[ ARGUMENT...] ...]
 *
 * Without entries: the whole agent as a bundle, idle, with one real etcd that it founded; and the agent's API, configuration
 * and log without its core. An entry prints a line `ready` and ends when its standard input ends. With --max-rss it ends
 * with 1 if one needs more.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { bundle } from '../scripts/bundle.ts';
import { Fleet } from '../test/support/fleet.ts';

/** What the package starts the agent with: small young generation, bounded heap, one worker thread of V8. */
// glibc keeps an arena of free memory for each thread otherwise: 9 MiB of the agent's.
const allocator = { MALLOC_ARENA_MAX: '1' };
const nodeFlags = ['--max-semi-space-size=1', '--max-old-space-size=96', '--v8-pool-size=1'];

interface Figures {
  readonly rssMib: number;
  readonly pssMib: number;
  readonly anonymousMib: number;
  readonly threads: number;
  readonly readyMs: number;
}

const { values, positionals } = parseArgs({
  options: { seconds: { type: 'string', default: '10' }, 'max-rss': { type: 'string' } },
  allowPositionals: true,
});
const root = join(import.meta.dirname, '..');
const out = join(root, 'dist', 'bench');
mkdirSync(out, { recursive: true });
const subjects =
  positionals.length > 0
    ? positionals
    : ['api=bench/memory-parts/api.ts', 'api-scraped=bench/memory-parts/api.ts --scraped'];

let tooLarge = false;
console.log('what           bundle KiB  ready ms  RSS MiB  PSS MiB  anonymous  threads');
for (const subject of ['bare-node=bench/memory-parts/idle.ts', ...subjects]) {
  const [name = '', command = ''] = subject.split(/=(.*)/s);
  const [entry = '', ...args] = command.split(' ');
  const file = join(out, `${name}.mjs`);
  const size = await bundle(join(root, entry), file);
  // Twice: the second start finds the compiled code of the first, as every start but the first does on a node.
  await measure(file, args, 0);
  print(name, size, await measure(file, args, Number(values.seconds) * 1000));
}
if (positionals.length === 0) {
  const file = join(out, 'agent.mjs');
  const size = await bundle(join(root, 'src/cli/agent.ts'), file);
  print('agent', size, await measureAgent(file, Number(values.seconds) * 1000));
}
process.exitCode = tooLarge ? 1 : 0;

function print(name: string, size: number, figures: Figures): void {
  const columns = [
    Math.round(size / 1024),
    figures.readyMs,
    figures.rssMib,
    figures.pssMib,
    figures.anonymousMib,
    figures.threads,
  ];
  console.log(
    name.padEnd(15) + columns.map((value, index) => String(value).padStart([10, 10, 9, 9, 11, 9][index] ?? 9)).join(''),
  );
  if (values['max-rss'] !== undefined && figures.rssMib > Number(values['max-rss'])) {
    console.error(`memory: ${name} needs ${figures.rssMib} MiB, more than ${values['max-rss']}`);
    tooLarge = true;
  }
}

/** An agent that has found its cluster, was started anew, and has adopted its etcd: what runs on a node all year. */
async function measureAgent(file: string, idleMs: number): Promise<Figures> {
  process.env['ETCD_NODE_AGENT_BUNDLE'] = file; // where Fleet finds its agent, which it starts with the same flags
  process.env['NODE_COMPILE_CACHE'] = join(out, 'compile-cache');
  const fleet = await Fleet.founded({ size: 1 });
  try {
    const node = fleet.node('n1');
    await node.endAgent('SIGTERM');
    const started = performance.now();
    await node.startAgent();
    const readyMs = Math.round(performance.now() - started);
    await node.ready();
    await sleep(idleMs);
    return { ...readMemory(node.agentPid), readyMs };
  } finally {
    await fleet.close();
  }
}

async function measure(file: string, args: readonly string[], idleMs: number): Promise<Figures> {
  const started = performance.now();
  const child = spawn(process.execPath, [...nodeFlags, file, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: join(out, 'compile-cache'), ...allocator },
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await ready(child, file);
  const readyMs = Math.round(performance.now() - started);
  await sleep(idleMs);
  const figures = { ...readMemory(child.pid ?? 0), readyMs };
  child.stdin?.end();
  await ended;
  return figures;
}

async function ready(child: ChildProcess, file: string): Promise<void> {
  if (child.stdout === null) throw new Error('no standard output');
  for await (const line of createInterface({ input: child.stdout })) {
    if (line !== 'ready') continue;
    child.stdout.resume();
    return;
  }
  throw new Error(`${file} ended before it was ready`);
}

function readMemory(pid: number): Omit<Figures, 'readyMs'> {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const mib = (field: string) =>
    Math.round(Number(new RegExp(`^${field}: +(\\d+) kB`, 'm').exec(rollup)?.[1]) / 102.4) / 10;
  const threads = Number(/^Threads:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  return { rssMib: mib('Rss'), pssMib: mib('Pss'), anonymousMib: mib('Anonymous'), threads };
}
