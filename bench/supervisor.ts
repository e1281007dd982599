/**
 * What supervision costs: latencies of start, end and adoption, and the memory of a keeper. Prints one JSON object.
 *
 *   scripts/node bench/supervisor.ts [ROUNDS]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../src/base/log.ts';
import { realDisk } from '../src/base/real-disk.ts';
import { systemClock } from '../src/base/system-clock.ts';
import type { LifeEnd } from '../src/supervisor/life.ts';
import { defaultLifeLimits, Lives } from '../src/supervisor/lives.ts';
import { directLauncher } from '../src/supervisor/run.ts';
import { Supervisor } from '../src/supervisor/supervisor.ts';

const rounds = Number(process.argv[2] ?? 30);
const root = mkdtempSync(join(tmpdir(), 'bench-supervisor-'));
const identity = join(root, 'data');
const launcher = directLauncher(join(import.meta.dirname, '../src/supervisor/keeper.sh'));
const spec = { binary: '/bin/sleep', args: ['100000'], environment: {}, identity: '100000' };
const figures: Record<string, number[]> = {
  prepareMs: [],
  startMs: [],
  adoptMs: [],
  exitNoticeMs: [],
  stopMs: [],
  keeperPssKiB: [],
};

let ended = Promise.withResolvers<LifeEnd>();
function supervise(signal: AbortSignal): Supervisor {
  return new Supervisor({
    directory: join(root, 'run'),
    lockFile: `${identity}.lock`,
    launcher,
    disk: realDisk,
    clock: systemClock,
    log: silentLog,
    signal,
    onLine: () => {},
    isDecisive: () => false,
    onEnd: (_, end) => ended.resolve(end),
    onChange: () => {},
  });
}

async function timed<T>(name: string, act: () => Promise<T> | T): Promise<T> {
  const from = performance.now();
  const result = await act();
  figures[name]?.push(performance.now() - from);
  return result;
}

for (let round = 0; round < rounds; round++) {
  const lives = new Lives({
    directory: join(root, 'prepare'),
    disk: realDisk,
    clock: systemClock,
    log: silentLog,
    limits: defaultLifeLimits,
  });
  const { environment: _, ...kept } = spec;
  await timed('prepareMs', () =>
    lives.create({ ...kept, prefix: [], environmentNames: [], startedAtMs: 0, bootId: '' }),
  );

  const first = new AbortController();
  const life = await timed('startMs', () => supervise(first.signal).start(spec));
  first.abort();

  const keeper = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${life.pid}/status`, 'utf8'))?.[1];
  figures['keeperPssKiB']?.push(
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${keeper}/smaps_rollup`, 'utf8'))?.[1]),
  );

  const second = new AbortController();
  const next = supervise(second.signal);
  await timed('adoptMs', () => next.recover());
  ended = Promise.withResolvers();
  if (round % 2 === 0) {
    await timed('exitNoticeMs', () => {
      process.kill(life.pid, 'SIGKILL');
      return ended.promise;
    });
  } else {
    await timed('stopMs', () => next.stop({ graceMs: 5000, by: 'bench', reason: 'bench' }));
  }
  second.abort();
}
rmSync(root, { recursive: true, force: true });

const summary = Object.fromEntries(
  Object.entries(figures).map(([name, values]) => {
    const sorted = values.toSorted((a, b) => a - b);
    const at = (share: number) => Number((sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN).toFixed(1));
    return [name, { median: at(0.5), p95: at(0.95), worst: at(1) }];
  }),
);
console.log(JSON.stringify({ rounds, ...summary }));
