import { styleText } from 'node:util';

/** Where the demo shows itself: a terminal, a file, a pipe. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** How a row is set off from the others. */
export type Mood = 'plain' | 'good' | 'bad';

/** One row of the table. */
export interface Row {
  readonly cells: readonly string[];
  readonly mood: Mood;
}

/**
 * Lines of what happens, and below them, on a terminal, a table that is drawn anew in place. Elsewhere only the lines.
 * NO_COLOR and FORCE_COLOR are honoured (node:util does).
 */
export class Screen {
  readonly live: boolean;
  readonly #output: Output & NodeJS.WritableStream;
  readonly #startedMs = performance.now();
  #table: readonly string[] = [];
  #drawn = 0;

  constructor(output: Output & NodeJS.WritableStream) {
    this.#output = output;
    this.live = output.isTTY === true;
  }

  /** What happens, with the seconds since the start. */
  say(text: string, mood: Mood = 'plain'): void {
    const seconds = ((performance.now() - this.#startedMs) / 1000).toFixed(1).padStart(5);
    this.#above([`${this.#style('dim', `${seconds}s`)}  ${this.#mood(text, mood)}`]);
  }

  /** Text as it is. */
  text(text: string): void {
    this.#above(text.split('\n'));
  }

  /** A headline between the acts. */
  act(text: string): void {
    this.#above(['', this.#style('bold', text)]);
  }

  /** The table to show from now on; nothing happens where it could not be drawn in place. */
  table(head: readonly string[], rows: readonly Row[]): void {
    if (!this.live) return;
    const widths = head.map((cell, column) =>
      Math.max(cell.length, ...rows.map((row) => row.cells[column]?.length ?? 0)),
    );
    const set = (cells: readonly string[]) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .slice(0, (this.#output.columns ?? 80) - 1)
        .trimEnd();
    const lines = ['', this.#style('dim', set(head)), ...rows.map((row) => this.#mood(set(row.cells), row.mood))];
    if (lines.join('\n') === this.#table.join('\n')) return;
    this.#table = lines;
    this.#above([]);
  }

  /** The table stays as it is; what follows is written below it. */
  leaveTable(): void {
    this.#table = [];
    this.#drawn = 0;
  }

  #above(lines: readonly string[]): void {
    const back = this.#drawn === 0 ? '' : `\x1b[${this.#drawn}A\r\x1b[0J`;
    const all = [...lines, ...this.#table].map((line) => `${line}\n`).join('');
    this.#output.write(back + all);
    this.#drawn = this.#table.length;
  }

  #mood(text: string, mood: Mood): string {
    if (mood === 'plain') return text;
    return this.#style(mood === 'good' ? 'green' : 'red', text);
  }

  #style(format: 'bold' | 'dim' | 'green' | 'red', text: string): string {
    return styleText(format, text, { stream: this.#output, validateStream: true });
  }
}
