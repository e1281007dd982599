/**
 * Writes docs/failure-modes.md: every effect of every membership flow, what it does, which flows pass it, and what the next
 * agent does when this one was ended there. Names and sentences are those of src/agent/effects.ts; the flows are run.
 *
 *   scripts/node scripts/draw-failure-modes.ts           writes the page
 *   scripts/node scripts/draw-failure-modes.ts --check   ends with 1 if the page is not fresh
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EffectName, effects, recoveries } from '../src/agent/effects.ts';
import { flows } from '../test/support/simulated-fleet/flows.ts';
import { crashPointsOf } from '../test/support/simulated-fleet/sweep.ts';

const page = join(import.meta.dirname, '..', 'docs/failure-modes.md');

const passedBy = new Map<EffectName, Set<number>>();
const counts: number[] = [];
for (const [index, flow] of flows.entries()) {
  const points = await crashPointsOf(flow, 1);
  counts.push(points.length);
  for (const { effect } of points) passedBy.set(effect, (passedBy.get(effect) ?? new Set()).add(index + 1));
}

const names = Object.keys(effects) as EffectName[];
const text = [
  '# Failure modes',
  '',
  'The agent may be killed at any moment, and its machine may lose power. Everything that it does in a membership flow is one of',
  'the effects below; `test/agent/crash-points.test.ts` ends the agent before and after each of them, in every flow, and',
  '`test/agent/double-crashes.test.ts` within them, twice in a row, and by a power loss. Each time the next agent goes on by itself',
  'to the same end: at most one member for each node, at most one etcd for each data directory, no data deleted, the removal',
  'reported once, no learner and no change record left behind. This page is made by `scripts/draw-failure-modes.ts`.',
  '',
  '| flow | crash points |',
  '| --- | --- |',
  ...flows.map(({ name }, index) => `| ${index + 1}. ${name} | ${counts[index]} |`),
  '',
  '| effect | what it does | in flows | after a crash there the next agent |',
  '| --- | --- | --- | --- |',
  ...names.map((name) => `| \`${name}\` | ${effects[name]} | ${flowsOf(name)} | ${afterIt(recoveries[name])} |`),
  '',
].join('\n');

if (process.argv.includes('--check')) {
  if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
    console.error('docs/failure-modes.md is not fresh: run scripts/node scripts/draw-failure-modes.ts');
    process.exit(1);
  }
} else {
  writeFileSync(page, text);
}
console.log(`failure modes: ${names.length} effects, ${counts.reduce((sum, count) => sum + count, 0)} crash points`);

function flowsOf(name: EffectName): string {
  const passing = passedBy.get(name);
  return passing === undefined ? 'none yet' : [...passing].join(', ');
}

/** `It adds again: …` → `adds again: …` */
function afterIt(sentence: string): string {
  return sentence.replace(/^It /, '').replace(/\.$/, '').replaceAll('|', '\\|');
}
