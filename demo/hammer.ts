/**
 * A process of its own that asks one member for its Status, hard: on the demo's busy event loop it would ask too slowly.
 * Prints how many answers it has so far, ten times a second; ends when its standard input ends.
 *
 *   hammer.ts DIRECTORY ENDPOINT CONNECTIONS CALLERS      (DIRECTORY only names the demo it belongs to)
 */
import { StatusHammer } from './status-hammer.ts';

const [, endpoint = '', connections, callers] = process.argv.slice(2);
const hammer = new StatusHammer(endpoint, {
  connections: Number(connections),
  callers: Number(callers),
});
setInterval(() => process.stdout.write(`${hammer.answered}\n`), 100);
process.stdout.on('error', () => process.exit(0));
process.stdin.on('end', () => process.exit(0)).resume();
