import { chownSync, existsSync, lstatSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from '../base/errors.ts';

/** What the agent asks of the machine below it, beside files. A port: tests and the simulator bring their own. */
export interface Host {
  /** Free space for unprivileged users where `path` (or its nearest existing parent) lies. Unit: bytes; undefined if it cannot be told. */
  freeBytes(path: string): number | undefined;
  /** True if the directory exists and another file system begins there. */
  isMountPoint(path: string): boolean;
  /** Whether anything is there; a broken link counts. Throws if that cannot be told. */
  exists(path: string): boolean;
  /** How many processes of our memory cgroup the kernel has killed so far; undefined where it does not say. */
  oomKills(): number | undefined;
  /** Removes a directory and all below it. Only for archives beyond their bound. */
  removeTree(path: string): void;
  /** Gives a directory or file to the user that etcd runs as; harmless where that is ourselves. */
  giveTo(path: string, owner: Owner): void;
  /**
   * Device, inode, size and time of change, as one comparable text; `absent` if there is no such file, the errno where it
   * cannot be looked at (`EACCES`). Never throws.
   */
  fingerprint(path: string): string;
}

/** A user and its group, by number. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The real machine. */
export const realHost: Host = {
  freeBytes(path) {
    try {
      let existing = path;
      while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
      const stats = statfsSync(existing);
      return stats.bavail * stats.bsize;
    } catch {
      return undefined;
    }
  },
  isMountPoint(path) {
    try {
      const own = statSync(path);
      const parent = statSync(dirname(path));
      return own.isDirectory() && (own.dev !== parent.dev || own.ino === parent.ino);
    } catch {
      return false;
    }
  },
  exists: (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
  oomKills,
  removeTree: (path) => rmSync(path, { recursive: true, force: true }),
  giveTo: (path, owner) => chownSync(path, owner.uid, owner.gid),
  fingerprint(path) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? 'absent' : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}`;
    } catch (error) {
      return errnoOf(error) ?? String(error);
    }
  },
};

/** From cgroup v2 (`memory.events`) or v1 (`memory.oom_control`), whichever this process is in. */
function oomKills(): number | undefined {
  try {
    for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
      const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      const files =
        controllers === ''
          ? [`/sys/fs/cgroup${path}/memory.events`, `/sys/fs/cgroup/unified${path}/memory.events`]
          : controllers.split(',').includes('memory')
            ? [`/sys/fs/cgroup/memory${path}/memory.oom_control`]
            : [];
      for (const file of files) {
        if (!existsSync(file)) continue;
        const count = /^oom_kill (\d+)$/m.exec(readFileSync(file, 'utf8'))?.[1];
        if (count !== undefined) return Number(count);
      }
    }
  } catch {
    // Not every machine shows it.
  }
  return undefined;
}
