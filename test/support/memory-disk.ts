import { dirname } from 'node:path';
import type { AppendFile, Disk } from '../../src/base/disk.ts';
import type { SeededRandom } from './seeded-random.ts';

/** The elementary steps that the calls of {@link Disk} are made of. Faults and crashes hit one step. */
export type DiskStep =
  | 'read'
  | 'write'
  | 'sync'
  | 'rename'
  | 'truncate'
  | 'remove'
  | 'create'
  | 'makeDirectory'
  | 'syncDirectory';

/** A fault to come. It hits the first matching step after `skip` others, `times` times. */
export interface DiskFault {
  readonly step: DiskStep;
  /** For example `ENOSPC`, `EIO`, `EROFS`, `EACCES`. */
  readonly errno: string;
  /** Only steps on a path that contains this. Default: all. */
  readonly path?: string;
  /** Default 0. */
  readonly skip?: number;
  /** Default 1. */
  readonly times?: number;
}

/** The simulated machine went down within a call. The test then throws the part away and calls {@link MemoryDisk.reboot}. */
export class DiskCrash extends Error {
  override readonly name = 'DiskCrash';
}

/**
 * A disk in memory that behaves as badly as real ones may. A write whose sync has returned stays. One whose sync has not
 * returned, or has failed, may be lost, kept or torn by a power loss (a failed sync is never made good by a later one, as
 * on Linux). A rename, creation or removal whose directory sync has not returned may be lost as well. When only the
 * process dies ("kill"), everything that was written stays.
 */
export class MemoryDisk implements Disk {
  /** All files together may not be larger. Unit: bytes; default no limit. A write beyond it is cut short and throws ENOSPC. */
  capacityBytes = Number.POSITIVE_INFINITY;
  /** How many steps were made so far; what {@link crashAtStep} counts. */
  steps = 0;

  readonly #random: SeededRandom;
  #names = new Map<string, Inode>();
  #directories = new Set<string>(['/']);
  #unsureNames: NameChange[] = [];
  #faults: { readonly fault: DiskFault; skip: number; times: number }[] = [];
  #crashAt = Number.POSITIVE_INFINITY;
  #down = false;
  #life = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  // --- what a test does to it

  /** Plans a fault; see {@link DiskFault}. */
  fail(fault: DiskFault): void {
    this.#faults.push({ fault, skip: fault.skip ?? 0, times: fault.times ?? 1 });
  }

  /** Takes back every planned fault. */
  heal(): void {
    this.#faults = [];
  }

  /** The machine goes down within the `count`th step from now (1 = the next): half done, then {@link DiskCrash} for ever. */
  crashAtStep(count: number): void {
    this.#crashAt = this.steps + count;
  }

  /** True between a crash and {@link reboot}. */
  get down(): boolean {
    return this.#down;
  }

  /** Comes up again after a crash (or crashes now): `powerLoss` decides the fate of all that was not synced. Open files are gone. */
  reboot(kind: 'kill' | 'powerLoss'): void {
    this.#down = false;
    this.#crashAt = Number.POSITIVE_INFINITY;
    this.#faults = [];
    this.#life++;
    if (kind === 'kill') return;
    for (const change of this.#unsureNames.toReversed()) if (this.#random.chance(0.5)) change.undo();
    this.#unsureNames = [];
    for (const inode of new Set(this.#names.values())) inode.losePower(this.#random);
  }

  /** Flips one bit of a file, durably. `bit` counts from the start of the file; taken modulo its size. */
  flipBit(path: string, bit: number): void {
    const inode = this.#inode(path);
    if (inode.size > 0) inode.flip(bit % (inode.size * 8));
  }

  /** Puts content in place, durably and without a step, as a restore from a backup does. Parents are made. */
  put(path: string, content: Uint8Array | string): void {
    for (let parent = dirname(path); !this.#directories.has(parent); parent = dirname(parent))
      this.#directories.add(parent);
    const inode = new Inode();
    inode.append(bytesOf(content));
    inode.synced();
    this.#names.set(path, inode);
    this.#unsureNames = this.#unsureNames.filter((change) => change.path !== path);
  }

  /** The content of every file below `directory`, for {@link restore}. */
  save(directory: string): ReadonlyMap<string, Uint8Array> {
    const below = [...this.#names].filter(([path]) => path.startsWith(`${directory}/`));
    return new Map(below.map(([path, inode]) => [path, inode.content()]));
  }

  /** Makes the files below `directory` what they were at {@link save}, as a copy put back does. */
  restore(directory: string, saved: ReadonlyMap<string, Uint8Array>): void {
    this.wipe(directory);
    for (const [path, content] of saved) this.put(path, content);
  }

  /** Removes everything below `directory`, durably, as an operator does. The directory stays. */
  wipe(directory: string): void {
    const inside = (path: string) => path.startsWith(`${directory}/`);
    for (const path of [...this.#names.keys()].filter(inside)) this.#names.delete(path);
    for (const path of [...this.#directories].filter(inside)) this.#directories.delete(path);
    this.#unsureNames = this.#unsureNames.filter((change) => !inside(change.path));
  }

  /** Removes a directory with everything below it, durably. */
  wipeTree(directory: string): void {
    this.#removeDirectory(directory);
  }

  /** Removes one file, durably and without a step, as an operator does. */
  vanish(path: string): void {
    this.#names.delete(path);
    this.#unsureNames = this.#unsureNames.filter((change) => change.path !== path);
  }

  /** All files with their sizes, sorted by path. */
  files(): readonly { readonly path: string; readonly size: number }[] {
    return [...this.#names]
      .map(([path, inode]) => ({ path, size: inode.size }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  // --- Disk

  read(path: string): Uint8Array | undefined {
    this.#step('read', path);
    return this.#names.get(path)?.content();
  }

  replace(path: string, content: Uint8Array | string): void {
    const temporary = `${path}.tmp`;
    try {
      const inode = new Inode();
      this.#link(temporary, inode);
      this.#write(temporary, inode, bytesOf(content));
      this.#sync(temporary, inode);
      this.#rename(temporary, path);
    } catch (error) {
      if (!this.#down) this.#unlink(temporary);
      throw error;
    }
    this.#syncDirectory(dirname(path));
  }

  openAppend(path: string): AppendFile {
    if (!this.#names.has(path)) this.#link(path, new Inode());
    const inode = this.#inode(path);
    this.#sync(path, inode);
    this.#syncDirectory(dirname(path));
    const life = this.#life;
    const checkLife = () => {
      if (life !== this.#life) throw new Error(`${path} was opened before a crash; a test uses a dead part`);
    };
    return {
      get size() {
        return inode.size;
      },
      append: (content) => {
        checkLife();
        this.#write(path, inode, bytesOf(content));
        this.#sync(path, inode);
      },
      truncate: (size) => {
        checkLife();
        this.#step('truncate', path);
        inode.truncate(size);
        this.#sync(path, inode);
      },
      close: () => {},
    };
  }

  sync(path: string): void {
    if (this.#directories.has(path)) this.#syncDirectory(path);
    else this.#sync(path, this.#inode(path));
  }

  ensureDirectory(path: string): void {
    if (this.#directories.has(path)) return;
    if (this.#names.has(path)) throw systemError('EEXIST', 'mkdir', path);
    this.ensureDirectory(dirname(path));
    this.#step('makeDirectory', path);
    this.#directories.add(path);
    // A directory whose entry was lost takes its files along; nothing is put into it before its sync has returned.
    this.#unsureNames.push({ path, undo: () => this.#removeDirectory(path) });
    this.#syncDirectory(dirname(path));
  }

  rename(from: string, to: string): void {
    if (this.#directories.has(from)) {
      this.#renameDirectory(from, to);
    } else {
      this.#rename(from, to);
    }
    this.#syncDirectory(dirname(to));
    if (dirname(from) !== dirname(to)) this.#syncDirectory(dirname(from));
  }

  remove(path: string): void {
    if (this.#directories.has(path)) throw systemError('ERR_FS_EISDIR', 'rm', path);
    this.#step('remove', path);
    this.#unlink(path);
    if (this.#directories.has(dirname(path))) this.#syncDirectory(dirname(path));
  }

  list(path: string): readonly string[] | undefined {
    this.#step('read', path);
    if (!this.#directories.has(path)) return undefined;
    const all = [...this.#names.keys(), ...this.#directories];
    return all
      .filter((other) => other !== '/' && dirname(other) === path)
      .map((other) => other.slice(path === '/' ? 1 : path.length + 1))
      .sort();
  }

  // --- steps

  #step(step: DiskStep, path: string): void {
    if (this.#down) throw new DiskCrash('the machine is down');
    this.steps++;
    if (this.steps >= this.#crashAt) {
      this.#down = true;
      throw new DiskCrash(`crash within ${step} of ${path}`);
    }
    for (const planned of this.#faults) {
      if (planned.fault.step !== step || !path.includes(planned.fault.path ?? '')) continue;
      if (planned.skip > 0) {
        planned.skip--;
      } else if (planned.times > 0) {
        planned.times--;
        throw systemError(planned.fault.errno, step, path);
      }
    }
  }

  #write(path: string, inode: Inode, content: Uint8Array): void {
    const room = this.#room();
    try {
      this.#step('write', path);
    } catch (error) {
      // A write that fails or is cut by a crash may have got some way.
      inode.append(content.subarray(0, Math.min(room, this.#random.below(content.byteLength + 1))));
      throw error;
    }
    if (content.byteLength > room) {
      inode.append(content.subarray(0, Math.max(0, room)));
      throw systemError('ENOSPC', 'write', path);
    }
    inode.append(content);
  }

  #room(): number {
    if (this.capacityBytes === Number.POSITIVE_INFINITY) return this.capacityBytes;
    return this.capacityBytes - this.files().reduce((sum, file) => sum + file.size, 0);
  }

  #sync(path: string, inode: Inode): void {
    try {
      this.#step('sync', path);
    } catch (error) {
      // A process that dies within a sync leaves the write to the kernel; only a sync that failed leaves it in doubt.
      if (!this.#down) inode.syncFailed();
      throw error;
    }
    inode.synced();
  }

  #link(path: string, inode: Inode): void {
    if (!this.#directories.has(dirname(path))) throw systemError('ENOENT', 'open', path);
    if (this.#directories.has(path)) throw systemError('EISDIR', 'open', path);
    this.#step('create', path);
    const before = this.#names.get(path);
    this.#names.set(path, inode);
    this.#unsureNames.push({ path, undo: () => this.#putBack(path, before) });
  }

  #unlink(path: string): void {
    const before = this.#names.get(path);
    if (before === undefined) return;
    this.#names.delete(path);
    this.#unsureNames.push({ path, undo: () => this.#putBack(path, before) });
  }

  #rename(from: string, to: string): void {
    const moved = this.#names.get(from);
    if (moved === undefined || !this.#directories.has(dirname(to))) throw systemError('ENOENT', 'rename', from);
    if (this.#directories.has(to)) throw systemError('EISDIR', 'rename', to);
    this.#step('rename', to);
    const before = this.#names.get(to);
    this.#names.delete(from);
    this.#names.set(to, moved);
    const undo = () => {
      this.#putBack(to, before);
      this.#names.set(from, moved);
    };
    this.#unsureNames.push({ path: to, undo });
  }

  #renameDirectory(from: string, to: string): void {
    if (!this.#directories.has(dirname(to))) throw systemError('ENOENT', 'rename', to);
    if (this.save(to).size > 0 || this.#names.has(to)) throw systemError('ENOTEMPTY', 'rename', to);
    this.#step('rename', to);
    const move = (one: string, other: string) => {
      const moved = (path: string) =>
        path === one || path.startsWith(`${one}/`) ? other + path.slice(one.length) : path;
      this.#names = new Map([...this.#names].map(([path, inode]) => [moved(path), inode]));
      this.#directories = new Set([...this.#directories].map(moved));
    };
    move(from, to);
    this.#unsureNames.push({ path: to, undo: () => move(to, from) });
  }

  #removeDirectory(path: string): void {
    this.wipe(path);
    this.#directories.delete(path);
  }

  #syncDirectory(path: string): void {
    this.#step('syncDirectory', path);
    this.#unsureNames = this.#unsureNames.filter((change) => dirname(change.path) !== path);
  }

  #putBack(path: string, inode: Inode | undefined): void {
    if (inode === undefined) this.#names.delete(path);
    else this.#names.set(path, inode);
  }

  #inode(path: string): Inode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw systemError('ENOENT', 'open', path);
    return inode;
  }
}

interface NameChange {
  readonly path: string;
  readonly undo: () => void;
}

/** The content of one file, with the changes that are not known to be durable. */
class Inode {
  #bytes = new Uint8Array(256);
  #size = 0;
  #unsure: Change[] = [];

  get size(): number {
    return this.#size;
  }

  content(): Uint8Array {
    return this.#bytes.slice(0, this.#size);
  }

  append(content: Uint8Array): void {
    const from = this.#size;
    this.#resize(from + content.byteLength);
    this.#bytes.set(content, from);
    this.#unsure.push({ kind: 'append', from, to: this.#size, doubtful: false });
  }

  truncate(size: number): void {
    this.#unsure.push({ kind: 'truncate', size, cut: this.#bytes.slice(size, this.#size), doubtful: false });
    this.#resize(size);
  }

  flip(bit: number): void {
    this.#bytes[bit >> 3] = (this.#bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  }

  /** A sync returned: what was written since the last failed one is durable; what a failed one left stays doubtful. */
  synced(): void {
    this.#unsure = this.#unsure.filter(
      (change) => change.doubtful && (change.kind === 'truncate' || change.from < this.#size),
    );
  }

  syncFailed(): void {
    this.#unsure = this.#unsure.map((change) => ({ ...change, doubtful: true }));
  }

  losePower(random: SeededRandom): void {
    for (const change of this.#unsure.toReversed()) {
      if (change.kind === 'truncate') {
        if (random.chance(0.5) && this.#size === change.size) {
          this.#resize(change.size + change.cut.byteLength);
          this.#bytes.set(change.cut, change.size);
        }
        continue;
      }
      const to = Math.min(change.to, this.#size);
      const fate = random.pick(['kept', 'lost', 'shorter', 'zeros', 'garbage']);
      const keptTo =
        fate === 'kept'
          ? to
          : fate === 'lost'
            ? change.from
            : change.from + random.below(Math.max(1, to - change.from));
      if (keptTo >= to) continue;
      if (to === this.#size && (fate === 'lost' || fate === 'shorter')) this.#resize(keptTo);
      else for (let at = keptTo; at < to; at++) this.#bytes[at] = fate === 'garbage' ? random.below(256) : 0;
    }
    this.#unsure = [];
  }

  #resize(size: number): void {
    if (size > this.#bytes.byteLength) {
      const larger = new Uint8Array(Math.max(size, this.#bytes.byteLength * 2));
      larger.set(this.#bytes.subarray(0, this.#size));
      this.#bytes = larger;
    }
    if (size > this.#size) this.#bytes.fill(0, this.#size, size);
    this.#size = size;
  }
}

type Change =
  | { readonly kind: 'append'; readonly from: number; readonly to: number; readonly doubtful: boolean }
  | { readonly kind: 'truncate'; readonly size: number; readonly cut: Uint8Array; readonly doubtful: boolean };

function bytesOf(content: Uint8Array | string): Uint8Array {
  return typeof content === 'string' ? new TextEncoder().encode(content) : content;
}

/** An error as Node's file functions throw it. */
function systemError(code: string, syscall: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${syscall} '${path}'`), { code, syscall, path });
}
