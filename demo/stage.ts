import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EtcdBinary } from '../lab/etcd-binaries.ts';
import { type AgentProgram, LabNode } from '../lab/node.ts';
import { freePorts } from '../lab/ports.ts';
import { markDemo, sweep } from './sweep.ts';

/** How many nodes. */
const size = 3;
/** Eight callers on each of so many connections: measured, this makes most removals panic. */
const connections = 2;
const callers = 8;
/** The flags that the agent is meant to run with: they keep it small. */
const agentFlags = ['--max-semi-space-size=1', '--max-old-space-size=96', '--v8-pool-size=1'];
const root = join(import.meta.dirname, '..');

/** What a stage is made of. */
export interface StageOptions {
  readonly binary: EtcdBinary;
  /** Ends all waiting, and forbids every start from then on. */
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
}

/** Everything that runs for the demo, in one directory: agents, etcd, the receiver of reports. Whoever makes it closes it. */
export class Stage {
  readonly directory: string;
  readonly nodes: LabNode[] = [];
  readonly #options: StageOptions;
  #agent: AgentProgram;
  #hammer = join(import.meta.dirname, 'hammer.ts');
  #receiver: ChildProcess | undefined;
  #reportsUrl = '';

  /** Makes the directory; starts nothing. */
  constructor(options: StageOptions) {
    this.#options = options;
    this.directory = mkdtempSync(join(tmpdir(), 'etcd-node-agent-demo-'));
    const nodes = nodeNames.map((name) => join(this.directory, name));
    markDemo(this.directory, [
      ...nodes.map((node) => join(node, 'agent.yaml')),
      ...nodeNames.map((name, index) => join(nodes[index] ?? '', 'data', 'default', name, 'data')),
      this.#identity('receiver'),
      this.#identity('hammer'),
    ]);
    this.#agent = this.#program(join(root, 'src/cli/agent.ts'));
  }

  /** Where reports are posted, and where they can be read. */
  get reportsUrl(): string {
    return this.#reportsUrl;
  }

  /** Starts the receiver, and an agent on each node; etcd is not started by that. */
  async open(): Promise<void> {
    const { say, binary, signal } = this.#options;
    await this.#bundle();
    await this.#startReceiver();
    say(`the receiver of reports listens on ${this.#reportsUrl}`);
    for (const name of nodeNames) {
      const node = new LabNode({
        name,
        directory: join(this.directory, name),
        ports: await freePorts(size),
        binary,
        agent: () => this.#agent,
        webhookUrl: this.#reportsUrl,
        ownSession: true,
        signal,
      });
      this.nodes.push(node);
    }
    await Promise.all(this.nodes.map((node) => node.startAgent()));
    say(`${size} agents run: ${this.nodes.map((node) => `${node.name} is pid ${node.agentPid}`).join(', ')}`);
  }

  /** Lets many callers ask the member behind `endpoint` for its Status, from a process of their own. */
  hammer(endpoint: string): Hammer {
    this.#options.signal.throwIfAborted();
    const args = [this.#hammer, this.#identity('hammer'), endpoint, connections, callers].map(String);
    return new Hammer(spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true }));
  }

  /** Lets all of it live on when this process ends. */
  letGo(): void {
    for (const node of this.nodes) node.letGo();
    this.#receiver?.unref();
  }

  /** The last lines of all logs. */
  lastLines(): string {
    return this.nodes.map((node) => node.lastLines(15)).join('\n');
  }

  /** Ends every process and removes the directory. */
  async close(): Promise<void> {
    await sweep(this.directory);
  }

  /** One file each, so that three agents start quickly on a busy machine; from source if that cannot be done. */
  async #bundle(): Promise<void> {
    const { say, signal } = this.#options;
    try {
      const { bundle } = await import('../scripts/bundle.ts');
      const agent = join(this.directory, 'bundle', 'etcd-node-agent.mjs');
      const hammer = join(this.directory, 'bundle', 'hammer.mjs');
      mkdirSync(join(this.directory, 'bundle'));
      await Promise.all([bundle(join(root, 'src/cli/agent.ts'), agent), bundle(this.#hammer, hammer)]);
      this.#agent = this.#program(agent);
      this.#hammer = hammer;
    } catch (error) {
      signal.throwIfAborted();
      const [why = ''] = String(error).split('\n');
      say(`the agent cannot be bundled and runs from source, which takes longer (${why})`);
    }
  }

  async #startReceiver(): Promise<void> {
    this.#options.signal.throwIfAborted();
    const logFile = join(this.directory, 'receiver.log');
    const log = openSync(logFile, 'a');
    const args = [join(import.meta.dirname, 'receiver.ts'), this.#identity('receiver')];
    const receiver = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', log], detached: true });
    closeSync(log);
    this.#receiver = receiver;
    if (receiver.stdout === null) throw new Error('the receiver has no standard output');
    const died = once(receiver, 'exit', { signal: this.#options.signal }).then((): never => {
      throw new Error(`the receiver of reports does not start: ${readFileSync(logFile, 'utf8')}`);
    });
    const [port] = await Promise.race([once(receiver.stdout, 'data', { signal: this.#options.signal }), died]);
    died.catch(() => undefined);
    receiver.stdout.destroy();
    this.#reportsUrl = `http://127.0.0.1:${String(port).trim()}/reports`;
  }

  #program(entry: string): AgentProgram {
    const environment = {
      MALLOC_ARENA_MAX: '1', // one arena of free memory for all threads: 9 MiB less
      PATH: process.env['PATH'] ?? '',
      NODE_COMPILE_CACHE: join(this.directory, 'compile-cache'),
    };
    return { program: process.execPath, args: [...agentFlags, entry], environment };
  }

  #identity(helper: string): string {
    return join(this.directory, helper);
  }
}

const nodeNames = Array.from({ length: size }, (_none, index) => `n${index + 1}`);

/** A process that asks for Status without a rest. */
export class Hammer {
  readonly #process: ChildProcess;
  /** How many calls were answered. */
  answered = 0;
  readonly callers = connections * callers;
  readonly connections = connections;

  constructor(child: ChildProcess) {
    this.#process = child;
    child.stdout?.on('data', (chunk) => {
      this.answered = Number(String(chunk).trim().split('\n').at(-1));
    });
    child.stdin?.on('error', () => undefined);
  }

  isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async stop(): Promise<void> {
    if (!this.isRunning()) return;
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await ended;
  }
}
