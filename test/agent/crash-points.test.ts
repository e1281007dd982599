// Goal: A01 to A06 an agent that is killed at any effect of any flow is followed by one that goes on by itself to the same end:
// one member for each node, one etcd for each data directory, no data gone, each removal reported once, no learner and no
// change record left behind.
// Method: each flow runs once and its crash points are noted; then again with a kill at each of them, before and after every
// effect. Where a flow concerns several nodes, the agent of each dies once in one run. double-crashes.test.ts goes on from here.
//
//   CRASH_POINTS=list   prints every crash point of every flow
import { describe, expect, test } from 'vitest';
import { type EffectName, effects } from '../../src/agent/effects.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { flows } from '../support/simulated-fleet/flows.ts';
import { crashPointsOf, plansFor, sweepAll } from '../support/simulated-fleet/sweep.ts';

const seed = 1;
const passedAnywhere = new Set<EffectName>();

describe.each(flows.map((flow) => [flow.name, flow] as const))('%s', (name, flow) => {
  test('it converges after a kill at each of its crash points', async () => {
    const points = await crashPointsOf(flow, seed);
    for (const { effect } of points) passedAnywhere.add(effect);
    if (process.env['CRASH_POINTS'] === 'list') {
      for (const { node, effect, occurrence, moment } of points) {
        process.stdout.write(`  ${name}: ${node} ${moment} ${effect}#${occurrence}\n`);
      }
    }
    const random = new SeededRandom(seed);
    const plans = (['before', 'after'] as const).flatMap((moment) => plansFor(points, moment, 'kill', random));
    expect(plans).toHaveLength(points.length);
    const { failures, missed, runs, deaths, longestMs } = await sweepAll(flow, seed, plans);
    process.stdout.write(
      `crash points: ${points.length} of "${name}", ${deaths} agents killed in ${runs} runs, the longest ${Math.round(longestMs / 1_000)} s\n`,
    );
    expect(failures.map(({ crashes, error }) => `${crashes}: ${String(error)}`)).toEqual([]);
    expect(missed).toEqual([]);
  }, 400_000);
});

test('every effect is passed by some flow', () => {
  const names = Object.keys(effects) as EffectName[];
  expect(names.filter((name) => !passedAnywhere.has(name))).toEqual([]);
});
