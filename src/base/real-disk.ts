import {
  appendFileSync,
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { AppendFile, Disk } from './disk.ts';
import { errnoOf } from './errors.ts';

/** The machine's file systems. */
export const realDisk: Disk = {
  read: (path) => unlessAbsent(() => readFileSync(path)),

  replace(path, content, mode = 0o600) {
    const temporary = `${path}.tmp`;
    try {
      // `w` and not `wx`: a temporary file that a crash left behind is worthless and is overwritten.
      const fd = openSync(temporary, 'w', mode);
      try {
        // writeFileSync loops until all is written; writeSync may write short on a full disk without throwing.
        writeFileSync(fd, content);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      renameSync(temporary, path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
    syncPath(dirname(path));
  },

  openAppend(path) {
    const fd = openSync(path, 'a', 0o600);
    try {
      fsyncSync(fd);
      syncPath(dirname(path));
      return new RealAppendFile(fd, fstatSync(fd).size);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  },

  sync: syncPath,

  ensureDirectory(path, mode = 0o700) {
    const firstMade = mkdirSync(path, { recursive: true, mode });
    if (firstMade === undefined) return;
    // Each directory that was made, and the parent that now names the first of them, must survive a power cut.
    for (let made = path; made.length >= firstMade.length; made = dirname(made)) syncPath(made);
    syncPath(dirname(firstMade));
  },

  rename(from, to) {
    renameSync(from, to);
    syncPath(dirname(to));
    if (dirname(from) !== dirname(to)) syncPath(dirname(from));
  },

  remove(path) {
    rmSync(path, { force: true });
    unlessAbsent(() => syncPath(dirname(path)));
  },

  list: (path) => unlessAbsent(() => readdirSync(path).sort()),
};

class RealAppendFile implements AppendFile {
  readonly #fd: number;
  #size: number;

  constructor(fd: number, size: number) {
    this.#fd = fd;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  append(content: Uint8Array | string): void {
    // appendFileSync loops until all is written or throws; a short write is never taken for a whole one.
    appendFileSync(this.#fd, content);
    fdatasyncSync(this.#fd);
    this.#size += typeof content === 'string' ? Buffer.byteLength(content) : content.byteLength;
  }

  truncate(size: number): void {
    ftruncateSync(this.#fd, size);
    fdatasyncSync(this.#fd);
    this.#size = size;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Makes the content of a file, or the names in a directory, durable. */
function syncPath(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function unlessAbsent<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
