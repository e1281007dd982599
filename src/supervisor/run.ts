import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { LaunchFailedError } from './errors.ts';

/** What a launcher starts: the keeper with its arguments. */
export interface LaunchRequest {
  readonly lifeDir: string;
  readonly lockFile: string;
  /** The real program, for its device:inode. */
  readonly binary: string;
  /** Prefix, program, arguments. */
  readonly command: readonly string[];
  /** The whole environment of keeper and child. Nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A way to start keepers. One way is here; another starts an instance of a systemd template unit. */
export interface Launcher {
  /** Starts a keeper that outlives us. Resolves when it runs; throws {@link LaunchFailedError} if it cannot. */
  launch(request: LaunchRequest): Promise<LaunchedKeeper>;
}

/** A keeper that was started by this agent. */
export interface LaunchedKeeper {
  /** Its exit code (null if it was killed), once it ends. See keeper.sh. Never rejects. */
  readonly ended: Promise<number | null>;
}

/** Starts keepers as detached children in sessions of their own; `keeper` is the path of keeper.sh. */
export function directLauncher(keeper: string): Launcher {
  return {
    async launch({ lifeDir, lockFile, binary, command, environment }) {
      // spawn rather than execa: a daemon needs a bare descriptor for its stderr and none of execa's clean-up.
      const stderr = openSync(join(lifeDir, 'keeper.log'), 'a', 0o600);
      const child = spawn('/bin/sh', [keeper, lifeDir, lockFile, binary, ...command], {
        cwd: '/',
        env: { ...environment },
        detached: true, // a session of its own: no signal to our group reaches it
        stdio: ['ignore', 'ignore', stderr], // files, never pipes: a pipe would tie the child's life to ours
      });
      closeSync(stderr);
      const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve);
        child.once('error', (error) => reject(new LaunchFailedError('the keeper cannot be run', error)));
      });
      child.unref();
      return { ended };
    },
  };
}

/** A lock that is held until it is released, or this process is gone. */
export interface HeldLock {
  release(): void;
}

/**
 * Takes an exclusive lock on a directory for as long as this process lives; undefined if another holds it. Nothing has to be
 * written for it. A small process holds it, since Node has no lock of its own; it ends by itself when its input, which is
 * ours, ends. Throws {@link LaunchFailedError}.
 */
export async function holdLock(directory: string): Promise<HeldLock | undefined> {
  const script = 'exec 9<"$1" || exit 74; flock -n -E 75 9 || exit; echo held; exec cat >/dev/null';
  const holder = execa('/bin/sh', ['-c', script, 'lock', directory], {
    cwd: '/',
    env: plainEnvironment,
    extendEnv: false,
    detached: true, //  a signal to our group is not for it
    cleanup: false,
    reject: false,
    buffer: false,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const held = await Promise.race([
    holder.then((result) => result.exitCode ?? 1),
    new Promise<'held'>((resolve) => holder.stdout.once('data', () => resolve('held'))),
  ]);
  if (held === 75) return undefined;
  if (held !== 'held') throw new LaunchFailedError(`the lock of ${directory} could not be taken (code ${held})`);
  return { release: () => holder.stdin.end() };
}

/** How a short command may run. */
export interface CommandOptions {
  /** Killed with its process group after this. Unit: ms. */
  readonly timeoutMs: number;
  /** The whole environment; default: a plain PATH and LC_ALL=C. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly workingDirectory?: string;
  readonly stdin?: string;
}

/** How a short command ended. `code` is undefined if it did not start, was killed, or ran out of time. */
export interface CommandResult {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** In words, when it did not end with a code. */
  readonly problem: string | undefined;
}

/** Runs a short command to its end: no shell, at most 1 MiB of output. Never throws for what the command does. */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  const result = await execa(file, args, {
    cwd: options.workingDirectory ?? '/',
    env: { ...(options.environment ?? plainEnvironment) },
    extendEnv: false,
    reject: false,
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
    killDescendants: true,
    maxBuffer: 1024 * 1024,
    ...(options.stdin === undefined ? { stdin: 'ignore' as const } : { input: options.stdin }),
    ...(options.signal === undefined ? {} : { cancelSignal: options.signal }),
  });
  return {
    code: result.exitCode,
    stdout: result.stdout,
    stderr: result.stderr,
    problem: result.exitCode === undefined ? (result.shortMessage ?? 'it did not end by itself') : undefined,
  };
}

/** Whether a lock file is locked by anybody; unknown if it cannot be asked. */
export async function lockState(lockFile: string): Promise<'held' | 'free' | 'unknown'> {
  // Node has no flock, and /proc/locks hides locks whose taker has ended when seen from a container.
  if (!existsSync(lockFile)) return 'free';
  const { code } = await runCommand('flock', ['-n', '-E', '99', lockFile, 'true'], { timeoutMs: 10_000 });
  return code === 0 ? 'free' : code === 99 ? 'held' : 'unknown';
}

const plainEnvironment: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};
