import type { AppendFile, Disk } from './disk.ts';
import { errnoOf } from './errors.ts';

/**
 * A disk with a reserve: a file of written blocks that is given up when the file system is full, so that the record of
 * what happened can still be written. It is written anew by {@link ReservingDisk.refill} once there is space again.
 */
export class ReservingDisk implements Disk {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #bytes: number;
  /** A part of it is there. */
  #held = false;
  #whole = false;

  constructor(options: {
    readonly disk: Disk;
    /** The reserve; it lies on the file system that it is for. */
    readonly path: string;
    /** Unit: bytes. */
    readonly bytes: number;
  }) {
    this.#disk = options.disk;
    this.#path = options.path;
    this.#bytes = options.bytes;
  }

  /** True while the reserve, or the part of it that was written, is there. */
  get held(): boolean {
    return this.#held;
  }

  /** Writes the reserve if it is not there. False if there is no space for it; nothing is lost then. */
  refill(): boolean {
    for (;;) {
      const state = this.refillSome();
      if (state !== 'more') return state === 'whole';
    }
  }

  /** One piece of {@link refill}, so that nobody waits for all of it: `more` until it is `whole`, or there is no space. */
  refillSome(): 'whole' | 'more' | 'noSpace' {
    if (this.#whole) return 'whole';
    let before = 0;
    try {
      const file = this.#disk.openAppend(this.#path);
      try {
        before = file.size;
        // In pieces, so that the reserve never stands in memory as a whole. Not zeros: a file system that compresses
        // would keep nothing for them.
        if (file.size < this.#bytes) file.append(incompressible(Math.min(pieceBytes, this.#bytes - file.size)));
        this.#whole = file.size >= this.#bytes;
      } finally {
        file.close();
      }
      this.#held = true;
      return this.#whole ? 'whole' : 'more';
    } catch {
      // What an earlier piece took is kept: it may be all there will be.
      if (before === 0) this.#give();
      else this.#held = true;
      return 'noSpace';
    }
  }

  read(path: string): Uint8Array | undefined {
    return this.#disk.read(path);
  }

  replace(path: string, content: Uint8Array | string, mode?: number): void {
    this.#orFromReserve(() => this.#disk.replace(path, content, mode));
  }

  openAppend(path: string): AppendFile {
    const file = this.#orFromReserve(() => this.#disk.openAppend(path));
    const retry = this.#orFromReserve.bind(this);
    return {
      get size() {
        return file.size;
      },
      append(content) {
        const before = file.size;
        retry(
          () => {
            // A failed append may have left a part of the record behind.
            if (file.size !== before) file.truncate(before);
            file.append(content);
          },
          () => file.truncate(before),
        );
      },
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    };
  }

  ensureDirectory(path: string, mode?: number): void {
    this.#orFromReserve(() => this.#disk.ensureDirectory(path, mode));
  }

  rename(from: string, to: string): void {
    this.#orFromReserve(() => this.#disk.rename(from, to));
  }

  sync(path: string): void {
    this.#disk.sync(path);
  }

  remove(path: string): void {
    this.#disk.remove(path);
  }

  list(path: string): readonly string[] | undefined {
    return this.#disk.list(path);
  }

  /** On a file system that is read-only even this fails, and then nothing depends on it. */
  #give(): void {
    this.#held = false;
    this.#whole = false;
    try {
      this.#disk.remove(this.#path);
    } catch {
      // Read-only, or failing: there was nothing to gain.
    }
  }

  #orFromReserve<T>(write: () => T, beforeRetry: () => void = () => {}): T {
    try {
      return write();
    } catch (error) {
      const full = errnoOf(error) === 'ENOSPC' || errnoOf(error) === 'EDQUOT';
      if (!full || !this.#held) throw error;
      this.#give();
      beforeRetry();
      return write();
    }
  }
}

/** Unit: bytes. */
const pieceBytes = 4 * 1024 * 1024;

/** Bytes that no file system can make smaller: a simple generator is random enough for that. */
function incompressible(bytes: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(bytes / 4));
  let state = 0x9e3779b9;
  for (let index = 0; index < words.length; index++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[index] = state;
  }
  return new Uint8Array(words.buffer, 0, bytes);
}
