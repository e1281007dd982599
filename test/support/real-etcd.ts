import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test as base } from 'vitest';
import { type EtcdBinary, newestBinary } from './etcd-binaries.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './ports.ts';
import { TestCa, type TestTlsFiles, writeTlsFiles } from './test-ca.ts';

/** What a test wants to run on. */
export interface RealEtcdOptions {
  /** How many members found the cluster together. Default 1; n1, n2, n3. */
  readonly size?: 1 | 3;
  /** Default: the newest here. */
  readonly binary?: EtcdBinary;
  /** Client, peer and metrics side with TLS and client certificates. Default false. */
  readonly tls?: boolean;
  /** Flags besides those that the fixture sets, for each member (`--strict-reconfig-check=false`, …). */
  readonly flags?: readonly string[];
  /** Start the members and wait until all answer a linearizable read. Default true. */
  readonly start?: boolean;
}

/** How an etcd process ended. */
export interface EtcdExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The certificates of a cluster with TLS: one CA, one leaf for each member, one for clients. */
export interface ClusterTls {
  readonly ca: TestCa;
  /** What a client presents and trusts. */
  readonly client: TestTlsFiles;
}

/** Starts a cluster of real etcd processes. Whoever calls it also calls `close()`; the fixture {@link test} does. */
export async function startEtcd(options: RealEtcdOptions = {}): Promise<RealCluster> {
  const directory = mkdtempSync(join(tmpdir(), 'etcd-test-'));
  const cluster = new RealCluster(directory, options);
  try {
    for (let number = 1; number <= (options.size ?? 1); number++) await cluster.prepare(`n${number}`);
    if (options.start ?? true) {
      const initialCluster = cluster.initialCluster();
      for (const member of cluster.members) member.start({ initialCluster, state: 'new' });
      for (const member of cluster.members) await member.ready();
    }
    return cluster;
  } catch (error) {
    const tail = cluster.lastLines();
    await cluster.close();
    throw new Error(`etcd ${cluster.binary.version} did not start\n${tail}`, { cause: error });
  }
}

/** Real etcd processes on loopback that belong to one test. */
export class RealCluster {
  readonly directory: string;
  readonly binary: EtcdBinary;
  readonly tls: ClusterTls | undefined;
  /** In the order of their preparation; those that were prepared and never started too. */
  readonly members: RealEtcd[] = [];
  readonly #flags: readonly string[];

  constructor(directory: string, options: RealEtcdOptions) {
    this.directory = directory;
    this.binary = options.binary ?? newestBinary();
    this.#flags = options.flags ?? [];
    if (options.tls ?? false) {
      const ca = new TestCa();
      const client = writeTlsFiles(join(directory, 'tls'), 'client', ca.issue({ commonName: 'client' }), ca.cert);
      this.tls = { ca, client };
    }
  }

  /** A member with ports and a directory of its own, not started. `binary` differs from the cluster's in mixed clusters. */
  async prepare(name: string, binary: EtcdBinary = this.binary): Promise<RealEtcd> {
    const [client = 0, peer = 0, metrics = 0] = await freePorts(3);
    const scheme = this.tls === undefined ? 'http' : 'https';
    const member = new RealEtcd({
      name,
      binary,
      directory: join(this.directory, name),
      clientUrl: `${scheme}://127.0.0.1:${client}`,
      peerUrl: `${scheme}://127.0.0.1:${peer}`,
      metricsUrl: `${scheme}://127.0.0.1:${metrics}`,
      flags: this.#flags,
      tls: this.tls,
    });
    this.members.push(member);
    return member;
  }

  /** The member of this name. Throws if there is none. */
  member(name: string): RealEtcd {
    const found = this.members.find((member) => member.name === name);
    if (found === undefined) throw new Error(`no member ${name} was prepared`);
    return found;
  }

  /** `n1=http://127.0.0.1:11380,n2=…`, of the given members or of all. */
  initialCluster(members: readonly RealEtcd[] = this.members): string {
    return members.map((member) => `${member.name}=${member.peerUrl}`).join(',');
  }

  /** The last lines of each member's log, with the member's name and how it ended. */
  lastLines(count = 30): string {
    return this.members.map((member) => member.lastLines(count)).join('\n');
  }

  /** Kills what still runs, by pid, and removes everything. */
  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** What one member is made of. */
interface RealEtcdParts {
  readonly name: string;
  readonly binary: EtcdBinary;
  readonly directory: string;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly metricsUrl: string;
  readonly flags: readonly string[];
  readonly tls: ClusterTls | undefined;
}

/** One etcd process, without an agent. It may be started, stopped and started again on its data. */
export class RealEtcd {
  readonly name: string;
  readonly binary: EtcdBinary;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly metricsUrl: string;
  readonly dataDir: string;
  readonly logFile: string;
  /** The files of this member: its certificate serves client, peer and metrics side. */
  readonly tlsFiles: TestTlsFiles | undefined;
  readonly #clientTls: TestTlsFiles | undefined;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #exit: Promise<EtcdExit> | undefined;

  constructor(parts: RealEtcdParts) {
    this.name = parts.name;
    this.binary = parts.binary;
    this.clientUrl = parts.clientUrl;
    this.peerUrl = parts.peerUrl;
    this.metricsUrl = parts.metricsUrl;
    this.dataDir = join(parts.directory, 'data');
    this.logFile = join(parts.directory, 'log');
    this.#flags = parts.flags;
    mkdirSync(parts.directory, { recursive: true, mode: 0o700 });
    if (parts.tls !== undefined) {
      const leaf = parts.tls.ca.issue({ commonName: parts.name, ips: ['127.0.0.1'], dns: ['localhost'] });
      this.tlsFiles = writeTlsFiles(parts.directory, 'member', leaf, parts.tls.ca.cert);
      this.#clientTls = parts.tls.client;
    }
  }

  /** Throws while it does not run. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined || !this.isRunning()) throw new Error(`${this.name} does not run`);
    return pid;
  }

  isRunning(): boolean {
    const child = this.#child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Spawns etcd and returns at once. `initialCluster` and `state` count only for an empty data directory. */
  start(how: { initialCluster: string; state: 'new' | 'existing'; flags?: readonly string[] }): void {
    if (this.isRunning()) throw new Error(`${this.name} runs already`);
    const log = openSync(this.logFile, 'a', 0o600);
    // The kernel kills etcd when this process ends, however it ends: nothing outlives the test runner.
    const args = ['--pdeathsig', 'KILL', this.binary.etcd, ...this.#arguments(how), ...(how.flags ?? [])];
    const child = spawn('setpriv', args, { stdio: ['ignore', log, log], env: { PATH: process.env['PATH'] ?? '' } });
    closeSync(log);
    this.#child = child;
    this.#exit = once(child, 'exit').then(([code, signal]) => ({ code, signal }));
  }

  /** Starts it again on its data. */
  restart(flags: readonly string[] = []): void {
    this.start({ initialCluster: `${this.name}=${this.peerUrl}`, state: 'existing', flags });
  }

  /** Waits until it answers a linearizable read of its own (`/health` on the metrics port) or, for a learner, knows a leader. */
  async ready(withinMs = 30_000): Promise<void> {
    await eventually(
      async () => {
        if (!this.isRunning()) return true; // stops the waiting; told apart below
        return (await this.get(`${this.metricsUrl}/health`)).status === 200;
      },
      { withinMs, what: `readiness of ${this.name} (etcd ${this.binary.version})` },
    );
    if (!this.isRunning()) throw new Error(`${this.name} ended before it was ready\n${this.lastLines()}`);
  }

  /** How the current life ends; rejects after `withinMs`. */
  async exited(withinMs = 20_000): Promise<EtcdExit> {
    const exit = this.#exit;
    if (exit === undefined) throw new Error(`${this.name} was never started`);
    return eventually(() => exit, { withinMs, what: `the end of ${this.name}` });
  }

  /** Sends a signal to this one process. */
  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** TERM, and the end of it. */
  async stop(): Promise<EtcdExit> {
    this.signal('SIGTERM');
    return this.exited(25_000);
  }

  /** KILL, and the end of it; nothing if it does not run. A frozen one dies too. */
  async kill(): Promise<void> {
    if (!this.isRunning()) return;
    this.signal('SIGKILL');
    await this.exited();
  }

  /** Everything it has written so far, in all its lives. */
  log(): string {
    try {
      return readFileSync(this.logFile, 'utf8');
    } catch {
      return '';
    }
  }

  lastLines(count = 30): string {
    const state = this.isRunning() ? 'running' : `ended ${this.#child?.exitCode ?? this.#child?.signalCode ?? '-'}`;
    const lines = this.log().trimEnd().split('\n').slice(-count);
    return `--- ${this.name}, etcd ${this.binary.version}, ${state}\n${lines.join('\n')}`;
  }

  /** Runs etcdctl (API 3) against this member and gives its output back. Throws with its stderr if it fails. */
  async etcdctl(...args: readonly string[]): Promise<string> {
    const tls = this.#clientTls;
    const files = tls === undefined ? [] : ['--cert', tls.certFile, '--key', tls.keyFile, '--cacert', tls.caFile];
    const run = promisify(execFile)(
      join(this.binary.directory, 'etcdctl'),
      ['--endpoints', this.clientUrl, '--command-timeout', '10s', ...files, ...args],
      { env: { PATH: process.env['PATH'] ?? '', ETCDCTL_API: '3' }, encoding: 'utf8' },
    );
    return (await run).stdout;
  }

  /** A GET with the cluster's client certificate. No answer within `timeoutMs` is an error. */
  get(url: string, timeoutMs = 8_000): Promise<{ status: number; body: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
    const tls = this.#clientTls;
    const request = tls === undefined ? httpRequest(url) : httpsRequest(url, clientTlsOptions(tls));
    request.setTimeout(timeoutMs, () => request.destroy(new Error(`no answer from ${url} in ${timeoutMs} ms`)));
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.end();
    return promise;
  }

  #arguments(how: { initialCluster: string; state: string }): string[] {
    const tls = this.tlsFiles;
    return [
      ...['--name', this.name, '--data-dir', this.dataDir],
      ...['--listen-client-urls', this.clientUrl, '--advertise-client-urls', this.clientUrl],
      ...['--listen-peer-urls', this.peerUrl, '--initial-advertise-peer-urls', this.peerUrl],
      ...['--listen-metrics-urls', this.metricsUrl],
      ...['--initial-cluster', how.initialCluster, '--initial-cluster-state', how.state],
      ...['--initial-cluster-token', 'test', '--logger=zap', '--log-outputs=stderr', '--pre-vote'],
      ...(tls === undefined
        ? []
        : [
            ...['--cert-file', tls.certFile, '--key-file', tls.keyFile],
            ...['--trusted-ca-file', tls.caFile, '--client-cert-auth'],
            ...['--peer-cert-file', tls.certFile, '--peer-key-file', tls.keyFile],
            ...['--peer-trusted-ca-file', tls.caFile, '--peer-client-cert-auth'],
          ]),
      ...this.#flags,
    ];
  }
}

function clientTlsOptions(files: TestTlsFiles) {
  return { cert: readFileSync(files.certFile), key: readFileSync(files.keyFile), ca: readFileSync(files.caFile) };
}

/** Starts clusters that end with the test. Several may be started; the rule of at most three etcd at once is the test's. */
export type StartEtcd = (options?: RealEtcdOptions) => Promise<RealCluster>;

/**
 * vitest's `test` with `etcd`: `test('…', async ({ etcd }) => { const cluster = await etcd({ size: 3 }); … })`.
 * When the test ends, everything is killed and removed; when it failed, each member's last lines are printed before.
 */
export const test = base.extend('etcd', async ({ task }, { onCleanup }): Promise<StartEtcd> => {
  const clusters: RealCluster[] = [];
  onCleanup(async () => {
    for (const cluster of clusters) {
      if (task.result?.state === 'fail') process.stderr.write(`${cluster.lastLines()}\n`);
      await cluster.close();
    }
  });
  return async (options) => {
    const cluster = await startEtcd(options);
    clusters.push(cluster);
    return cluster;
  };
});
