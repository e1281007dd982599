/** @pure file: the members as they show themselves now, for people. */

import type { MembersView, MemberView } from '../agent/control.ts';
import { table } from './table.ts';

/** @pure One line for each member, and the cluster in one sentence. */
export function membersText({ members, voters, quorum, answering, faultTolerance, clusterId }: MembersView): string {
  const head = ['member', 'name', 'role', 'answers', 'agent', 'version', 'db', 'index', 'lag', 'peer urls'];
  const more = faultTolerance === 0 ? 'none more may fail' : `${faultTolerance} more may fail`;
  const sentence = `cluster ${clusterId}: ${voters} voters, quorum ${quorum}, ${answering} answer now, ${more}`;
  return `${table(members.map(rowOf), head)}${sentence}\n`;
}

function rowOf(member: MemberView): readonly string[] {
  const { memberId, name, learner, leader, answers, activity, version, dbSizeBytes, raftAppliedIndex, raftLag } =
    member;
  return [
    memberId,
    name === '' ? '(unstarted)' : name,
    learner ? 'learner' : leader ? 'leader' : 'voter',
    answers === 'counts' ? 'yes' : `no: ${answers}`,
    activity,
    version === '' ? '-' : version,
    dbSizeBytes === null ? '-' : `${(dbSizeBytes / 1024 / 1024).toFixed(1)} MiB`,
    raftAppliedIndex ?? '-',
    raftLag === null ? '-' : String(raftLag),
    member.peerUrls.join(' '),
  ];
}
