import { readdirSync, readFileSync } from 'node:fs';

/** Pids of living processes whose command line has an argument that is, or ends in `=` and, `identity`. */
export function processesNaming(identity: string): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      return isAlive(Number(name)) && args.some((arg) => arg === identity || arg.endsWith(`=${identity}`))
        ? [Number(name)]
        : [];
    } catch {
      return [];
    }
  });
}

/** True if the process exists and is no zombie. */
export function isAlive(pid: number): boolean {
  const state = statFields(pid)?.[0];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** When the process was started: clock ticks since boot. With the pid it names one process for ever; undefined if it is gone. */
export function startTicks(pid: number): string | undefined {
  return isAlive(pid) ? statFields(pid)?.[19] : undefined;
}

/** SIGKILL for one process; nothing if it has ended meanwhile. */
export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** The fields of /proc/PID/stat from the state on. */
function statFields(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may itself contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}
