import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventView, StatusView } from '../src/agent/control.ts';
import { ApiClient } from '../src/cli/client.ts';
import type { EtcdBinary } from './etcd-binaries.ts';
import { eventually } from './eventually.ts';
import { killQuietly, processesNaming } from './processes.ts';

/** How an agent is started: its command and what comes before `run`. */
export interface AgentProgram {
  readonly program: string;
  readonly args: readonly string[];
  /** The whole environment of the agent. */
  readonly environment: Readonly<Record<string, string>>;
}

/** What a node is made of. */
export interface LabNodeOptions {
  readonly name: string;
  /** Everything of this node lies here. Absolute; made if it is not there. */
  readonly directory: string;
  /** Peer, client and metrics port, on loopback. */
  readonly ports: readonly number[];
  /** Default `http`. With `https` the configuration must name the TLS files, see {@link LabNodeOptions.yaml}. */
  readonly scheme?: 'http' | 'https' | undefined;
  /** Where etcd itself listens for clients, if something stands before it. Default: the client port. */
  readonly directPort?: number | undefined;
  readonly binary: EtcdBinary;
  readonly agent: () => AgentProgram;
  /** Where reports go. Default: nowhere. */
  readonly webhookUrl?: string | undefined;
  /** TLS files for an https webhook. */
  readonly webhookTls?: Readonly<Record<string, string>> | undefined;
  /** More of the configuration, as YAML at the top level. */
  readonly yaml?: string | undefined;
  /** More of the `etcd:` section, as lines of YAML without indentation. */
  readonly etcdYaml?: readonly string[] | undefined;
  /** True: the agent gets a session of its own, so that a Ctrl-C in the terminal is not for it. Default false. */
  readonly ownSession?: boolean;
  /** Ends the waiting, and forbids every start from then on. */
  readonly signal?: AbortSignal | undefined;
}

/** How an agent is started. */
export interface StartAgent {
  /** Waits for its API. Default true. */
  readonly listening?: boolean;
  /** Added to the environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** One node on loopback, for tests and the demo: its configuration, its agent, its etcd. Whoever makes it closes it. */
export class LabNode {
  readonly name: string;
  readonly directory: string;
  readonly configFile: string;
  readonly roleFile: string;
  readonly peerUrl: string;
  readonly clientUrl: string;
  /** Where etcd itself listens for clients: the client URL, unless something stands there. */
  readonly directUrl: string;
  readonly metricsUrl: string;
  readonly api: ApiClient;
  readonly binary: EtcdBinary;
  readonly #options: LabNodeOptions;
  #agent: ChildProcess | undefined;

  constructor(options: LabNodeOptions) {
    const { name, directory, ports, scheme = 'http' } = options;
    const [peer, client, metrics] = ports;
    this.name = name;
    this.directory = directory;
    this.configFile = join(directory, 'agent.yaml');
    this.roleFile = join(directory, 'role.yaml');
    this.peerUrl = `${scheme}://127.0.0.1:${peer}`;
    this.clientUrl = `${scheme}://127.0.0.1:${client}`;
    this.directUrl = `${scheme}://127.0.0.1:${options.directPort ?? client}`;
    this.metricsUrl = `${scheme}://127.0.0.1:${metrics}`;
    this.binary = options.binary;
    this.#options = options;
    this.api = new ApiClient(this.socket);
    mkdirSync(directory, { recursive: true });
    writeFileSync(this.configFile, this.#yaml());
  }

  get socket(): string {
    return join(this.directory, 'run', 'agent.sock');
  }

  get stateDir(): string {
    return join(this.directory, 'state');
  }

  get memberDir(): string {
    return join(this.directory, 'data', 'default', this.name);
  }

  get dataDir(): string {
    return join(this.memberDir, 'data');
  }

  get agentLogFile(): string {
    return join(this.directory, 'agent.log');
  }

  /** One directory for each life of etcd. */
  get livesDir(): string {
    return join(this.memberDir, 'etcd', 'lives');
  }

  /** The agent's pid. Throws if it does not run. */
  get agentPid(): number {
    const pid = this.#agent?.pid;
    if (pid === undefined || !this.agentRuns()) throw new Error(`the agent of ${this.name} does not run`);
    return pid;
  }

  agentRuns(): boolean {
    return this.#agent !== undefined && this.#agent.exitCode === null && this.#agent.signalCode === null;
  }

  /** Starts the agent. */
  async startAgent(how: StartAgent = {}): Promise<void> {
    const { agent, ownSession = false, signal } = this.#options;
    signal?.throwIfAborted();
    const { program, args, environment } = agent();
    const log = openSync(this.agentLogFile, 'a');
    this.#agent = spawn(program, [...args, 'run', '--config', this.configFile], {
      stdio: ['ignore', log, log],
      env: { ...environment, ...how.environment },
      detached: ownSession,
    });
    closeSync(log);
    if (how.listening === false) return;
    await eventually(() => this.status(), { withinMs: 30_000, everyMs: 50, signal });
  }

  /** Ends the agent by a signal and waits for its end; etcd runs on. */
  async endAgent(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const agent = this.#agent;
    if (agent === undefined || !this.agentRuns()) return;
    const ended = once(agent, 'exit');
    agent.kill(signal);
    await ended;
  }

  /** Lets the agent live on when this process ends. */
  letGo(): void {
    this.#agent?.unref();
  }

  async status(): Promise<StatusView> {
    return await this.api.get<StatusView>('/v1/status');
  }

  async events(limit = 1000): Promise<readonly EventView[]> {
    return await this.api.get<readonly EventView[]>(`/v1/events?limit=${limit}`);
  }

  async post<T>(path: string, body: unknown = {}): Promise<T> {
    return await this.api.post<T>(path, body);
  }

  async foundPrepare(): Promise<string> {
    return (await this.post<{ line: string }>('/v1/found/prepare')).line;
  }

  /** Resolves with the status once `holds` is true of it. */
  async until(holds: (status: StatusView) => boolean, what: string, withinMs = 30_000): Promise<StatusView> {
    return await eventually(
      async () => {
        const status = await this.status();
        if (!holds(status)) throw new Error(`${this.name}: not yet: ${what}; it says: ${status.sentence}`);
        return status;
      },
      { withinMs, everyMs: 50, what: `${this.name}: ${what}`, signal: this.#options.signal },
    );
  }

  async ready(withinMs = 30_000): Promise<StatusView> {
    return await this.until(({ process: { phase } }) => phase === 'ready', 'etcd is ready', withinMs);
  }

  async knowsEverybody(size: number): Promise<void> {
    await this.until(
      ({ cluster }) =>
        cluster?.members.length === size && cluster.members.every((member) => member.clientUrls.length > 0),
      `it knows the addresses of all ${size} members`,
    );
  }

  /** etcd's pid now. Throws if it does not run. */
  async etcdPid(): Promise<number> {
    const { pid } = (await this.status()).process;
    if (pid === null) throw new Error(`etcd of ${this.name} does not run`);
    return pid;
  }

  /** Whether its member leads, by its metrics: Status is dangerous in a removal. False if it does not answer. */
  async leads(): Promise<boolean> {
    const text = await this.get(`${this.metricsUrl}/metrics`).catch(() => '');
    return /^etcd_server_is_leader 1$/m.test(text);
  }

  /** The body of an answer. No answer within a second is an error. */
  async get(url: string): Promise<string> {
    return await (await fetch(url, { signal: AbortSignal.timeout(1_000) })).text();
  }

  async memberId(): Promise<bigint> {
    const { member } = await this.status();
    if (member === null) throw new Error(`${this.name} is no member`);
    return BigInt(`0x${member.memberId}`);
  }

  agentLog(): string {
    return existsSync(this.agentLogFile) ? readFileSync(this.agentLogFile, 'utf8') : '';
  }

  lastLines(count = 25): string {
    const lines = this.agentLog().trimEnd().split('\n').slice(-count);
    return [
      `--- agent ${this.name}`,
      ...lines,
      `--- etcd ${this.name}`,
      ...this.etcdLog().trimEnd().split('\n').slice(-10),
    ].join('\n');
  }

  /** The log of one life of etcd (default: the newest), as it lies on disk. */
  etcdLog(life?: number): string {
    for (let number = life ?? 99; number > 0; number--) {
      const path = join(this.livesDir, String(number).padStart(8, '0'), 'log');
      if (existsSync(path)) return readFileSync(path, 'utf8');
    }
    return '';
  }

  /** Every process that has this node's data directory in its command line. */
  processes(): readonly number[] {
    return processesNaming(this.dataDir);
  }

  /** Ends agent and etcd. */
  async close(): Promise<void> {
    await this.endAgent('SIGKILL');
    for (const pid of this.processes()) killQuietly(pid);
    await eventually(
      async () => {
        if (this.processes().length > 0) throw new Error(`${this.processes().join()} still run`);
        return true;
      },
      { withinMs: 10_000 },
    );
  }

  #yaml(): string {
    const { binary, webhookUrl, webhookTls, etcdYaml, yaml } = this.#options;
    const etcd = [
      `binary: ${binary.etcd}`,
      `peerUrl: ${this.peerUrl}`,
      `clientUrl: ${this.clientUrl}`,
      `listenClientUrls: ['${this.directUrl}']`,
      `metricsUrl: ${this.metricsUrl}`,
      ...(etcdYaml ?? []),
    ];
    const identity = webhookTls === undefined ? '' : `, tls: ${JSON.stringify(webhookTls)}`;
    const upstream = webhookUrl === undefined ? '{kind: none}' : `{kind: webhook, url: '${webhookUrl}'${identity}}`;
    return [
      `node: {id: ${this.name}}`,
      `dataRoot: ${join(this.directory, 'data')}`,
      `stateDir: ${this.stateDir}`,
      `runDir: ${join(this.directory, 'run')}`,
      'etcd:',
      ...etcd.map((line) => `  ${line}`),
      `role: {file: ${this.roleFile}}`,
      `upstream: ${upstream}`,
      yaml ?? '',
    ].join('\n');
  }
}

/** All founders prepare, and each is given all lines. Resolves with the lines; etcd then starts on each. */
export async function foundTogether(nodes: readonly LabNode[]): Promise<readonly string[]> {
  const lines = await Promise.all(nodes.map((node) => node.foundPrepare()));
  await Promise.all(nodes.map((node) => node.post('/v1/found/list', { lines })));
  return lines;
}

/** The node whose member leads, as the members themselves say. */
export async function leaderOf<N extends LabNode>(nodes: readonly N[], signal?: AbortSignal): Promise<N> {
  return await eventually(
    async () => {
      for (const node of nodes) if (await node.leads()) return node;
      throw new Error('nobody leads');
    },
    { withinMs: 20_000, signal },
  );
}
