import type { SimulatedFleet } from '../simulated-fleet.ts';

/** One story of roles and orders, from a settled fleet to a settled fleet. It must come out the same whatever dies on the way. */
export interface Flow {
  readonly name: string;
  readonly nodes: readonly string[];
  /** So many of them are members at the beginning. */
  readonly founders: number;
  /** Gives the orders, and waits for the wanted end state. Throws if that does not come. */
  run(fleet: SimulatedFleet): Promise<void>;
}

/** The node that leads now. */
export function leaderOf(fleet: SimulatedFleet): string {
  const leader = fleet.sim.leader();
  if (leader === undefined) throw new Error('nobody leads');
  return leader.name;
}

/** Those that follow the leader now. Throws if there are not two. */
export function followersOf(fleet: SimulatedFleet): readonly [string, string] {
  const [one, other] = without(fleet, leaderOf(fleet)).split(' ');
  if (one === undefined || other === undefined) throw new Error('there are no two followers');
  return [one, other];
}

/** The list of now without one. */
export function without(fleet: SimulatedFleet, name: string): string {
  return fleet.memberNames
    .split(' ')
    .filter((one) => one !== name)
    .join(' ');
}
