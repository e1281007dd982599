import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../src/base/log.ts';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { Life, LifeEnd, StartSpec } from '../../src/supervisor/life.ts';
import { LifeDir } from '../../src/supervisor/life-dir.ts';
import type { LogLine } from '../../src/supervisor/line-splitter.ts';
import { isDead, readProcessStat } from '../../src/supervisor/process.ts';
import { directLauncher } from '../../src/supervisor/run.ts';
import { Supervisor, type SupervisorOptions } from '../../src/supervisor/supervisor.ts';
import { eventually } from '../support/eventually.ts';

export const keeperPath = join(import.meta.dirname, '../../src/supervisor/keeper.sh');

export const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A place for one supervised child, and all that it told us. Everything it left is gone after `dispose`. */
export class Harness {
  readonly root: string;
  readonly lines: LogLine[] = [];
  readonly ends: { life: Life; end: LifeEnd; linesBefore: number }[] = [];
  readonly warnings: string[] = [];
  #aborters: AbortController[] = [];

  constructor(root = mkdtempSync(join(tmpdir(), 'supervisor-'))) {
    this.root = root;
  }

  /** Stands in the command line of each child. */
  get identity(): string {
    return join(this.root, 'data');
  }
  get lockFile(): string {
    return join(this.root, 'data.lock');
  }
  get lives(): string {
    return join(this.root, 'run/lives');
  }

  supervisor(options: Partial<SupervisorOptions> = {}): Supervisor {
    const aborter = new AbortController();
    this.#aborters.push(aborter);
    return new Supervisor({
      directory: join(this.root, 'run'),
      lockFile: this.lockFile,
      launcher: directLauncher(keeperPath),
      disk: realDisk,
      clock: systemClock,
      log: this.#log,
      signal: aborter.signal,
      onLine: (_, line) => this.lines.push(line),
      isDecisive: (line) => line.includes('DECISIVE'),
      onEnd: (life, end) => this.ends.push({ life, end, linesBefore: this.lines.length }),
      onChange: () => {},
      ...options,
    });
  }

  /** The agent ends: all supervisors made so far let go. */
  letGo(): void {
    for (const aborter of this.#aborters.splice(0)) aborter.abort(new Error('the agent ends'));
  }

  /** A child that is a shell script. */
  script(text: string, more: Partial<StartSpec> = {}): StartSpec {
    return {
      binary: '/bin/sh',
      args: ['-c', text, 'stub', `--data-dir=${this.identity}`],
      environment: { PATH: path },
      identity: this.identity,
      ...more,
    };
  }

  lifeDir(number: number): LifeDir {
    return new LifeDir(join(this.lives, String(number).padStart(8, '0')), number);
  }

  logText(number: number): string {
    return readFileSync(this.lifeDir(number).log, 'utf8');
  }

  /** Every process that was recorded here and still lives. */
  living(): readonly number[] {
    const pids: number[] = [];
    for (const name of realDisk.list(this.lives) ?? []) {
      if (!/^\d+$/.test(name)) continue;
      const record = this.lifeDir(Number(name)).pid();
      if (record.kind === 'ok' && isAlive(record.value.pid, record.value.startTicks)) pids.push(record.value.pid);
    }
    return pids;
  }

  /** The agent ends, and so do all children. */
  async endAll(): Promise<void> {
    this.letGo();
    for (const pid of this.living()) {
      process.kill(pid, 'SIGCONT');
      process.kill(pid, 'SIGKILL');
    }
    await eventually(() => this.living().length === 0, { what: 'the end of all children' });
  }

  async dispose(): Promise<void> {
    await this.endAll();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }

  readonly #log: Log = {
    ...silentLog,
    warn: (fields, message) => void this.warnings.push(`${message} ${JSON.stringify(fields)}`),
    error: (fields, message) => void this.warnings.push(`${message} ${JSON.stringify(fields)}`),
  };
}

/** True if that very process lives; a zombie does not. */
export function isAlive(pid: number, startTicks: string): boolean {
  const stat = readProcessStat(pid);
  return stat !== undefined && stat.startTicks === startTicks && !isDead(stat);
}
