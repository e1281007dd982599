import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gapKind } from '../../src/upstream/fact.ts';
import { parseRole, roleJsonSchema, roleSchema } from '../../src/upstream/role.ts';

const root = join(import.meta.dirname, '..', '..');
const text = (path: string) => readFileSync(join(root, path), 'utf8');

test('docs/reports.md lists every kind of report, and no other', () => {
  const kinds = [...text('src/agent/events.ts').matchAll(/readonly kind: '([a-z]+\.[A-Za-z]+)'/g)].map(
    (match) => match[1],
  );
  expect(kinds.length).toBeGreaterThan(20);
  const listed = [...text('docs/reports.md').matchAll(/^\| `([a-z]+\.[A-Za-z]+)` +\|/gm)].map((match) => match[1]);
  expect(listed.sort()).toEqual([...kinds, gapKind].sort());
});

test('docs/role.md shows a document that is accepted, and describes every field', () => {
  const example = /```yaml\n([\s\S]*?)```/.exec(text('docs/role.md'))?.[1] ?? '';
  expect(parseRole(example, 'docs/role.md').kind).toBe('role');
  for (const field of Object.keys(roleSchema.shape)) expect(text('docs/role.md')).toContain(`| \`${field}\``);
});

test('docs/role.schema.json is the schema of the code (write it anew: scripts/node scripts/write-role-schema.ts)', () => {
  expect(JSON.parse(text('docs/role.schema.json'))).toEqual(JSON.parse(JSON.stringify(roleJsonSchema())));
});
