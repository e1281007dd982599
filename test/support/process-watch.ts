import { readdirSync, readFileSync } from 'node:fs';

/** One look at /proc that showed more than one etcd on a data directory. */
export interface Doubled {
  readonly atMs: number;
  readonly pids: readonly number[];
}

/**
 * Looks at /proc all the time for etcd processes on one data directory: which came, in order, and whether there ever were
 * two at once. A keeper has the directory among its arguments too, and is none.
 */
export class ProcessWatch {
  readonly #dataDir: string;
  readonly #timer: NodeJS.Timeout;
  /** Processes that have nothing to do with it; a pid that comes again is looked at again. */
  #strangers = new Set<string>();
  /** Every etcd that was seen, in order, with the moment (performance.now()). */
  readonly seen = new Map<number, number>();
  /** What each of them looked like at first sight, for whoever reads it after a failure. */
  readonly #commands = new Map<number, string>();
  readonly doubled: Doubled[] = [];
  looks = 0;

  constructor(dataDir: string, everyMs = 5) {
    this.#dataDir = dataDir;
    this.#timer = setInterval(() => this.#look(), everyMs);
    this.#look();
  }

  /** The pids that came after `pid`. */
  after(pid: number): readonly number[] {
    const pids = [...this.seen.keys()];
    return pids.slice(pids.indexOf(pid) + 1);
  }

  /** All that came, with the head of each command. */
  describe(): string {
    return [...this.#commands].map(([pid, command]) => `${pid}: ${command}`).join('; ');
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.looks++;
    const now = performance.now();
    const here = new Set<string>();
    const living: number[] = [];
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      here.add(name);
      if (!this.#strangers.has(name) && this.#isEtcd(name)) living.push(Number(name));
    }
    for (const name of this.#strangers) if (!here.has(name)) this.#strangers.delete(name);
    for (const pid of living) {
      if (this.seen.has(pid)) continue;
      this.seen.set(pid, now);
      this.#commands.set(pid, read(`/proc/${pid}/cmdline`).split('\0').slice(0, 4).join(' '));
    }
    if (living.length > 1) this.doubled.push({ atMs: now, pids: living });
  }

  #isEtcd(name: string): boolean {
    const words = read(`/proc/${name}/cmdline`).split('\0');
    const names = words.some((word) => word === this.#dataDir || word.endsWith(`=${this.#dataDir}`));
    // A process may become another by exec, but only a keeper becomes etcd, and a keeper names the directory.
    if (!names) {
      if (words.length > 1) this.#strangers.add(name);
      return false;
    }
    if (/\/keeper\.sh$/.test(words[1] ?? '')) return false;
    const state = read(`/proc/${name}/stat`)
      .replace(/^.*\) /s, '')
      .slice(0, 1);
    return state !== '' && state !== 'Z' && state !== 'X';
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
