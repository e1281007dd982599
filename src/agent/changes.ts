/** @pure file: last reported + seen → what to report of the membership. */

import type { Member, MemberId, MemberList } from '../etcd/member.ts';
import { formatId, sameUrls } from '../etcd/member.ts';
import type { AgentEvent, ReportedMember } from './events.ts';
import type { Reported } from './reported.ts';

/**
 * @pure The membership changes between what was reported and a linearizable `list`, in the order: added, promoted, URLs
 * changed, removed. The own member's removal is not among them: it needs proof, and is reported by its own step.
 */
export function membershipChanges(
  reported: Reported,
  list: MemberList,
  self: MemberId | undefined,
): readonly AgentEvent[] {
  if (!list.linearizable) return [];
  const before = reported.members ?? {};
  const events: AgentEvent[] = [];
  for (const member of list.members) events.push(...changesOf(before[formatId(member.id)], asReported(member)));
  for (const known of Object.values(before)) {
    const gone = !list.members.some((member) => formatId(member.id) === known.memberId);
    if (!gone || (self !== undefined && known.memberId === formatId(self))) continue;
    events.push({
      kind: 'member.removed',
      member: known,
      self: false,
      evidence: [`the linearizable list of member ${formatId(list.answeredBy)} lacks it`],
    });
  }
  return events;
}

/** @pure A member as it stands in a report. */
export function asReported(member: Member): ReportedMember {
  return { memberId: formatId(member.id), name: member.name, peerUrls: member.peerUrls, learner: member.isLearner };
}

function changesOf(before: ReportedMember | undefined, now: ReportedMember): readonly AgentEvent[] {
  if (before === undefined) return [{ kind: 'member.added', member: now }];
  const events: AgentEvent[] = [];
  if (before.learner && !now.learner) events.push({ kind: 'member.promoted', member: now });
  if (!sameUrls(before.peerUrls, now.peerUrls))
    events.push({ kind: 'member.urlsChanged', member: now, before: before.peerUrls });
  return events;
}
