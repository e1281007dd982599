// Goal: the pages that operators read and the program say the same.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { main } from '../../src/cli/agent.ts';
import { configSchemaJson } from '../../src/cli/config-schema.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { MemoryIo } from '../../src/cli/io.ts';

const page = (name: string) => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

test('docs/configuration.md has every field of the schema, with its default, and no other', () => {
  const rows = [...page('configuration.md').matchAll(/^\| `([\w.]+)` +\| (.*?) +\|/gm)].map(
    ([, field = '', standard = '']) => [field, standard],
  );
  const documented = new Map(
    rows.filter(([field = '']) => /^[a-z]/.test(field)).map(([field = '', standard = '']) => [field, standard]),
  );
  const inSchema = new Map(leavesOf(configSchemaJson()));
  expect([...documented.keys()].sort()).toEqual([...inSchema.keys()].sort());
  for (const [field, standard] of inSchema) {
    if (standard !== undefined) expect([field, documented.get(field)]).toEqual([field, `\`${standard}\``]);
  }
});

function leavesOf(schema: unknown, path: readonly string[] = []): readonly (readonly [string, string | undefined])[] {
  const at = (key: string) => (typeof schema === 'object' && schema !== null ? Reflect.get(schema, key) : undefined);
  const choices: unknown = at('oneOf');
  const sections: readonly unknown[] = Array.isArray(choices) ? choices : [schema];
  const inner = sections.flatMap((section) => {
    const properties: unknown =
      typeof section === 'object' && section !== null ? Reflect.get(section, 'properties') : undefined;
    return Object.entries(properties ?? {}).flatMap(([key, value]) => leavesOf(value, [...path, key]));
  });
  if (inner.length > 0) return inner;
  const standard: unknown = at('default');
  const text = standard === undefined ? undefined : typeof standard === 'string' ? standard : JSON.stringify(standard);
  return [[path.join('.'), text]];
}

test('docs/commands.md has every command of the program, and no other', async () => {
  const io = new MemoryIo();
  await main(['--help'], io);
  const commands = [...(io.stdout.split('Commands:')[1] ?? '').matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
  const documented = new Set([...page('commands.md').matchAll(/^\| `([a-z-]+)/gm)].map(([, name]) => name));
  expect([...documented].sort()).toEqual(commands.filter((name) => name !== 'help').sort());
});

test('docs/exit-codes.md has every exit code, and no other', () => {
  const documented = [...page('exit-codes.md').matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code));
  expect(documented).toEqual(Object.values(exitCodes));
});
