// Goal: a hint that sends an operator to the runbook sends them to a chapter that is there.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const runbook = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
const chapters = [...runbook.matchAll(/^## (.+)$/gm)].map(([, title]) => title ?? '');
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);

test('every mention of the runbook in the source names a chapter of it, by its exact heading', () => {
  const named = new Set<string>();
  for (const name of sources) {
    const text = readFileSync(join(root, 'src', name), 'utf8');
    const mentions = text.split('docs/runbook.md').slice(1);
    for (const rest of mentions) {
      const [, chapter] = /^, "([^"]+)"/.exec(rest) ?? [];
      expect(chapters, `${name}: docs/runbook.md${rest.slice(0, 40)}`).toContain(chapter);
      named.add(chapter ?? '');
    }
  }
  expect(named.size).toBeGreaterThan(8);
});

test('"state that cannot be read" has a row for every record in the state directory', () => {
  const chapter = runbook.split('## state that cannot be read')[1]?.split('\n## ')[0] ?? '';
  const rows = new Set(
    [...chapter.matchAll(/^\| (.+?) +\|/gm)].flatMap(([, files = '']) =>
      [...files.matchAll(/`([a-z-]+)`/g)].map(([, file]) => file ?? ''),
    ),
  );
  const records = new Set<string>();
  for (const name of sources) {
    const text = readFileSync(join(root, 'src', name), 'utf8');
    for (const [, file = ''] of text.matchAll(/stateDir\}\/([a-z.-]+)/g)) records.add(file);
    for (const [, file = ''] of text.matchAll(/ = file\('([a-z-]+)'/g)) records.add(file);
  }
  for (const file of noRecord) expect(records.delete(file), file).toBe(true);
  expect([...rows].sort()).toEqual([...records].sort());
});

/** In the state directory, and nothing is lost with it. */
const noRecord = ['reserve', 'config.last-good'];

test('chapters that name another one name one that is there', () => {
  const body = runbook.replaceAll(/```[\s\S]*?```/g, '');
  const linked = [...body.matchAll(/"((?:a|an|the|data|founding|state) [a-z ]+)"/g)].map(([, title]) => title ?? '');
  const own = linked.filter((title) => !said.has(title));
  expect(own.length).toBeGreaterThan(5);
  for (const title of own) expect(chapters).toContain(title);
});

/** What the agent says, in quotes: no chapter. */
const said = new Set(['the cluster would lose its quorum']);
