/**
 * Draws docs/states.md from the transition table of src/supervisor/machine.ts.
 *
 *   scripts/node scripts/draw-states.ts [--check]     --check: changes nothing, ends with 1 if the page is stale
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Event, onEnter, type State, transitions } from '../src/supervisor/machine.ts';

const page = join(import.meta.dirname, '../docs/states.md');
const states = Object.keys(transitions) as State[];
const events = Object.keys(transitions.idle) as Event[];

const drawn = `# States of the supervised child

Drawn from \`src/supervisor/machine.ts\` by \`scripts/draw-states.ts\`; change the table, then draw anew.

\`\`\`mermaid
stateDiagram-v2
  [*] --> idle
${states.flatMap((from) => arrowsFrom(from)).join('\n')}
\`\`\`

${table()}

\`·\` changes nothing; \`bug\` cannot happen: the agent ends with an InvariantError, is started anew and adopts the child.

${aligned([['on entering', 'the shell does'], ...states.map((state) => [state, onEnter[state].join(', ') || 'nothing'])])}

A restart is no state: an end is told to the agent, whose plan begins the next life (\`src/supervisor/restart-policy.ts\`).
`;

if (process.argv.includes('--check')) {
  if (readFileSync(page, 'utf8') !== drawn) {
    console.error('draw-states: docs/states.md is stale; run scripts/node scripts/draw-states.ts');
    process.exit(1);
  }
  console.log('draw-states: docs/states.md is fresh');
} else {
  writeFileSync(page, drawn);
}

/** One arrow for each target, with all the events that lead there. */
function arrowsFrom(from: State): string[] {
  return states.flatMap((to) => {
    const labels = events.filter((event) => transitions[from][event] === to);
    return labels.length === 0 ? [] : [`  ${from} --> ${to}: ${labels.join(', ')}`];
  });
}

function table(): string {
  const rows = states.map((state) => [
    `**${state}**`,
    ...events.map((event) => transitions[state][event].replace('same', '·')),
  ]);
  return aligned([['', ...events], ...rows]);
}

/** A table as the formatter wants it: each column as wide as its widest cell. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}
