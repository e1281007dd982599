/** @pure file: a risk that somebody accepted, for one member and one member list. */

import { type ClusterId, formatId, type Member, type MemberId, parseId } from './member.ts';

/** Which refusals somebody may override, by the names that a role document carries. */
export type RiskKind =
  /** After a removal not one more voter may fail. */
  | 'zero-tolerance'
  /** While a voter is stopped the others are no quorum, or it is not known whether they are. */
  | 'quorum-loss'
  /** A member is removed although the change record cannot be written, on etcd's own checks alone (NOSPACE). */
  | 'without-record';

/** As it stands in a role document (`accept`), or as a command makes it. */
export interface AcceptedRisk {
  readonly kind: string;
  /** Hex. */
  readonly memberId: string;
  readonly listHash: string;
}

/** SHA-256 of a text (UTF-8), as lower-case hex. Passed in: a pure file has no crypto. */
export type Sha256 = (text: string) => string;

/**
 * @pure Names a member list: the first 16 hex digits of the hash of (cluster id, member ids with learner flags). Names and
 * URLs are left out: they change without a change of quorum.
 */
export function listHash(clusterId: ClusterId, members: readonly Member[], sha256: Sha256): string {
  const lines = members
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, isLearner }) => `${formatId(id)} ${isLearner ? 'learner' : 'voter'}`);
  return sha256([`cluster ${formatId(clusterId)}`, ...lines].join('\n')).slice(0, 16);
}

/** @pure Whether this very risk was accepted: the same kind, member and list. */
export function isAccepted(
  accepted: readonly AcceptedRisk[],
  risk: { readonly kind: RiskKind; readonly memberId: MemberId; readonly listHash: string },
): boolean {
  return accepted.some(
    ({ kind, memberId, listHash }) =>
      kind === risk.kind && parseId(memberId) === risk.memberId && listHash === risk.listHash,
  );
}
