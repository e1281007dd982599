import type { SeededRandom } from '../seeded-random.ts';
import type { SimulatedFleet } from '../simulated-fleet.ts';
import { type CrashPlan, describeCrash, type Passed } from './crash.ts';
import type { Flow } from './flow.ts';
import { runFlow } from './flows.ts';

/** A run with crashes that did not come out as it should. */
export interface Failure {
  readonly crashes: string;
  readonly error: unknown;
}

export interface SweepResult {
  readonly runs: number;
  readonly failures: readonly Failure[];
  /** Crashes that did not come about: an earlier one in the same run had changed the way. */
  readonly missed: readonly CrashPlan[];
  /** How many agents died in all. */
  readonly deaths: number;
  /** The longest run. Unit: ms of the simulation. */
  readonly longestMs: number;
}

/** The crash points that a flow passes when nothing goes wrong, in order. */
export async function crashPointsOf(flow: Flow, seed: number): Promise<readonly Passed[]> {
  return (await runFlow(flow, seed, () => {})).passed;
}

/** A crash at one moment of each effect that was passed; an effect that failed was passed only before it. */
export function plansFor(
  passed: readonly Passed[],
  moment: CrashPlan['moment'],
  how: CrashPlan['how'],
  random: SeededRandom,
): readonly CrashPlan[] {
  const there = passed.filter((one) => one.moment === (moment === 'after' ? 'after' : 'before'));
  return there.map(({ node, effect, occurrence }) => ({
    node,
    effect,
    occurrence,
    moment,
    how,
    depth: 1 + random.below(6),
  }));
}

/** @pure Runs in which the agent of each node dies once: as few as there are crashes on the node that has most. */
export function onceOnEachNode(plans: readonly CrashPlan[]): readonly (readonly CrashPlan[])[] {
  const byNode = Map.groupBy(plans, ({ node }) => node);
  const most = Math.max(0, ...[...byNode.values()].map(({ length }) => length));
  return Array.from({ length: most }, (_none, index) => [...byNode.values()].flatMap((list) => list[index] ?? []));
}

/** Runs the flow once for each list of crashes. */
export async function sweep(
  flow: Flow,
  seed: number,
  crashes: readonly (readonly CrashPlan[])[],
): Promise<SweepResult> {
  const failures: Failure[] = [];
  const missed: CrashPlan[] = [];
  let [longestMs, deaths] = [0, 0];
  for (const plans of crashes) {
    let fleet: SimulatedFleet | undefined;
    try {
      await runFlow(flow, seed, (one) => {
        fleet = one;
        for (const plan of plans) one.crashAt(plan);
      });
      missed.push(...plans.filter((plan) => fleet?.crashes.includes(plan) !== true));
    } catch (error) {
      failures.push({ crashes: plans.map(describeCrash).join('; '), error });
    }
    longestMs = Math.max(longestMs, fleet?.sim.clock.monotonicMs() ?? 0);
    deaths += fleet?.crashes.length ?? 0;
  }
  return { runs: crashes.length, failures, missed, deaths, longestMs };
}

/** The same, with every crash that was missed tried again in a run of its own. */
export async function sweepAll(flow: Flow, seed: number, plans: readonly CrashPlan[]): Promise<SweepResult> {
  const together = await sweep(flow, seed, onceOnEachNode(plans));
  const alone = await sweep(
    flow,
    seed,
    together.missed.map((plan) => [plan]),
  );
  return {
    runs: together.runs + alone.runs,
    failures: [...together.failures, ...alone.failures],
    missed: alone.missed,
    deaths: together.deaths + alone.deaths,
    longestMs: Math.max(together.longestMs, alone.longestMs),
  };
}
