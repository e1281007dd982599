import type { Config } from '../agent/config.ts';
import type { Host } from '../agent/host.ts';
import { describeError } from '../base/errors.ts';
import { type EtcdVersion, parseVersion } from '../etcd/known-versions.ts';
import { inspectBinary } from '../supervisor/binary.ts';
import { BinaryUnusableError } from '../supervisor/errors.ts';
import { runCommand } from '../supervisor/run.ts';

/** The version that the configured binary says it is. It is asked anew when the file changes. */
export class BinaryVersion {
  readonly #config: () => Config;
  readonly #host: Host;
  readonly #onKnown: () => void;
  #known: { readonly stamp: string; readonly version: EtcdVersion | undefined; readonly problem: string } | undefined;
  #asking = '';

  constructor(options: { readonly config: () => Config; readonly host: Host; readonly onKnown: () => void }) {
    this.#config = options.config;
    this.#host = options.host;
    this.#onKnown = options.onKnown;
  }

  /** Undefined while it is not known, or if the binary does not run. */
  get(): EtcdVersion | undefined {
    const stamp = this.#stamp();
    if (this.#known?.stamp === stamp) return this.#known.version;
    if (this.#asking !== stamp) {
      // What it throws is a bug of ours; a binary that does not run is an answer.
      this.ask().then(this.#onKnown, (error: unknown) =>
        queueMicrotask(() => {
          throw error;
        }),
      );
    }
    return undefined;
  }

  /** Why the version is not known, in words; empty if it is, or while it is being asked. */
  problem(): string {
    return this.#known?.stamp === this.#stamp() ? this.#known.problem : '';
  }

  /** Asks the binary now. */
  async ask(): Promise<void> {
    const stamp = this.#stamp();
    this.#asking = stamp;
    this.#known = { stamp, ...(await versionOf(this.#config().etcd.binary)) };
    this.#asking = '';
  }

  #stamp(): string {
    const { binary } = this.#config().etcd;
    return `${binary} ${this.#host.fingerprint(binary)}`;
  }
}

async function versionOf(
  binary: string,
): Promise<{ readonly version: EtcdVersion | undefined; readonly problem: string }> {
  try {
    // Looked at before it is run: what the kernel does not know as a program would be run as a shell script.
    inspectBinary(binary);
  } catch (error) {
    if (!(error instanceof BinaryUnusableError)) throw error;
    return { version: undefined, problem: describeError(error) };
  }
  const { code, stdout, stderr, problem } = await runCommand(binary, ['--version'], { timeoutMs: 10_000 });
  const version = code === 0 ? parseVersion(stdout) : undefined;
  if (version !== undefined) return { version, problem: '' };
  const said = (stderr || stdout).trim().split('\n')[0]?.slice(0, 200) ?? '';
  return { version, problem: `${binary} --version ended with ${problem ?? `code ${code}`}${said && `: ${said}`}` };
}
