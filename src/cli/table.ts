/** @pure file: text in columns. */

import { printable } from './printable.ts';

/**
 * @pure Rows in columns of even width, two spaces between them, nothing after the last. Cells are made printable and cut at
 * 200 characters: they come from other members and from logs. A head is set in capitals.
 */
export function table(rows: readonly (readonly string[])[], head?: readonly string[]): string {
  const safe = [...(head === undefined ? [] : [head.map((cell) => cell.toUpperCase())]), ...rows].map((row) =>
    row.map((cell) => printable(cell, 200)),
  );
  const widths = safe.reduce<number[]>((most, row) => {
    for (const [column, cell] of row.entries()) most[column] = Math.max(most[column] ?? 0, cell.length);
    return most;
  }, []);
  return safe
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}
