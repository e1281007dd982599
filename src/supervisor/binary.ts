import { accessSync, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { arch, endianness } from 'node:os';
import { BinaryUnusableError } from './errors.ts';

/** A program as far as its first bytes tell. */
export type BinaryKind = 'elf' | 'script';

/**
 * Looks at a program before it is run. A shell (and execvp) runs what the kernel does not know as a *shell script*, so a
 * truncated or foreign binary would be interpreted rather than refused. Throws {@link BinaryUnusableError}.
 */
export function inspectBinary(path: string): BinaryKind {
  const { head, size } = readHead(path);
  if (head.subarray(0, 2).toString('latin1') === '#!') return 'script';
  if (head.subarray(0, 4).toString('latin1') !== '\x7fELF') {
    throw new BinaryUnusableError(path, size === 0 ? 'it is empty' : 'it is neither an ELF program nor a script');
  }
  const problem = head.length < 64 ? 'it is truncated' : elfProblem(head, size);
  if (problem !== undefined) throw new BinaryUnusableError(path, problem);
  return 'elf';
}

function readHead(path: string): { head: Buffer; size: number } {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new BinaryUnusableError(path, 'it is not a file');
    accessSync(path, constants.X_OK);
    const head = Buffer.alloc(64 * 1024);
    return { head: head.subarray(0, readSync(fd, head)), size: stat.size };
  } catch (error) {
    if (error instanceof BinaryUnusableError) throw error;
    throw new BinaryUnusableError(path, fd === undefined ? 'it cannot be opened' : 'it is not executable', error);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** e_machine of the machines that this runs on; on others only the size is checked. */
const machineOf: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };

function elfProblem(head: Buffer, size: number): string | undefined {
  const is64 = head[4] === 2;
  const wanted = machineOf[arch()];
  if (wanted === undefined || endianness() !== 'LE') return undefined;
  if (!is64 || head[5] !== 1 || head.readUInt16LE(18) !== wanted) return `it is for another machine, not ${arch()}`;
  const [start, entryBytes, count] = [Number(head.readBigUInt64LE(32)), head.readUInt16LE(54), head.readUInt16LE(56)];
  for (let index = 0; index < count; index++) {
    const at = start + index * entryBytes;
    if (at + 40 > head.length) return at + 40 > size ? 'it is truncated' : undefined;
    // p_offset + p_filesz: what this segment needs of the file.
    const end = Number(head.readBigUInt64LE(at + 8) + head.readBigUInt64LE(at + 32));
    if (end > size) return `it is truncated (${size} bytes, ${end} needed)`;
  }
  return undefined;
}
