/** etcd's own check before a change of membership (`--strict-reconfig-check`), by version. Source: docs/etcd-facts.md, "cluster API". */
import type { MemberId } from '../../../src/etcd/member.ts';
import type { AppliedMember } from './machine.ts';
import { isAtLeast, type Refusal, refusals, type Version } from './refusals.ts';

/** A peer counts as connected only after this time. Unit: ms. */
export const healthIntervalMs = 5_000;
/** A learner is ready at this share of the leader's log. */
export const readyShare = 0.9;

/** The cluster as the member sees it that was asked. */
export interface View {
  readonly version: Version;
  readonly self: MemberId;
  readonly voters: readonly AppliedMember[];
  readonly nowMs: number;
  /** Since when it has been connected to a peer; undefined: it is not. */
  readonly activeSinceMs: (id: MemberId) => number | undefined;
}

/** Why a member is not added now; undefined: it is proposed. */
export function refusalToAdd(view: View, isLearner: boolean): Refusal | undefined {
  if (!isLearner && !isReadyToAdd(view.voters)) return refusals.notEnoughStarted;
  return isConnectedForAdding(view) ? undefined : refusals.unhealthy;
}

/** Why a member is not removed now. An id that is not in the list is refused later, by whoever applies it. */
export function refusalToRemove(view: View, id: MemberId, isLearner: boolean): Refusal | undefined {
  if (isLearner) return undefined;
  const rest = view.voters.filter((voter) => voter.id !== id);
  if (startedOf(rest) < quorumOf(rest.length)) return refusals.notEnoughStarted;
  // One that is down is no part of the quorum that works.
  if (id !== view.self && view.activeSinceMs(id) === undefined) return undefined;
  const needed = 1 + Math.floor((view.voters.length - 1) / 2);
  return connectedOf(view) - 1 < needed ? refusals.unhealthy : undefined;
}

/** Why a learner is not promoted now, once it is in sync. */
export function refusalToPromote(view: View): Refusal | undefined {
  const started = startedOf(view.voters) + 1;
  return started < quorumOf(view.voters.length + 1) ? refusals.notEnoughStarted : undefined;
}

function isReadyToAdd(voters: readonly AppliedMember[]): boolean {
  const started = startedOf(voters);
  // The one exception is how a cluster of one grows.
  if (started === 1 && voters.length === 1) return true;
  return started >= quorumOf(voters.length + 1);
}

/** Up to 3.5.29 and 3.6.10 every voter must be connected; later a majority with the newcomer counted as down. */
function isConnectedForAdding(view: View): boolean {
  const { voters, version } = view;
  const [, minor] = version;
  const byMajority = isAtLeast(version, minor === 6 ? [3, 6, 11] : [3, 5, 30]);
  if (!byMajority) return connectedOf(view) === voters.length;
  return voters.length === 1 || connectedOf(view) >= quorumOf(voters.length + 1);
}

function connectedOf({ voters, self, activeSinceMs, nowMs }: View): number {
  const isConnected = (id: MemberId): boolean => {
    const since = activeSinceMs(id);
    return id === self || (since !== undefined && since < nowMs - healthIntervalMs);
  };
  return voters.filter((voter) => isConnected(voter.id)).length;
}

function startedOf(voters: readonly AppliedMember[]): number {
  return voters.filter((voter) => voter.name !== '').length;
}

/** etcd computes this for an empty list too. */
function quorumOf(count: number): number {
  return Math.floor(count / 2) + 1;
}
