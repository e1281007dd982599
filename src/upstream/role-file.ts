import { constants, watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeError, errnoOf } from '../base/errors.ts';
import { maxRoleBytes } from './role.ts';

/** The content of a role file, or why there is none to be had. */
export type RoleFileReading =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unknown'; readonly why: string };

/** What a watched role file is made of; a test may put something else in its place. */
export interface RoleFileAccess {
  readonly read: (path: string) => Promise<RoleFileReading>;
  /** Calls `changed` when something happened in the directory of `path`. Throws if the directory cannot be watched. */
  readonly watch: (path: string, changed: () => void) => () => void;
}

/** Files of this machine. */
export const realRoleFile: RoleFileAccess = { read: readRoleFile, watch: watchDirectory };

/** Never waits for a writer (a FIFO) and never takes in more than a role document may have. */
async function readRoleFile(path: string): Promise<RoleFileReading> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (!stat.isFile()) return { kind: 'unknown', why: `${path} is no file` };
    if (stat.size > maxRoleBytes) return { kind: 'unknown', why: `${path} is larger than ${maxRoleBytes} bytes` };
    const buffer = Buffer.alloc(maxRoleBytes + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, 0);
    return decode(path, buffer.subarray(0, bytesRead));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return { kind: 'unknown', why: `${path} is missing` };
    return { kind: 'unknown', why: `${path} cannot be read: ${describeError(error)}` };
  }
}

function decode(path: string, bytes: Uint8Array): RoleFileReading {
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { kind: 'unknown', why: `${path} is not UTF-8 text` };
  }
}

/**
 * The directory is watched and not the file: editors and Kubernetes put a new file or link in the place of the old one,
 * and a watch on the old file would stay with it.
 */
function watchDirectory(path: string, changed: () => void): () => void {
  const watcher = watch(dirname(path), { persistent: false });
  watcher.on('change', changed);
  // For example the directory itself was removed. The slow look finds out what is there now.
  watcher.on('error', changed);
  return () => watcher.close();
}
