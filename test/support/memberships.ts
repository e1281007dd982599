import { expect } from 'vitest';
import type { FleetNode } from './fleet.ts';

/** Until the node is a voter of so many, and says so. */
export async function votes(node: FleetNode, members: number): Promise<void> {
  await node.until(
    ({ process, member, cluster, plan }) =>
      process.phase === 'ready' &&
      member?.learner === false &&
      cluster?.members.length === members &&
      plan.kind === 'converged',
    `it votes, as one of ${members}`,
    60_000,
  );
}

/** The acceptance that the refusal of a leave names, for the list of now. */
export async function acceptance(node: FleetNode): Promise<readonly unknown[]> {
  const refusal = await node.post('/v1/leave', { dryRun: true }).then(() => 'it may leave', String);
  const listHash = /list ([0-9a-f]+)/.exec(refusal)?.[1];
  expect(listHash, refusal).toBeDefined();
  return [{ kind: 'zero-tolerance', memberId: (await node.memberId()).toString(16), listHash }];
}
