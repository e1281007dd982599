import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AgentError, describeError, errnoOf } from '../base/errors.ts';
import { realDisk } from '../base/real-disk.ts';
import { maxRoleBytes } from './role.ts';

/** The content of a role file, or why there is none to be had. */
export type RoleFileReading =
  | { readonly kind: 'text'; readonly text: string }
  /** `missing`: there is no such file, which is certain. */
  | { readonly kind: 'unknown'; readonly why: string; readonly missing: boolean };

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
    if (!stat.isFile()) return unknown(`${path} is no file`);
    if (stat.size > maxRoleBytes) return unknown(`${path} is larger than ${maxRoleBytes} bytes`);
    const buffer = Buffer.alloc(maxRoleBytes + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, 0);
    return decode(path, buffer.subarray(0, bytesRead));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return { kind: 'unknown', why: `${path} is missing`, missing: true };
    return unknown(`${path} cannot be read: ${describeError(error)}`);
  }
}

function unknown(why: string): RoleFileReading {
  return { kind: 'unknown', why, missing: false };
}

function decode(path: string, bytes: Uint8Array): RoleFileReading {
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return unknown(`${path} is not UTF-8 text`);
  }
}

/** The role file could not be written; the old one is there as it was. */
export class RoleFileNotWrittenError extends AgentError {
  readonly code = 'ROLE_FILE_NOT_WRITTEN';
  constructor(path: string, cause: unknown) {
    super(`${path} could not be written`, {
      cause,
      hint: 'The agent writes it as its own user. Make the directory writable for it, or edit the file by hand.',
    });
  }
}

/**
 * Puts a role file in the place of the old one, whole and durably. It keeps owner and mode; a new one is for everybody to read
 * (0644). What a link points to is replaced, and not the link. Throws {@link RoleFileNotWrittenError}.
 */
export function replaceRoleFile(path: string, text: string): void {
  try {
    const target = existsSync(path) ? realpathSync(path) : path;
    const before = statSync(target, { throwIfNoEntry: false });
    const temporary = join(dirname(target), `.${basename(target)}.etcd-node-agent`);
    rmSync(temporary, { force: true });
    try {
      const file = openSync(temporary, 'wx', 0o600);
      try {
        writeFileSync(file, text);
        if (before !== undefined) fchownSync(file, before.uid, before.gid);
        fchmodSync(file, before === undefined ? 0o644 : before.mode & 0o7777);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(temporary, target);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
    realDisk.sync(dirname(target));
  } catch (error) {
    throw new RoleFileNotWrittenError(path, error);
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
