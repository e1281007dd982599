/**
 * Writes docs/errors.md: every error of ours with its code, and what it means, from the doc comments in src.
 *
 *   scripts/node scripts/list-errors.ts           writes the page
 *   scripts/node scripts/list-errors.ts --check   ends with 1 if the page is not fresh
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const page = join(root, 'docs/errors.md');

interface Row {
  readonly code: string;
  readonly meaning: string;
  readonly file: string;
}

const rows = sourceFiles(join(root, 'src'))
  .flatMap(rowsOf)
  .sort((a, b) => (a.code < b.code ? -1 : 1));
const text = [
  '# Errors',
  '',
  'Every error has a code that does not change, a sentence with what was tried, and most have a hint with what helps.',
  'Commands print both; `--output json` gives `{code, message, hint}`. This page is made by `scripts/list-errors.ts`.',
  '',
  '| code | meaning | source |',
  '| --- | --- | --- |',
  ...rows.map(({ code, meaning, file }) => `| \`${code}\` | ${meaning} | \`${file}\` |`),
  '',
].join('\n');

if (process.argv.includes('--check')) {
  if (readFileSync(page, 'utf8') !== text) {
    console.error('docs/errors.md is not fresh: run scripts/node scripts/list-errors.ts');
    process.exit(1);
  }
} else {
  writeFileSync(page, text);
}
console.log(`errors: ${rows.length} codes`);

function rowsOf(file: string): Row[] {
  const source = readFileSync(file, 'utf8');
  const found: Row[] = [];
  for (const match of source.matchAll(
    /^(?:export )?(?:abstract )?class (\w+) extends \w+[\s\S]*?\n {2}(?:override )?readonly code = '([A-Z0-9_]+)'/gm,
  )) {
    found.push({ code: match[2] ?? '', meaning: commentBefore(source, match.index ?? 0), file: relative(root, file) });
  }
  return found;
}

/** The doc comment that ends right before `index`, in one line. */
function commentBefore(source: string, index: number): string {
  const comment = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(source.slice(0, index))?.[1] ?? '';
  return comment
    .replace(/^\s*\*\s?/gm, '')
    .replace(/\{@link ([^}]*)\}/g, '$1')
    .replace(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .trim();
}

function sourceFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}
