import type { Disk } from '../base/disk.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { StateNotWrittenError } from './state/durable-value.ts';

export interface ShutdownMarkOptions {
  readonly disk: Disk;
  /** A directory that a reboot empties. */
  readonly runDir: string;
  /** Names this boot of the machine; undefined if it cannot be told. */
  readonly bootId: () => string | undefined;
  readonly log: Log;
}

/**
 * The machine goes down: until it has booted again no agent on it starts etcd. It stands in the run directory, with the boot it was
 * made in, so that it counts no more where that directory outlives a reboot.
 */
export class ShutdownMark {
  readonly #options: ShutdownMarkOptions;
  /** A disk that refuses must not keep a machine from going down. */
  #stands = false;

  constructor(options: ShutdownMarkOptions) {
    this.#options = options;
    this.#stands = this.#read();
  }

  get stands(): boolean {
    return this.#stands;
  }

  /** Never throws; tells why a next agent would not know of it, in words; empty if it will. */
  set(): string {
    const { disk, runDir, bootId, log } = this.#options;
    this.#stands = true;
    try {
      disk.ensureDirectory(runDir, 0o750);
      disk.replace(this.#path, `${bootId() ?? ''}\n`);
      return '';
    } catch (error) {
      const because = describeError(error);
      log.warn({ path: this.#path, because }, 'that the machine goes down could not be written down');
      return because;
    }
  }

  /** An operator's word: etcd may be started after all. Throws {@link StateNotWrittenError}. */
  clear(): void {
    try {
      this.#options.disk.remove(this.#path);
    } catch (error) {
      throw new StateNotWrittenError(this.#path, error);
    }
    this.#stands = false;
  }

  get #path(): string {
    return `${this.#options.runDir}/shutdown`;
  }

  #read(): boolean {
    const { disk, bootId } = this.#options;
    try {
      const content = disk.read(this.#path);
      const boot = bootId();
      return content !== undefined && boot !== undefined && new TextDecoder().decode(content).trim() === boot;
    } catch {
      return false;
    }
  }
}
