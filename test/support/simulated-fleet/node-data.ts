import { basename } from 'node:path';
import type { Layout } from '../../../src/agent/layout.ts';
import type { DataDir } from '../../../src/etcd/data-dir.ts';
import type { MemoryDisk } from '../memory-disk.ts';
import type { SimulatedNode } from '../simulated-cluster/node.ts';
import { dataDirOf } from '../simulated-cluster/port.ts';

type Kept = NonNullable<SimulatedNode['disk']>;

/**
 * What etcd has written, and the directory of the memory disk in which it lies. One small file stands for all of it, so that it
 * goes wherever the agent moves its directory, and comes back when a power loss undoes that.
 */
export class NodeData {
  readonly #node: SimulatedNode;
  readonly #disk: MemoryDisk;
  readonly #layout: Layout;
  readonly #kept: Kept[] = [];

  constructor(node: SimulatedNode, disk: MemoryDisk, layout: Layout) {
    this.#node = node;
    this.#disk = disk;
    this.#layout = layout;
    const follow = () => this.#follow();
    node.listen({ onLine: follow, onChange: follow });
  }

  /** etcd is about to start: it finds what lies in its directory now. */
  mount(): void {
    this.#node.disk = this.#found();
  }

  inspect(): DataDir {
    const files = this.#disk.files().filter(({ path }) => path.startsWith(`${this.#layout.dataDir}/`));
    if (files.length === 0 && !this.#hasDirectory()) return { kind: 'absent' };
    const disk = this.#found();
    if (disk !== undefined) return dataDirOf({ disk } as SimulatedNode);
    return { kind: 'empty', others: files.map(({ path }) => basename(path)) };
  }

  /** What lies there now, to be put back later. */
  copy(): Kept {
    const copy = this.#node.copyDisk();
    if (copy === undefined) throw new Error(`nothing lies on ${this.#node.name}`);
    return copy;
  }

  /** A copy takes the place of what lies there. Throws while etcd runs. */
  putBack(copy: Kept): void {
    const found = this.#found();
    if (found === undefined) throw new Error(`nothing lies on ${this.#node.name}`);
    this.#node.restore(copy);
    this.#kept[this.#kept.indexOf(found)] = this.#node.disk ?? copy;
  }

  /** What was kept and lies nowhere on the disk any more, by member id in hex. */
  lost(): readonly string[] {
    const there = new Set(this.#disk.files().map(({ path }) => this.#serialOf(path)));
    return this.#kept.filter((_one, serial) => !there.has(serial)).map(({ memberId }) => memberId.toString(16));
  }

  /** The member whose data a start would find. */
  get memberId(): bigint | undefined {
    return this.#found()?.memberId;
  }

  #follow(): void {
    const { disk, isRunning } = this.#node;
    if (!isRunning || disk === undefined || this.#kept.includes(disk)) return;
    this.#kept.push(disk);
    this.#disk.put(`${this.#layout.dataDir}/member/wal/${this.#kept.length - 1}.wal`, 'the log');
  }

  #found(): Kept | undefined {
    const prefix = `${this.#layout.dataDir}/member/`;
    const file = this.#disk.files().find(({ path }) => path.startsWith(prefix) && path.endsWith('.wal'));
    return file === undefined ? undefined : this.#kept[this.#serialOf(file.path) ?? -1];
  }

  #serialOf(path: string): number | undefined {
    const match = /\/member\/wal\/(\d+)\.wal$/.exec(path);
    return match === null ? undefined : Number(match[1]);
  }

  #hasDirectory(): boolean {
    const { dataDir } = this.#layout;
    return this.#disk.down ? false : this.#disk.list(dataDir) !== undefined;
  }
}
