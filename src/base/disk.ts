/**
 * The few file operations that durable state is built from, as a port: the real disk in the agent, one in memory that
 * can lose, keep or tear unsynced writes in tests and in the simulator. All calls are synchronous: a record is on disk
 * when the call returns, or the call has thrown. Paths are absolute.
 *
 * Errors are Node's system errors (`ENOSPC`, `EIO`, `EROFS`, …); callers wrap them.
 */
export interface Disk {
  /** The whole file, or undefined if there is none. Throws on any other error: unreadable is never "absent". */
  read(path: string): Uint8Array | undefined;
  /** Replaces the file as a whole: temporary file, fsync, rename, fsync of the directory. Mode 0600 unless told. */
  replace(path: string, content: Uint8Array | string, mode?: number): void;
  /** Opens (creates, mode 0600) a file to append to. The directory entry is durable when it returns. */
  openAppend(path: string): AppendFile;
  /**
   * Makes durable what a file or the names in a directory show now: a process that was killed may have left changes that
   * nobody synced. Works on a read-only file system. Throws ENOENT if it is absent.
   */
  sync(path: string): void;
  /** Creates the directory and its missing parents, durably. Mode 0700 unless told. */
  ensureDirectory(path: string, mode?: number): void;
  /** Renames durably: both parent directories are synced. Throws if `to` is a non-empty directory. */
  rename(from: string, to: string): void;
  /** Removes one file durably; harmless if it is absent. */
  remove(path: string): void;
  /** Names in a directory, sorted, or undefined if it is absent. */
  list(path: string): readonly string[] | undefined;
}

/** A file that only grows, except for {@link AppendFile.truncate}. */
export interface AppendFile {
  /** Unit: bytes. */
  readonly size: number;
  /** Writes all of `content` at the end and syncs it (fdatasync). On failure nothing counts as written: the caller truncates. */
  append(content: Uint8Array | string): void;
  /** Cuts the file back to `size` bytes and syncs. */
  truncate(size: number): void;
  close(): void;
}
