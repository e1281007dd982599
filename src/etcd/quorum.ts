/** @pure file: majorities. */

/** @pure How many of `voters` make a quorum: 1 of 1, 2 of 2, 2 of 3, 3 of 4. Throws RangeError below 1. */
export function quorumOf(voters: number): number {
  if (!Number.isInteger(voters) || voters < 1) throw new RangeError(`a cluster of ${voters} voters has no quorum`);
  return Math.floor(voters / 2) + 1;
}

/** @pure How many voters may fail while the rest still makes a quorum: 0 of 1, 0 of 2, 1 of 3. */
export function faultToleranceOf(voters: number): number {
  return voters - quorumOf(voters);
}
