import type { Document, Node, Pair } from 'yaml';
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';

/** Keys and positions of a value inside the file: `['etcd', 'listenPeerUrls', 0]`. */
export type Path = readonly PropertyKey[];

/** Something is wrong at a place of the file. */
export interface Issue {
  readonly path: Path;
  readonly message: string;
  /** True if the key itself is meant and not its value. */
  readonly atKey?: boolean;
}

/** A place in the file, counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** What a YAML text says, and where it says it. */
export interface Source {
  /** Plain values: mappings, lists, texts, numbers, truth values, null. */
  readonly content: unknown;
  /** What is wrong with the text as YAML. If there is anything, `content` is not to be used. */
  readonly problems: readonly (Position & { readonly message: string })[];
  /** Where the value (or, where it is missing, the mapping that lacks it) stands. */
  locate(path: Path, atKey?: boolean): Position;
}

/** Reads YAML 1.2: one document, no key twice, no tag that we do not know. Never throws. */
export function readSource(text: string): Source {
  const lines = new LineCounter();
  const start: Position = { line: 1, column: 1 };
  try {
    const document = parseDocument(text, { lineCounter: lines, strict: true, uniqueKeys: true, prettyErrors: false });
    const problems = [...document.errors, ...document.warnings].map((error) => ({
      ...positionAt(lines, error.pos[0]),
      message: error.message,
    }));
    // maxAliasCount bounds what aliases of aliases may grow to.
    const content: unknown = problems.length > 0 ? undefined : document.toJS({ maxAliasCount: 100 });
    return { content, problems, locate: (path, atKey) => locate(document, lines, path, atKey === true) };
  } catch (error) {
    // Nested beyond the stack, or aliases beyond their bound.
    const message =
      error instanceof RangeError ? 'it is nested too deep' : String(error instanceof Error ? error.message : error);
    return { content: undefined, problems: [{ ...start, message }], locate: () => start };
  }
}

function locate(document: Document, lines: LineCounter, path: Path, atKey: boolean): Position {
  let node: unknown = document.contents;
  let offset = 0;
  for (const [index, segment] of path.entries()) {
    const found = child(resolved(document, node), segment);
    if (found === undefined) return positionAt(lines, offset);
    const keyWanted = atKey && index === path.length - 1;
    offset = offsetOf(keyWanted || found.value === null ? found.key : found.value) ?? offsetOf(found.key) ?? offset;
    // A missing field is reported at the key of the mapping that lacks it.
    if (index < path.length - 1) offset = offsetOf(found.key) ?? offset;
    node = found.value;
  }
  return positionAt(lines, offset);
}

function child(node: unknown, segment: PropertyKey): { readonly key: unknown; readonly value: unknown } | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(segment)];
    return item === undefined ? undefined : { key: item, value: item };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find((each: Pair) => isScalar(each.key) && String(each.key.value) === String(segment));
  return pair === undefined ? undefined : { key: pair.key, value: pair.value };
}

function resolved(document: Document, node: unknown): unknown {
  return isAlias(node) ? node.resolve(document) : node;
}

function offsetOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

function positionAt(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}
