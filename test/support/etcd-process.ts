/** Runs real etcd binaries directly, for tests of what we know of etcd: stderr goes to a file, nothing is supervised. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EtcdExit } from '../../src/etcd/exit-reasons.ts';
import { type EtcdVersion, parseVersion } from '../../src/etcd/known-versions.ts';
import { testVersions } from './etcd-binaries.ts';

/** One installed etcd. */
export interface InstalledEtcd {
  readonly text: string;
  readonly version: EtcdVersion;
  readonly binary: string;
}

/** The etcd binaries that scripts/get-etcd lists, oldest first. Throws if there is none: such a test must not pass by doing nothing. */
export function installedEtcds(): readonly InstalledEtcd[] {
  const listing = execFileSync(resolve(import.meta.dirname, '../../scripts/get-etcd'), ['--list'], {
    encoding: 'utf8',
  });
  const found = listing.split('\n').flatMap((line) => {
    const [text = '', , binary = ''] = line.split('\t');
    const version = parseVersion(text);
    return version === undefined ? [] : [{ text, version, binary }];
  });
  if (found.length === 0) throw new Error('no etcd is installed: run scripts/get-etcd');
  return found;
}

/** The newest version, or all with ETCD_TEST_VERSIONS=all, or those listed in it (`3.4.23,3.5.30`). */
export function testedEtcds(): readonly InstalledEtcd[] {
  const wanted = new Set(testVersions().map(({ version }) => version));
  return installedEtcds().filter(({ text }) => wanted.has(text));
}

/** A temporary directory that is removed with the test. */
export function temporaryDirectory(): { readonly path: string; readonly [Symbol.dispose]: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'etcd-test-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A port on loopback that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('the listener has no port');
  return address.port;
}

/** One run of etcd. Disposing it kills it and waits for its end. */
export class EtcdProcess {
  readonly logPath: string;
  readonly #child: ChildProcess;
  #exit: EtcdExit | undefined;
  readonly ended: Promise<EtcdExit>;

  constructor(binary: string, args: readonly string[], logPath: string, wrapper: readonly string[] = []) {
    this.logPath = logPath;
    const stderr = openSync(logPath, 'a', 0o600);
    const [command = binary, ...rest] = [...wrapper, binary, ...args];
    this.#child = spawn(command, rest, { stdio: ['ignore', stderr, stderr], env: {} });
    closeSync(stderr);
    this.ended = new Promise((resolveEnd, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code, signal) => {
        this.#exit = signal !== null ? { kind: 'signal', signal } : { kind: 'code', code: code ?? -1 };
        resolveEnd(this.#exit);
      });
    });
  }

  get running(): boolean {
    return this.#exit === undefined;
  }

  log(): string {
    return readFileSync(this.logPath, 'utf8');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits until the log contains `text`. Throws with the last lines when etcd ends before, or after `limitMs`. */
  async logged(text: string | RegExp, limitMs = 20_000): Promise<void> {
    const has = () => (typeof text === 'string' ? this.log().includes(text) : text.test(this.log()));
    for (const until = Date.now() + limitMs; Date.now() < until && (this.running || has()); await sleep(20)) {
      if (has()) return;
    }
    throw new Error(`etcd did not log ${text}; its last lines:\n${this.lastLines()}`);
  }

  /** Its end, which must come by itself within `limitMs`. Throws with the last lines if it runs on. */
  async end(limitMs = 30_000): Promise<EtcdExit> {
    const exit = await Promise.race([this.ended, sleep(limitMs, undefined, { ref: false })]);
    if (exit === undefined) throw new Error(`etcd did not end; its last lines:\n${this.lastLines()}`);
    return exit;
  }

  lastLines(): string {
    return this.log().split('\n').slice(-15).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.running) this.#child.kill('SIGKILL');
    await this.ended;
  }
}
