import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { errnoOf } from '../base/errors.ts';
import { type Holder, holderOf } from './process.ts';

/**
 * Every process that listens on a TCP port of this machine, on whatever address, as far as /proc may be read. Only for
 * messages: nobody is ever signalled for holding a port.
 */
export function listenersOn(port: number, proc = '/proc'): readonly Holder[] {
  const sockets = new Set(
    ['tcp', 'tcp6'].flatMap((table) => listeningSockets(readOrEmpty(`${proc}/net/${table}`), port)),
  );
  if (sockets.size === 0) return [];
  return readdirSync(proc)
    .filter((name) => /^\d+$/.test(name) && hasOneOf(`${proc}/${name}/fd`, sockets))
    .map((name) => holderOf(Number(name), proc));
}

/** What the links of its descriptors read for the sockets in state LISTEN (0A). */
function listeningSockets(table: string, port: number): readonly string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === '0A' && local.endsWith(wanted) ? [`socket:[${inode}]`] : [];
  });
}

function hasOneOf(fdDirectory: string, sockets: ReadonlySet<string>): boolean {
  try {
    return readdirSync(fdDirectory).some((fd) => {
      try {
        return sockets.has(readlinkSync(`${fdDirectory}/${fd}`));
      } catch {
        return false; // closed meanwhile
      }
    });
  } catch {
    return false; // gone meanwhile, or another user's
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // A machine without IPv6 has no tcp6.
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'EACCES') return '';
    throw error;
  }
}
