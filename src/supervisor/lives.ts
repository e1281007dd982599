import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { LifeNotPreparedError } from './errors.ts';
import { fillLifeDir, LifeDir, type LifeSpec } from './life-dir.ts';

/** Which old lives are kept. */
export interface LifeLimits {
  /** The newest are kept whatever their age. Default 20. */
  readonly keepCount: number;
  /** Younger ones are kept whatever their number. Unit: ms, default 7 days. */
  readonly keepMs: number;
  /** Beyond this the oldest go all the same. Unit: allocated bytes, default 1 GiB. */
  readonly maxBytes: number;
}

/** Evidence outlives a weekend, and a crash loop does not fill the disk. */
export const defaultLifeLimits: LifeLimits = {
  keepCount: 20,
  keepMs: 7 * 24 * 60 * 60 * 1000,
  maxBytes: 1024 * 1024 * 1024,
};

/** What the lives of one child are kept with. */
export interface LivesOptions {
  /** Lives are `DIRECTORY/00000001` and so on. */
  readonly directory: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: LifeLimits;
  /** The highest number that the owner remembers: the records may be gone (another volume, somebody's hand), the numbers go on. Default 0. */
  readonly remembered?: (() => number) | undefined;
}

/** The directories of all lives of one child, numbered from 1; no number is used twice. */
export class Lives {
  readonly #options: LivesOptions;

  constructor(options: LivesOptions) {
    this.#options = options;
  }

  /** All lives, oldest first. */
  all(): readonly LifeDir[] {
    const names = this.#options.disk.list(this.#options.directory) ?? [];
    return names.filter((name) => /^\d{8}$/.test(name)).map((name) => this.#lifeOf(Number(name)));
  }

  /** A life by its number, or undefined if it was pruned or never was. */
  find(number: number): LifeDir | undefined {
    return this.all().find((life) => life.number === number);
  }

  /** Prepares the next life: all its files are on disk, or {@link LifeNotPreparedError} is thrown and no trace stays. */
  async create(spec: LifeSpec): Promise<LifeDir> {
    const { directory, disk, remembered } = this.#options;
    const life = this.#lifeOf(Math.max(this.all().at(-1)?.number ?? 0, remembered?.() ?? 0) + 1);
    const draft = join(directory, 'draft');
    try {
      rmSync(draft, { recursive: true, force: true });
      disk.ensureDirectory(directory);
      mkdirSync(draft, { mode: 0o700 });
      await fillLifeDir(draft, spec);
      disk.rename(draft, life.path);
      return life;
    } catch (error) {
      throw new LifeNotPreparedError(life.path, error);
    }
  }

  /** Removes old lives, never the newest (it keeps the numbers going) and never `current`. Says what it removed. */
  prune(current: number | undefined): void {
    const { limits, clock, log, disk, directory } = this.#options;
    const lives = this.all();
    const newest = lives.at(-1)?.number;
    let bytes = lives.reduce((sum, life) => sum + allocatedBytes(life.path), 0);
    for (const [index, life] of lives.entries()) {
      if (life.number === newest || life.number === current) continue;
      const old = clock.wallMs() - startedAtMs(life) > limits.keepMs && index < lives.length - limits.keepCount;
      const because = old ? 'it is old' : bytes > limits.maxBytes ? 'the lives take too much space' : undefined;
      if (because === undefined) continue;
      bytes -= allocatedBytes(life.path);
      const removing = join(directory, 'removing');
      try {
        rmSync(removing, { recursive: true, force: true }); // of an agent that was killed here
        disk.rename(life.path, removing);
        rmSync(removing, { recursive: true, force: true });
        log.info({ life: life.number, because }, 'the record of an old life was removed');
      } catch (error) {
        log.warn({ life: life.number, why: describeError(error) }, 'the record of an old life could not be removed');
      }
    }
  }

  #lifeOf(number: number): LifeDir {
    return new LifeDir(join(this.#options.directory, String(number).padStart(8, '0')), number);
  }
}

function startedAtMs(life: LifeDir): number {
  return life.spec()?.startedAtMs ?? statSync(life.path).mtimeMs;
}

function allocatedBytes(directory: string): number {
  let sum = 0;
  for (const name of readdirSync(directory)) {
    sum += (statSync(join(directory, name), { throwIfNoEntry: false })?.blocks ?? 0) * 512;
  }
  return sum;
}
