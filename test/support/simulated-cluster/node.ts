import type { MemberId } from '../../../src/etcd/member.ts';
import { parseArguments } from './arguments.ts';
import { type ProcessExit, SimulatedEtcd } from './etcd.ts';
import type { MemberData } from './raft.ts';
import { type Version, versionOf } from './refusals.ts';
import type { World } from './world.ts';

/** How one life of etcd on a node went. */
export interface SimulatedLife {
  readonly number: number;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly lines: readonly string[];
  readonly servingAtMs: number | undefined;
  readonly exit: ProcessExit | undefined;
  readonly endedAtMs: number | undefined;
}

/** Who follows what happens on a node: an agent, through its port. */
export interface NodeListener {
  onLine(life: number, line: string): void;
  onChange(): void;
}

/** A machine with a disk, on which etcd runs or does not. It outlives every agent. */
export class SimulatedNode {
  readonly name: string;
  readonly peerUrl: string;
  readonly clientUrl: string;
  readonly dataDir: string;
  /** The version of the installed etcd; a running one keeps its own. */
  version: Version;
  /** What lies in the data directory. */
  disk: MemberData | undefined;
  etcd: SimulatedEtcd | undefined;
  frozen = false;
  readonly #world: World;
  readonly #listeners = new Set<NodeListener>();
  readonly #lives: Life[] = [];
  #thaw: (() => void)[] = [];

  constructor(name: string, number: number, version: string, world: World) {
    this.name = name;
    this.peerUrl = `http://10.0.0.${number}:2380`;
    this.clientUrl = `http://10.0.0.${number}:2379`;
    this.dataDir = `/var/lib/etcd/${name}`;
    this.version = versionOf(version);
    this.#world = world;
  }

  get isRunning(): boolean {
    return this.etcd?.running === true;
  }

  /** It answers its clients. */
  get isServing(): boolean {
    return this.isRunning && this.etcd?.serving === true;
  }

  get memberId(): MemberId | undefined {
    return this.disk?.memberId;
  }

  /** The newest first is last. */
  get lives(): readonly SimulatedLife[] {
    return this.#lives;
  }

  get life(): SimulatedLife | undefined {
    return this.#lives.at(-1);
  }

  /** What it wrote to its log, in all its lives. */
  get log(): string {
    return this.#lives.flatMap((life) => life.lines).join('\n');
  }

  /** Starts etcd with its command line. Throws if it runs. */
  start(args: readonly string[]): void {
    if (this.isRunning) throw new Error(`etcd runs on ${this.name} already`);
    const number = this.#lives.length + 1;
    this.#lives.push({
      number,
      pid: 1_000 * number + this.#world.random.below(1_000),
      startedAtMs: this.#world.wallMs(),
      lines: [],
      servingAtMs: undefined,
      exit: undefined,
      endedAtMs: undefined,
    });
    this.#world.note(this.name, 'starts');
    this.etcd = new SimulatedEtcd(this, parseArguments(args), this.#world);
    this.changed();
  }

  signal(name: 'SIGTERM' | 'SIGINT' | 'SIGKILL' | 'SIGQUIT'): void {
    const { etcd } = this;
    if (etcd === undefined || !etcd.running) return;
    this.#world.note(this.name, name);
    if (name === 'SIGKILL') etcd.end({ kind: 'signal', name });
    else if (name === 'SIGQUIT') etcd.dump();
    else etcd.terminate(name);
  }

  /** SIGSTOP: connections stay open, nothing is answered. */
  freeze(): void {
    this.frozen = true;
    this.#world.note(this.name, 'frozen');
    this.#world.changed();
  }

  thaw(): void {
    this.frozen = false;
    this.#world.note(this.name, 'thawed');
    const due = this.#thaw;
    this.#thaw = [];
    for (const act of due) act();
    this.etcd?.thawed();
    this.#world.changed();
  }

  onThaw(act: () => void): void {
    this.#thaw.push(act);
  }

  /** The disk is gone. Throws while etcd runs: its files stay open. */
  wipe(): void {
    this.restore(undefined);
  }

  /** The disk as it is now, to be put back later. */
  copyDisk(): MemberData | undefined {
    const { disk } = this;
    return disk === undefined ? undefined : { ...disk, log: [...disk.log] };
  }

  restore(disk: MemberData | undefined): void {
    if (this.isRunning) throw new Error(`etcd runs on the disk of ${this.name}`);
    this.#world.note(this.name, disk === undefined ? 'disk lost' : `disk of ${disk.log.length} entries`);
    this.disk = disk === undefined ? undefined : { ...disk, log: [...disk.log] };
  }

  listen(listener: NodeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wrote(line: string): void {
    const life = this.#lives.at(-1);
    if (life === undefined) return;
    life.lines.push(line);
    for (const listener of this.#listeners) listener.onLine(life.number, line);
  }

  changed(): void {
    const life = this.#lives.at(-1);
    if (life !== undefined && this.isServing) life.servingAtMs ??= this.#world.wallMs();
    for (const listener of this.#listeners) listener.onChange();
  }

  ended(exit: ProcessExit): void {
    const life = this.#lives.at(-1);
    if (life !== undefined) {
      life.exit = exit;
      life.endedAtMs = this.#world.wallMs();
    }
    this.frozen = false;
    this.#thaw = [];
    this.changed();
  }
}

/** The same, as the node writes it. */
interface Life {
  readonly number: number;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly lines: string[];
  servingAtMs: number | undefined;
  exit: ProcessExit | undefined;
  endedAtMs: number | undefined;
}
