import type { Disk } from '../base/disk.ts';
import { AgentError } from '../base/errors.ts';
import type { Host } from './host.ts';
import type { Layout } from './layout.ts';

/** Why a data directory was moved aside; it lies beside the data as `reason.json`. */
export interface ArchiveReason {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly memberId: string;
  /** When the removal was recorded (ISO 8601). Names the archive, so that a repeated move finds its first try. */
  readonly at: string;
  readonly reason: string;
  readonly evidence: readonly string[];
}

/** The data directory could not be moved aside; it stays where it is, and the next turn tries again. */
export class ArchiveFailedError extends AgentError {
  readonly code = 'ARCHIVE_FAILED';
}

/** One complete archive. */
export interface Archive {
  readonly path: string;
  readonly name: string;
}

/** What a log without any record is called where it was set aside. */
const emptyLog = 'empty-log';

/** Data directories that were moved aside, whole. Data is never deleted here, only archives beyond their bound. */
export class Archives {
  readonly #disk: Disk;
  readonly #host: Pick<Host, 'exists' | 'removeTree'>;
  readonly #layout: Layout;

  constructor(options: {
    readonly disk: Disk;
    readonly host: Pick<Host, 'exists' | 'removeTree'>;
    readonly layout: Layout;
  }) {
    this.#disk = options.disk;
    this.#host = options.host;
    this.#layout = options.layout;
  }

  /**
   * Moves the data directory into the archive by one rename and returns where it went. Safe to repeat: killed at any
   * point, the next call goes on. Throws {@link ArchiveFailedError} if the file system refuses.
   */
  moveData(reason: ArchiveReason): string {
    const path = this.pathFor(reason);
    try {
      this.#disk.ensureDirectory(path);
      this.#disk.replace(`${path}/reason.json`, `${JSON.stringify(reason, undefined, 2)}\n`);
      if (this.#host.exists(this.#layout.dataDir)) this.#disk.rename(this.#layout.dataDir, `${path}/data`);
    } catch (cause) {
      throw new ArchiveFailedError(`${this.#layout.dataDir} could not be moved to ${path}`, {
        cause,
        hint: 'Free space, or repair the file system of the data root; the agent tries again. Nothing is started meanwhile.',
      });
    }
    return path;
  }

  /**
   * Moves etcd's own files out of the data directory and leaves what the founding put there. Returns where they went, which
   * is no archive of data. Safe to repeat. Throws the disk's error if the file system refuses.
   */
  moveEmptyLog(reason: ArchiveReason): string {
    const path = this.pathFor(reason);
    this.#disk.ensureDirectory(path);
    this.#disk.replace(`${path}/reason.json`, `${JSON.stringify(reason, undefined, 2)}\n`);
    this.#disk.rename(`${this.#layout.dataDir}/member`, `${path}/${emptyLog}`);
    return path;
  }

  /** Where the data of this removal goes. */
  pathFor(reason: { readonly at: string; readonly memberId: string }): string {
    return `${this.#layout.archiveDir}/${reason.at.replace(/[-:]/g, '').replace(/\.\d+Z$/, 'Z')}-${reason.memberId}`;
  }

  /** Complete archives of data, oldest first. */
  list(): readonly Archive[] {
    return this.#that('data');
  }

  /** Those that have an entry of this name, oldest first. */
  #that(has: 'data' | typeof emptyLog): readonly Archive[] {
    const names = this.#disk.list(this.#layout.archiveDir) ?? [];
    return names
      .map((name) => ({ name, path: `${this.#layout.archiveDir}/${name}` }))
      .filter((archive) => this.#host.exists(`${archive.path}/${has}`));
  }

  /**
   * The archives that may go, oldest first: at least `minDays` old, and either older than `keep` newer complete ones or a log
   * without any record. The caller reports each before it calls {@link Archives.remove}.
   */
  expired(bound: { readonly keep: number; readonly minDays: number }, nowMs: number): readonly Archive[] {
    const beyond = [...this.list().slice(0, -bound.keep), ...this.#that(emptyLog)];
    beyond.sort((one, other) => (one.name < other.name ? -1 : 1));
    return beyond.filter((archive) => {
      const at = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-/.exec(archive.name);
      if (at === null) return false;
      const [, year, month, day, hour, minute, second] = at.map(Number);
      const madeMs = Date.UTC(year ?? 0, (month ?? 1) - 1, day ?? 1, hour ?? 0, minute ?? 0, second ?? 0);
      return nowMs - madeMs >= bound.minDays * 86_400_000;
    });
  }

  remove(archive: Archive): void {
    this.#host.removeTree(archive.path);
  }
}
