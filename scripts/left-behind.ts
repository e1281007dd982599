/**
 * Names what a run of tests left in its temporary directory, and the processes that name that directory. Ends with 1 if there
 * is any. Ends none of them: whoever left them must be found first.
 *
 *   scripts/node scripts/left-behind.ts DIRECTORY
 */
import { readdirSync, readFileSync } from 'node:fs';

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: left-behind.ts DIRECTORY');

const files = readdirSync(directory);
const processes = readdirSync('/proc').flatMap((pid) => {
  if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return command.includes(`${directory}/`) ? [`process ${pid}: ${command.slice(0, 200)}`] : [];
  } catch {
    return []; // gone meanwhile
  }
});
for (const name of files) console.log(`left behind: ${directory}/${name}`);
for (const line of processes) console.log(`left behind: ${line}`);
process.exitCode = files.length + processes.length > 0 ? 1 : 0;
