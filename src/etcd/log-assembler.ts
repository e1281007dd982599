/** @pure file: lines of etcd's log → whole entries: a Go trace and a usage text are one entry each. */

import { type LogLine, parseLogLine } from './log-line.ts';

/** One entry of the log. */
export type LogEntry =
  | { readonly kind: 'line'; readonly line: LogLine }
  /** The last words of a Go program: `panic: …`, `fatal error: …` or a dump after a signal, with the goroutines. */
  | { readonly kind: 'trace'; readonly cause: TraceCause; readonly block: TextBlock }
  /** What the flag package prints when it does not understand the command line. */
  | { readonly kind: 'usage'; readonly block: TextBlock };

export type TraceCause = 'panic' | 'fatalError' | 'signal' | 'fault';

/** Lines that belong together; `first` is the one that says why. */
export interface TextBlock {
  readonly first: string;
  /** The first lines, {@link maxBlockLines} at most, each cut at {@link maxLineChars}. */
  readonly lines: readonly string[];
  /** All lines, kept or not. */
  readonly totalLines: number;
}

/** How many lines of a trace are kept. The first goroutine is the one that panicked; a signal dump has more than 800 lines. */
export const maxBlockLines = 120;

/** Unit: characters. */
export const maxLineChars = 2_000;

/** What was begun and is not complete yet. A new life of etcd begins with {@link emptyAssembler}. */
export interface AssemblerState {
  readonly open: OpenBlock | undefined;
}

interface OpenBlock extends TextBlock {
  readonly what: TraceCause | 'usage';
}

/** @pure Nothing begun. */
export const emptyAssembler: AssemblerState = { open: undefined };

/**
 * @pure Takes one line; gives what is complete now. A JSON line in the middle of a trace (another goroutine wrote it) is an
 * entry of its own and does not end the trace: only a new beginning or {@link flush} does, since a dying process says nothing more.
 */
export function assemble(
  state: AssemblerState,
  raw: string | Uint8Array,
): { readonly state: AssemblerState; readonly entries: readonly LogEntry[] } {
  const line = parseLogLine(raw);
  if (line.format !== 'text') return { state, entries: [{ kind: 'line', line }] };
  const { open } = state;
  const what = beginning(line.raw);
  if (open !== undefined && (what === undefined || belongsTo(open, what))) {
    return { state: { open: grown(open, line.raw) }, entries: [] };
  }
  if (what === undefined) return { state, entries: [{ kind: 'line', line }] };
  const first = line.raw.slice(0, maxLineChars);
  return { state: { open: { what, first, lines: [first], totalLines: 1 } }, entries: closed(open) };
}

/** @pure The end of a life: gives what is still open. */
export function flush(state: AssemblerState): readonly LogEntry[] {
  return closed(state.open);
}

/** @pure All entries of a whole log. */
export function entriesOf(lines: Iterable<string | Uint8Array>): readonly LogEntry[] {
  const entries: LogEntry[] = [];
  let state = emptyAssembler;
  for (const raw of lines) {
    const step = assemble(state, raw);
    state = step.state;
    entries.push(...step.entries);
  }
  return [...entries, ...flush(state)];
}

function grown(open: OpenBlock, raw: string): OpenBlock {
  const full = open.lines.length >= maxBlockLines;
  const lines = full ? open.lines : [...open.lines, raw.slice(0, maxLineChars)];
  return { ...open, lines, totalLines: open.totalLines + 1 };
}

function closed(open: OpenBlock | undefined): readonly LogEntry[] {
  if (open === undefined) return [];
  const { what, ...block } = open;
  return [what === 'usage' ? { kind: 'usage', block } : { kind: 'trace', cause: what, block }];
}

/** A trace that is open takes later panics and signals as its own: they are consequences of the first. */
function belongsTo(open: OpenBlock, what: OpenBlock['what']): boolean {
  return (open.what === 'usage') === (what === 'usage');
}

function beginning(raw: string): OpenBlock['what'] | undefined {
  return beginnings.find(([pattern]) => pattern.test(raw))?.[1];
}

/** How Go's runtime begins its last words, and its flag package a refusal. Source: docs/etcd-facts.md, "exit behaviour". */
const beginnings: readonly (readonly [RegExp, OpenBlock['what']])[] = [
  [/^panic: /, 'panic'],
  [/^fatal error: /, 'fatalError'],
  [/^runtime: (?:out of memory|cannot allocate|failed to create|goroutine stack exceeds)/, 'fatalError'],
  [/^runtime\/cgo: /, 'fatalError'],
  [/^unexpected fault address /, 'fault'],
  [/^SIG[A-Z]+: /, 'signal'],
  [/^\[signal SIG[A-Z]+: /, 'signal'],
  [/^flag provided but not defined: /, 'usage'],
  [/^flag needs an argument: /, 'usage'],
  [/^invalid (?:boolean )?value .* for (?:flag )?-/, 'usage'],
];
