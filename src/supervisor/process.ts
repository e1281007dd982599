import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { errnoOf } from '../base/errors.ts';

/** What names one process for ever: a pid alone is reused, pid and start ticks within one boot are not. */
export interface ProcessRecord {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks from boot to the start of the process. */
  readonly startTicks: string;
  /** /proc/sys/kernel/random/boot_id at the start. */
  readonly bootId: string;
  /** `device:inode` of the program, as `stat -Lc %d:%i` prints it; undefined if not known or if it is a script. */
  readonly binary: string | undefined;
}

/** Whether the recorded process is the one that has the pid now. Only `ours` may be signalled. */
export type Verdict =
  | { readonly kind: 'ours' }
  /** Ended, a zombie, or its pid belongs to another by now: in every case our process is no more. */
  | { readonly kind: 'gone'; readonly why: string }
  /** The same process, but something else does not fit, for a moment (before its exec) or for ever. */
  | { readonly kind: 'unsure'; readonly why: string };

/**
 * Compares the record with /proc. `identity` must stand in the command line (an argument, or `--name=IDENTITY`). What
 * cannot be read (another user's `exe` without the right to look) is unknown and counts neither way.
 */
export function verifyProcess(record: ProcessRecord, identity: string, proc = '/proc'): Verdict {
  if (record.bootId !== bootId(proc)) return { kind: 'gone', why: 'the machine was booted since' };
  const stat = readProcessStat(record.pid, proc);
  if (stat === undefined) return { kind: 'gone', why: `no process ${record.pid}` };
  if (stat.startTicks !== record.startTicks) {
    return { kind: 'gone', why: `pid ${record.pid} belongs to another process now` };
  }
  if (isDead(stat)) return { kind: 'gone', why: `process ${record.pid} is a zombie` };
  const commandLine = readCommandLine(record.pid, proc);
  if (commandLine !== undefined && !namesIdentity(commandLine, identity)) {
    return { kind: 'unsure', why: `${identity} does not stand in the command line of ${record.pid}` };
  }
  const executable = readExecutable(record.pid, proc);
  if (executable !== undefined && record.binary !== undefined && executable !== record.binary) {
    return { kind: 'unsure', why: `process ${record.pid} runs file ${executable}, not ${record.binary}` };
  }
  return { kind: 'ours' };
}

/** What /proc/PID/stat says; undefined if there is no such process. */
export interface ProcessStat {
  readonly state: string;
  readonly startTicks: string;
  /** User and system time. Unit: clock ticks. */
  readonly cpuTicks: number;
  /** The wait status, as far as the kernel shows it; only a zombie's means anything. */
  readonly waitStatus: number;
}

/** Reads one process; undefined if it does not exist. */
export function readProcessStat(pid: number, proc = '/proc'): ProcessStat | undefined {
  const text = readOrUndefined(`${proc}/${pid}/stat`);
  if (text === undefined) return undefined;
  // The name in parentheses may itself contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    state: fields[0] ?? '',
    startTicks: fields[19] ?? '',
    cpuTicks: Number(fields[11] ?? 0) + Number(fields[12] ?? 0),
    waitStatus: Number(fields[49] ?? 0),
  };
}

/** A zombie answers `kill -0` and has a pid, and is dead. */
export function isDead(stat: ProcessStat): boolean {
  return stat.state === 'Z' || stat.state === 'X';
}

/** Bytes that the process has read and written so far, or undefined where that cannot be read. */
export function readIoBytes(pid: number): number | undefined {
  const text = readOrUndefined(`/proc/${pid}/io`);
  if (text === undefined) return undefined;
  let sum = 0;
  for (const match of text.matchAll(/^(?:rchar|wchar): (\d+)$/gm)) sum += Number(match[1]);
  return sum;
}

/** The boot id of the running kernel. */
export function bootId(proc = '/proc'): string {
  return readFileSync(`${proc}/sys/kernel/random/boot_id`, 'utf8').trim();
}

/** A process that has a file open, for messages and for finding a child whose record is missing. */
export interface Holder {
  readonly pid: number;
  readonly commandLine: readonly string[];
  readonly executable: string | undefined;
}

/** Every process that has `path` open, as far as /proc may be read. */
export function holdersOf(path: string): readonly Holder[] {
  const wanted = deviceAndInode(path);
  if (wanted === undefined) return [];
  const holders: Holder[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || !hasOpen(`/proc/${name}/fd`, wanted)) continue;
    holders.push(holderOf(Number(name)));
  }
  return holders;
}

/** What can be said of one process. */
export function holderOf(pid: number, proc = '/proc'): Holder {
  return { pid, commandLine: readCommandLine(pid, proc) ?? [], executable: readExecutable(pid, proc) };
}

/** True if an argument is `identity` or ends in `=identity`. */
export function namesIdentity(commandLine: readonly string[], identity: string): boolean {
  return commandLine.some((argument) => argument === identity || argument.endsWith(`=${identity}`));
}

/** `device:inode` behind a path, links followed; undefined if that cannot be read. */
export function deviceAndInode(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

function readExecutable(pid: number, proc = '/proc'): string | undefined {
  return deviceAndInode(`${proc}/${pid}/exe`);
}

function readCommandLine(pid: number, proc = '/proc'): readonly string[] | undefined {
  const text = readOrUndefined(`${proc}/${pid}/cmdline`);
  return text === undefined || text === '' ? undefined : text.replace(/\0$/, '').split('\0');
}

function hasOpen(fdDirectory: string, wanted: string): boolean {
  try {
    return readdirSync(fdDirectory).some((fd) => {
      try {
        // Most descriptors are sockets and pipes; only paths are worth a stat.
        const link = `${fdDirectory}/${fd}`;
        return readlinkSync(link).startsWith('/') && deviceAndInode(link) === wanted;
      } catch {
        return false; // closed meanwhile; the others count all the same
      }
    });
  } catch {
    return false;
  }
}

/** The file's text; undefined if the process is gone or does not let us look. */
function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ESRCH' || errno === 'EACCES' || errno === 'EPERM') return undefined;
    throw error;
  }
}
