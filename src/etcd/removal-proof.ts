/** @pure file: was this member removed? Proof, suspicion, or nothing known. */

import type { Evidence } from './evidence.ts';
import { type ClusterId, formatId, type MemberId, type MemberList, memberById } from './member.ts';
import { quorumOf } from './quorum.ts';

/** All that is known about a removal of this member. */
export interface RemovalQuestion {
  /** Undefined if this node does not know who it is. */
  readonly ownId: MemberId | undefined;
  readonly clusterId: ClusterId | undefined;
  readonly evidence: Pick<Evidence, 'ownRemoval' | 'permanentlyRemoved' | 'removedSaidBy' | 'learnerPanic'>;
  /** Our own journalled MemberRemove, or a curator's operation that names our id, was answered OK or read back. */
  readonly ownRemovalJournalled: boolean;
  /** The lists that were answered now, of whomever. */
  readonly lists: readonly MemberList[];
  /** Who had a vote when we last saw the list, this member included if it had one. */
  readonly lastKnownVoters: readonly MemberId[];
}

/** `proven` alone allows a tombstone and an archive. `unknown` is silence, which is never absence. */
export type RemovalProof =
  | { readonly kind: 'proven'; readonly evidence: readonly string[] }
  | { readonly kind: 'suspected'; readonly evidence: readonly string[] }
  | { readonly kind: 'notRemoved'; readonly evidence: readonly string[] }
  | { readonly kind: 'unknown' };

/**
 * @pure Judges whether this member was removed. A quorum of the last-known voters must each say so in a list that a
 * quorum confirmed, or the removal must stand in our own log or journal. One list is no proof, even a linearizable one: a
 * stale member that was forced into a cluster of its own answers with the right cluster id. Where we were one of two voters, lists alone
 * can never prove it. Source: docs/etcd-facts.md, "silent disasters".
 */
export function removalProof(question: RemovalQuestion): RemovalProof {
  const own = provenByOurselves(question);
  if (own !== undefined) return { kind: 'proven', evidence: [own] };
  const { lacking, having } = countedLists(question);
  const voters = new Set(question.lastKnownVoters).size;
  if (voters > 0 && lacking.length >= quorumOf(voters) && having.length === 0) {
    return {
      kind: 'proven',
      evidence: [`the lists of ${namesOf(lacking)} (${lacking.length} of ${voters} voters) lack us`],
    };
  }
  const suspicion = suspicionOf(question, lacking);
  if (having.length > 0 && lacking.length === 0) {
    return { kind: 'notRemoved', evidence: [`the list of ${namesOf(having)} has us`, ...suspicion] };
  }
  if (having.length > 0) suspicion.push(`but the list of ${namesOf(having)} has us`);
  return suspicion.length > 0 ? { kind: 'suspected', evidence: suspicion } : { kind: 'unknown' };
}

function provenByOurselves({ ownId, clusterId, evidence, ownRemovalJournalled }: RemovalQuestion): string | undefined {
  const line = evidence.ownRemoval;
  const ours = line !== undefined && (ownId === undefined || line.memberId === ownId);
  const here = clusterId === undefined || line?.clusterId === undefined || line.clusterId === clusterId;
  if (ours && here) return `its own log applied the removal of ${formatId(line.memberId)}: ${line.text}`;
  return ownRemovalJournalled ? 'our own removal was answered or read back' : undefined;
}

interface CountedLists {
  readonly lacking: readonly MemberId[];
  readonly having: readonly MemberId[];
}

/** Who counts: other last-known voters of our cluster with a list that a quorum confirmed. Each once; who said both counts as having us. */
function countedLists({ ownId, clusterId, lists, lastKnownVoters }: RemovalQuestion): CountedLists {
  if (ownId === undefined || clusterId === undefined) return { lacking: [], having: [] };
  const having = new Set<MemberId>();
  const lacking = new Set<MemberId>();
  for (const list of lists) {
    const counts = list.linearizable && list.clusterId === clusterId && list.answeredBy !== ownId;
    if (!counts || !lastKnownVoters.includes(list.answeredBy)) continue;
    (memberById(list.members, ownId) === undefined ? lacking : having).add(list.answeredBy);
  }
  return { lacking: [...lacking].filter((id) => !having.has(id)), having: [...having] };
}

function suspicionOf({ evidence, ownId, clusterId, lists }: RemovalQuestion, lacking: readonly MemberId[]): string[] {
  const found: string[] = [];
  if (lacking.length > 0) found.push(`the list of ${namesOf(lacking)} lacks us, which is no majority`);
  const views = lists.filter(
    (list) => list.clusterId === clusterId && ownId !== undefined && memberById(list.members, ownId) === undefined,
  );
  const others = views.map((list) => list.answeredBy).filter((id) => !lacking.includes(id));
  if (others.length > 0) found.push(`the local view of ${namesOf(others)} lacks us`);
  if (evidence.permanentlyRemoved) {
    const by = evidence.removedSaidBy.length > 0 ? ` (said by ${namesOf(evidence.removedSaidBy)})` : '';
    found.push(`etcd was told that it is permanently removed${by}`);
  }
  if (evidence.learnerPanic) found.push('etcd did not find itself among the members (IsLocalMemberLearner panic)');
  return found;
}

function namesOf(ids: readonly MemberId[]): string {
  return [...new Set(ids)].map(formatId).join(', ');
}
