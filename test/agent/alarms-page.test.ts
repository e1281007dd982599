// Goal: docs/alarms.md has every alarm and every blocker, and no other.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dataAlarms } from '../../src/agent/turn-reports.ts';

const root = join(import.meta.dirname, '../..');
const [alarms = '', blockers = ''] = readFileSync(join(root, 'docs/alarms.md'), 'utf8').split('A blocker is');
const named = (text: string) => [...text.matchAll(/^\| `(\w+)`/gm)].map(([, name = '']) => name).sort();
const source = (path: string) => readFileSync(join(root, 'src', path), 'utf8');

test('alarms', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const set = files.flatMap((file) =>
    [...source(file).matchAll(/alarms\.set\(\s*'(\w+)'/g)].map(([, name = '']) => name),
  );
  expect(named(alarms)).toEqual([...new Set([...set, ...dataAlarms])].sort());
});

test('blockers', () => {
  const kinds = /export type Blocker =[\s\S]*?;\n(?:\n|$)/.exec(`${source('agent/step.ts')}\n`)?.[0] ?? '';
  expect(named(blockers)).toEqual([...kinds.matchAll(/kind: '(\w+)'/g)].map(([, name = '']) => name).sort());
});
