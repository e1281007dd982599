/** @pure file: JSON from strangers. */

/** The text is no JSON, or JSON that two readers could understand differently. */
export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';
}

/**
 * @pure Reads JSON and refuses what JSON.parse would let pass: a key that stands twice in one object (the last one would
 * win silently), `__proto__`, `constructor` and `prototype` as keys, and nesting deeper than `maxDepth`. Throws
 * StrictJsonError. Works without recursion, so no input can exhaust the stack.
 */
export function parseStrictJson(text: string, maxDepth = 8): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new StrictJsonError('it is no JSON');
  }
  checkKeys(text, maxDepth);
  return value;
}

/** Walks the tokens of a text that is known to be JSON. */
function checkKeys(text: string, maxDepth: number): void {
  // One entry for each open bracket: the keys of an object so far, or undefined for a list.
  const open: (Set<string> | undefined)[] = [];
  const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g;
  for (const [token, colon] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (colon !== undefined) addKey(open.at(-1), String(JSON.parse(token.slice(0, token.lastIndexOf('"') + 1))));
    if (open.length > maxDepth) throw new StrictJsonError(`it is nested deeper than ${maxDepth}`);
  }
}

function addKey(keys: Set<string> | undefined, key: string): void {
  if (forbidden.has(key)) throw new StrictJsonError(`${key} is no key here`);
  if (keys?.has(key)) throw new StrictJsonError(`the key ${JSON.stringify(key.slice(0, 40))} stands twice`);
  keys?.add(key);
}

const forbidden: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
