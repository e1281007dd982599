/** @pure file: a command as a shell would take it, and back: what an operator without an agent finds beside the data. */

import type { StartOrder } from './ports.ts';

/** @pure One line; a word that a shell would not take as it is stands in single quotes. */
export function commandLine({ binary, arguments: words }: StartOrder): string {
  return [binary, ...words]
    .map((word) => (/^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

/** @pure The words of a line that {@link commandLine} made. */
export function readCommandLine(line: string): readonly string[] {
  const words = line.match(/(?:'[^']*'|\\'|[^\s'])+/g) ?? [];
  return words.map((word) =>
    word.replace(/'([^']*)'|\\(')/g, (_all, quoted?: string, quote?: string) => quoted ?? quote ?? ''),
  );
}
