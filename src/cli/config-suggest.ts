import { configSchemaJson } from './config-schema.ts';
import type { Path } from './config-source.ts';

/** What to say of a key that is not in the schema: the nearest one that is, or all of them. */
export function hintForUnknownKey(path: Path, key: string): string {
  const known = keysAt(path);
  const near = known
    .map((name) => ({ name, distance: editDistance(name.toLowerCase(), camelCased(key).toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance)[0];
  if (near !== undefined && near.distance <= Math.max(1, Math.floor(near.name.length / 3))) return `want ${near.name}`;
  return known.length === 0 ? 'want it gone' : `want one of ${known.join(', ')}`;
}

/** etcd's own spelling is the likeliest mistake: `peer-url`. */
function camelCased(key: string): string {
  return key.replace(/[-_]([a-z])/gi, (_, letter: string) => letter.toUpperCase());
}

function keysAt(path: Path): readonly string[] {
  let schemas: readonly unknown[] = [configSchemaJson()];
  for (const segment of path) schemas = schemas.flatMap((schema) => below(schema, segment));
  return [...new Set(schemas.flatMap((schema) => Object.keys(propertiesOf(schema))))];
}

function below(schema: unknown, segment: PropertyKey): readonly unknown[] {
  return alternatives(schema).flatMap((each) => propertiesOf(each)[String(segment)] ?? []);
}

function propertiesOf(schema: unknown): Record<string, unknown> {
  return Object.assign({}, ...alternatives(schema).map((each) => field(each, 'properties') ?? {}));
}

function alternatives(schema: unknown): readonly unknown[] {
  const choices = field(schema, 'oneOf') ?? field(schema, 'anyOf');
  return Array.isArray(choices) ? choices : [schema];
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** How many letters must be changed, added or left out. Both texts are short: schema keys, and a key that was cut. */
function editDistance(one: string, other: string): number {
  const target = other.slice(0, 40);
  let row = Array.from({ length: target.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...one].entries()) {
    const next = [i + 1];
    for (let j = 0; j < target.length; j++) {
      const substituted = (row[j] ?? 0) + (letter === target[j] ? 0 : 1);
      next.push(Math.min(substituted, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? one.length;
}
