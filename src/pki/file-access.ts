import { statSync } from 'node:fs';
import { dirname } from 'node:path';

/** A user of this machine and all groups it belongs to. */
export interface FileReader {
  readonly uid: number;
  readonly gids: readonly number[];
}

/**
 * Whether this user may read the file by the mode bits of it and of every directory above it. Access lists are not looked
 * at. Undefined if the file, or a directory above it, cannot be looked at by ourselves.
 */
export function mayRead(file: string, reader: FileReader): boolean | undefined {
  if (reader.uid === 0) return true;
  try {
    if (!allowed(file, reader, 4)) return false;
    let directory = dirname(file);
    while (allowed(directory, reader, 1)) {
      if (directory === dirname(directory)) return true;
      directory = dirname(directory);
    }
    return false;
  } catch {
    return undefined;
  }
}

/** Whether users other than owner and group may read the file itself. Undefined if there is no such file to look at. */
export function othersMayRead(file: string): boolean | undefined {
  try {
    const stat = statSync(file);
    return stat.isFile() ? (stat.mode & 0o004) !== 0 : undefined;
  } catch {
    return undefined;
  }
}

/** `bit`: 4 to read, 1 to pass through a directory. The kernel takes the first class that fits, and no other. */
function allowed(path: string, reader: FileReader, bit: 4 | 1): boolean {
  const { mode, uid, gid } = statSync(path);
  if (uid === reader.uid) return (mode & (bit << 6)) !== 0;
  if (reader.gids.includes(gid)) return (mode & (bit << 3)) !== 0;
  return (mode & bit) !== 0;
}
