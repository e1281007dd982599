import { type Clock, delay } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { type AliveFifo, openAlive } from './alive.ts';
import { LockHeldError } from './errors.ts';
import type { LifeDir } from './life-dir.ts';
import type { Lives } from './lives.ts';
import { bootId, holdersOf, namesIdentity, type ProcessRecord, readProcessStat, verifyProcess } from './process.ts';
import { lockState } from './run.ts';

/** A living child of an earlier agent (or of an earlier start), with its open fifo. */
export interface LivingLife {
  readonly dir: LifeDir;
  readonly record: ProcessRecord;
  readonly identity: string;
  readonly fifo: AliveFifo;
}

/** Where to look. */
export interface FindLivingOptions {
  readonly lives: Lives;
  readonly lockFile: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** A keeper that holds the lock must have recorded its child (or be gone) within this. Unit: ms. */
  readonly patienceMs: number;
}

/**
 * Finds the life that holds the lock, whatever moment the earlier agent was killed at. Keepers that have not begun are
 * stopped from beginning. Undefined if the lock is free and nothing lives. Throws {@link LockHeldError} if the lock is
 * held and by none of our lives.
 */
export async function findLiving(options: FindLivingOptions): Promise<LivingLife | undefined> {
  const { clock, signal, lockFile } = options;
  const deadline = clock.monotonicMs() + options.patienceMs;
  for (;;) {
    const mayScan = clock.monotonicMs() > deadline - options.patienceMs / 2;
    for (const life of options.lives.all().toReversed()) {
      if (life.waitsForKeeper) life.withdraw(options.disk);
      const living = examine(life, lockFile, mayScan);
      if (living !== undefined) return living;
    }
    // Asked last: a keeper that began before its life was withdrawn holds the lock by now and is seen next time round.
    const state = await lockState(lockFile);
    if (state === 'free') return undefined;
    if (clock.monotonicMs() > deadline) throw new LockHeldError(lockFile, holdersOf(lockFile));
    await delay(clock, 25, signal);
  }
}

/** The life if its child runs now. Cheapest questions first: most lives are long over. */
function examine(dir: LifeDir, lockFile: string, mayScan: boolean): LivingLife | undefined {
  const alive = openAlive(dir.alive);
  if (alive.kind !== 'held') return undefined;
  const identity = dir.exit().kind === 'ok' ? undefined : dir.spec()?.identity;
  if (identity !== undefined) {
    const pid = dir.pid();
    const record = pid.kind === 'ok' ? pid.value : mayScan ? scan(dir, lockFile, identity) : undefined;
    // A child that is gone while its fifo is held is about to be recorded; one that is unsure may be before its exec.
    if (record !== undefined && verifyProcess(record, identity).kind === 'ours') {
      return { dir, record, identity, fifo: alive.fifo };
    }
  }
  alive.fifo.close();
  return undefined;
}

/** The child of a life whose pid record is missing or torn: the one process with lock and identity that is no keeper. */
function scan(dir: LifeDir, lockFile: string, identity: string): ProcessRecord | undefined {
  const found = holdersOf(lockFile).filter(
    ({ commandLine }) => namesIdentity(commandLine, identity) && !commandLine.includes(dir.path), // a keeper, or its fork before the exec, has the life in its arguments
  );
  const [only] = found;
  if (only === undefined || found.length > 1) return undefined;
  const startTicks = readProcessStat(only.pid)?.startTicks;
  return startTicks === undefined
    ? undefined
    : { pid: only.pid, startTicks, bootId: bootId(), binary: only.executable };
}
