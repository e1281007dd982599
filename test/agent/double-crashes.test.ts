// Goal: A01 to A06, A20 the same as crash-points.test.ts asks, when more goes wrong: the agent dies in the midst of an effect, dies
// again in the recovery, or the whole machine loses its power with writes that no fsync had confirmed.
// Method: a seeded sample of the crash points of each flow.
//
//   ETCD_TEST_VERSIONS=all   every crash point
//   SEED=…                   other samples
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../support/seeded-random.ts';
import type { CrashPlan, Passed } from '../support/simulated-fleet/crash.ts';
import type { Flow } from '../support/simulated-fleet/flow.ts';
import { flows } from '../support/simulated-fleet/flows.ts';
import { crashPointsOf, plansFor, sweep } from '../support/simulated-fleet/sweep.ts';

const everything = process.env['ETCD_TEST_VERSIONS'] === 'all';
const seed = Number(process.env['SEED'] ?? 1);
/** Runs of each kind for each flow. */
const sample = everything ? Number.POSITIVE_INFINITY : 3;

const kinds: Readonly<
  Record<string, (points: readonly Passed[], random: SeededRandom) => readonly (readonly CrashPlan[])[]>
> = {
  'a kill within an effect': (points, random) => plansFor(points, 'within', 'kill', random).map((plan) => [plan]),
  'a power loss within an effect': (points, random) =>
    plansFor(points, 'within', 'powerLoss', random).map((plan) => [plan]),
  'a power loss after an effect': (points, random) =>
    plansFor(points, 'after', 'powerLoss', random).map((plan) => [plan]),
  'a second crash in the recovery': (points, random) => {
    const first = plansFor(points, 'after', 'kill', random);
    const second = plansFor(points, 'within', 'powerLoss', random);
    return first.map((plan, index) => [plan, again(plan, second.slice(index), random)]);
  },
};

describe.each(flows.map((flow) => [flow.name, flow] as const))('%s', (_name, flow) => {
  test.each(Object.entries(kinds))(
    'it converges after %s',
    async (_kind, plansOf) => {
      const random = new SeededRandom(seed);
      const runs = pick(plansOf(await crashPointsOf(flow, seed), random), random);
      expect(await failuresOf(flow, runs)).toEqual([]);
    },
    600_000,
  );
});

/** The next agent dies as well, at one of the next effects that the flow has on this node, or at the same again. */
function again(first: CrashPlan, later: readonly CrashPlan[], random: SeededRandom): CrashPlan {
  const next = later.filter(({ node }) => node === first.node).slice(0, 4);
  const second = next[random.below(next.length)] ?? first;
  // The next agent does the interrupted effect anew: that passing is one more.
  const isSame = second.effect === first.effect && second.occurrence === first.occurrence;
  return isSame ? { ...second, occurrence: first.occurrence + 1 } : second;
}

function pick<T>(all: readonly T[], random: SeededRandom): readonly T[] {
  const left = [...all];
  const picked: T[] = [];
  while (left.length > 0 && picked.length < sample) picked.push(...left.splice(random.below(left.length), 1));
  return picked;
}

async function failuresOf(flow: Flow, runs: readonly (readonly CrashPlan[])[]): Promise<readonly string[]> {
  const { failures } = await sweep(flow, seed, runs);
  return failures.map(({ crashes, error }) => `${crashes}: ${String(error)}`);
}
