/** @pure file: why the curator says no. */

/** The reasons of the contract: `ErrorReason` in proto/curator/v1/error.proto, without the prefix. */
export const errorReasons = [
  'invalidArgument',
  'noIdentity',
  'notAllowed',
  'notFound',
  'deleted',
  'notLeader',
  'leadershipLost',
  'readOnly',
  'noSpace',
  'noQuorum',
  'etcdSilent',
  'badTicket',
  'otherKey',
  'wrongState',
  'nodeSilent',
  'roleDependency',
  'hasRoles',
  'notDecommissioned',
  'operationUnderWay',
  'notDead',
  'leads',
  'learnerSlotTaken',
  'quorumLoss',
  'zeroTolerance',
  'lastVoter',
  'streamForked',
  'reportsMissing',
  'cursorLost',
  'busy',
] as const;
export type ErrorReason = (typeof errorReasons)[number];

/** An expected no. What was refused has changed nothing. */
export interface CuratorRefusal {
  readonly reason: ErrorReason;
  /** One sentence, with its numbers. */
  readonly message: string;
  /** What helps; empty if nothing does. */
  readonly hint: string;
}
