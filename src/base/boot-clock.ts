import { readFileSync } from 'node:fs';

/**
 * Time since the machine was booted, which goes on while it is suspended: Node's own monotonic clock does not, and a lease in etcd does.
 * Unit: ms, in steps of 10.
 */
export interface BootClock {
  bootMs(): number;
}

/** Linux's own (/proc/uptime). Throws if it cannot be read: then nobody may rely on a lease. */
export const systemBootClock: BootClock = {
  bootMs() {
    const seconds = Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]);
    if (!(seconds > 0)) throw new Error('/proc/uptime does not say how long the machine has been up');
    return seconds * 1_000;
  },
};
