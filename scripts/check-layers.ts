/**
 * Checks who imports whom (CONTRIBUTING.md, "layers") and names the broken line. Ends with 1 if one is broken.
 *
 *   scripts/node scripts/check-layers.ts [ROOT]
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** Folder of src → the folders of ours that it may import. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  base: [],
  pki: ['base'],
  supervisor: ['base', 'pki', 'proto'],
  etcd: ['base', 'pki', 'proto'],
  upstream: ['base', 'pki', 'proto'],
  agent: ['base', 'pki', 'etcd', 'supervisor', 'upstream', 'proto'],
  curator: ['base', 'pki', 'etcd', 'proto'],
  cli: ['base', 'pki', 'etcd', 'supervisor', 'upstream', 'agent', 'curator', 'proto'],
};

/** Text that may stand only in the named place. Comments are left out of the search. */
const onlyIn: readonly { readonly what: string; readonly pattern: RegExp; readonly allowed: RegExp }[] = [
  {
    what: 'child processes are spawned in supervisor/run.ts alone',
    pattern: /from 'node:child_process'|from 'execa'/,
    allowed: /^src\/supervisor\/run\.ts$/,
  },
  {
    what: 'the environment is read in cli/config.ts alone',
    pattern: /process\.env\b/,
    allowed: /^src\/cli\/config\.ts$/,
  },
  { what: 'exit codes are chosen in cli/ alone', pattern: /process\.exit(Code)?\b/, allowed: /^src\/cli\// },
  {
    what: 'time comes from the Clock that a part was given (base/system-clock.ts is the one real one)',
    pattern:
      /\bDate\.now\(|\bDate\(\)|\bsetTimeout\(|\bsetInterval\(|\bperformance\.now\(|\bprocess\.hrtime\b|from 'node:timers/,
    allowed: /^src\/base\/system-clock\.ts$/,
  },
  {
    what: 'randomness comes from the Random that a part was given (base/system-random.ts is the one real one)',
    pattern: /\bMath\.random\(|\brandomBytes\(|\brandomUUID\(/,
    allowed: /^src\/base\/system-random\.ts$/,
  },
];

const root = resolve(process.argv[2] ?? join(import.meta.dirname, '..'));
const problems: string[] = [];
const texts = new Map<string, string>();
for (const file of filesBelow(join(root, 'src'))) texts.set(relative(root, file), readFileSync(file, 'utf8'));
const pureFiles = new Set([...texts].filter(([, text]) => isPure(text)).map(([path]) => path));

for (const [path, text] of texts) checkFile(path, text);

if (problems.length > 0) {
  console.error(problems.join('\n'));
  console.error(`check-layers: ${problems.length} broken line(s)`);
  process.exit(1);
}
console.log(`check-layers: ${texts.size} files, ${pureFiles.size} of them pure, no broken line`);

function checkFile(path: string, text: string): void {
  const folder = path.split('/')[1] ?? '';
  const allowed = mayImport[folder];
  if (allowed === undefined) problems.push(`${path}:1: src/${folder} is not a layer; see mayImport in check-layers`);
  const lines = withoutComments(text).split('\n');
  for (const [index, line] of lines.entries()) {
    const place = `${path}:${index + 1}`;
    for (const rule of onlyIn) {
      if (rule.pattern.test(line) && !rule.allowed.test(path)) problems.push(`${place}: ${rule.what}: ${line.trim()}`);
    }
    const typeOnly = /^\s*import type\b/.test(line);
    for (const match of line.matchAll(/(?:from|import\()\s*'([^']+)'|^import '([^']+)'/g)) {
      checkImport(path, place, folder, allowed ?? [], match[1] ?? match[2] ?? '', typeOnly);
    }
  }
}

function checkImport(
  path: string,
  place: string,
  folder: string,
  allowed: readonly string[],
  specifier: string,
  typeOnly: boolean,
): void {
  const pure = pureFiles.has(path);
  if (!specifier.startsWith('.')) {
    if (pure && !typeOnly && specifier.startsWith('node:')) problems.push(`${place}: a pure file imports ${specifier}`);
    return;
  }
  const target = relative(root, resolve(root, dirname(path), specifier));
  const [top = '', targetFolder = ''] = target.split('/');
  const layer = top === 'proto' ? 'proto' : targetFolder;
  if (top !== 'src' && top !== 'proto') {
    problems.push(`${place}: src imports ${target}; src imports only src and proto`);
  } else if (layer !== folder && !allowed.includes(layer)) {
    problems.push(
      `${place}: ${folder} may not import ${layer} (${target}); it may import: ${allowed.join(', ') || 'nothing'}`,
    );
  }
  // Types vanish at run time, so a pure file may name the types of an impure one.
  if (pure && !typeOnly && top === 'src' && !pureFiles.has(target)) {
    problems.push(`${place}: a pure file imports ${target}, which is not marked @pure`);
  }
}

/** A file is pure when its first comment says so: `@pure` before the first import or export. */
function isPure(text: string): boolean {
  return /^(?:\s|\/\/[^\n]*\n)*\/\*\*?(?:(?!\*\/)[\s\S])*@pure file/.test(text);
}

/** The same text with comments blanked, line numbers kept. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '))
    .replace(/(^|\s)\/\/[^\n]*/g, '$1');
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
