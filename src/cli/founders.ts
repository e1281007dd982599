import { readFileSync } from 'node:fs';
import { describeError } from '../base/errors.ts';
import { UsageError } from './usage-error.ts';

/**
 * The founders' lines of a file (`-`: standard input), without empty lines and comments. What the lines say is judged by
 * the agent. Throws UsageError.
 */
export function readFounders(file: string): readonly string[] {
  const lines = readList(file)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines.length === 0) throw new UsageError(`${file} has no founder`, { hint: listHint });
  if (lines.length > 64) throw new UsageError(`${file} has ${lines.length} founders; 64 are the most`);
  return lines;
}

const listHint = 'Run "etcd-node-agent found prepare" on each founder and gather the lines.';

function readList(file: string): string {
  try {
    const text = readFileSync(file === '-' ? 0 : file, 'utf8');
    if (text.length > 64 * 1024) throw new Error('it is longer than 64 KiB');
    return text;
  } catch (error) {
    throw new UsageError(`the list ${file} cannot be read: ${describeError(error)}`, { hint: listHint });
  }
}
