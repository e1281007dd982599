import { type Clock, delay } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { openAlive } from './alive.ts';
import { inspectBinary } from './binary.ts';
import { LaunchFailedError } from './errors.ts';
import type { StartSpec } from './life.ts';
import type { LifeDir } from './life-dir.ts';
import type { Lives } from './lives.ts';
import { bootId, type ProcessRecord } from './process.ts';
import type { Launcher } from './run.ts';

/** What a launch needs. */
export interface LaunchOptions {
  readonly lives: Lives;
  readonly lockFile: string;
  readonly launcher: Launcher;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** A keeper records its child within this. Unit: ms. */
  readonly launchMs: number;
}

/** A launch's outcome: a child that was recorded (it may have ended since), or the lock was somebody else's. */
export type Launched =
  | { readonly kind: 'launched'; readonly dir: LifeDir; readonly record: ProcessRecord }
  | { readonly kind: 'lockHeld' };

/**
 * Prepares a life on disk, starts its keeper, and waits for the record of the child. Throws BinaryUnusableError,
 * LifeNotPreparedError or {@link LaunchFailedError}; then no child comes of this launch, or (a keeper that hangs) it is
 * found by its lock at the next look.
 */
export async function launchLife(options: LaunchOptions, spec: StartSpec): Promise<Launched> {
  const isScript = inspectBinary(spec.binary) === 'script';
  const dir = await prepare(options, spec);
  const keeper = await options.launcher.launch({
    lifeDir: dir.path,
    lockFile: options.lockFile,
    binary: isScript ? '' : spec.binary, // what runs is the interpreter, so there is nothing to compare
    command: [...(spec.prefix ?? []), spec.binary, ...spec.args],
    environment: spec.environment,
  });
  let keeperCode: number | null | undefined;
  void keeper.ended.then((code) => {
    keeperCode = code;
  });
  const deadline = options.clock.monotonicMs() + options.launchMs;
  for (;;) {
    const ended = keeperCode; // looked at before the record: a record that is there then is the last word
    const record = dir.pid();
    if (record.kind === 'ok') return { kind: 'launched', dir, record: record.value };
    if (ended === 99) return refused(options, dir);
    if (ended !== undefined) throw withdrawn(options, dir, keeperProblem(ended));
    if (options.clock.monotonicMs() > deadline) {
      throw withdrawn(options, dir, `no record of a child within ${options.launchMs} ms`);
    }
    await delay(options.clock, 4, options.signal);
  }
}

function prepare({ lives, clock }: LaunchOptions, spec: StartSpec): Promise<LifeDir> {
  return lives.create({
    prefix: spec.prefix ?? [],
    binary: spec.binary,
    args: spec.args,
    environmentNames: Object.keys(spec.environment).sort(),
    identity: spec.identity,
    startedAtMs: clock.wallMs(),
    bootId: bootId(),
  });
}

function refused(options: LaunchOptions, dir: LifeDir): Launched {
  dir.withdraw(options.disk);
  return { kind: 'lockHeld' };
}

function withdrawn(options: LaunchOptions, dir: LifeDir, what: string): LaunchFailedError {
  dir.withdraw(options.disk);
  const alive = openAlive(dir.alive);
  if (alive.kind === 'held') alive.fifo.close();
  return new LaunchFailedError(alive.kind === 'held' ? `${what}; its keeper still runs` : what);
}

/** The exit codes of keeper.sh, in words. */
function keeperProblem(code: number | null): string {
  const words: Readonly<Record<number, string>> = {
    0: 'the keeper ended without a record of the child',
    95: 'the exit record could not be written',
    96: 'this life was withdrawn or had run already',
    97: 'the lock file cannot be opened',
    98: 'the fifo cannot be made',
    127: 'a tool of the keeper is missing (flock, mkfifo)',
  };
  if (code === null) return 'the keeper was killed';
  return words[code] ?? `the keeper ended with code ${code}`;
}
