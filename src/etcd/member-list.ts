import { status } from '@grpc/grpc-js';
import type { Member as WireMember } from '../../proto/gen/etcd/cluster_pb.ts';
import type { ResponseHeader } from '../../proto/gen/etcd/header_pb.ts';
import { EtcdCallError } from './call.ts';
import type { ClusterId, Member, MemberId, MemberList } from './member.ts';

/** Who answered a call, and when in the history of the cluster. */
export interface AnswerHeader {
  readonly clusterId: ClusterId;
  readonly memberId: MemberId;
  /** Revision of the key space. */
  readonly revision: bigint;
  readonly raftTerm: bigint;
}

/** The header of an answer. Throws EtcdCallError (INTERNAL) if it names no cluster or no member: then it is not etcd's. */
export function answerHeader(endpoint: string, call: string, header: ResponseHeader | undefined): AnswerHeader {
  if (header === undefined || header.clusterId === 0n || header.memberId === 0n) {
    const details = 'the answer names no cluster or no member';
    throw new EtcdCallError({ call, endpoint, grpcCode: status.INTERNAL, details });
  }
  const { clusterId, memberId, revision, raftTerm } = header;
  return { clusterId, memberId, revision, raftTerm };
}

/** A member as etcd's API gives it. */
export function memberOf({ id, name, peerUrls, clientUrls, isLearner }: WireMember): Member {
  return { id, name, peerUrls: [...peerUrls], clientUrls: [...clientUrls], isLearner };
}

/** A list with the header of its answer, ordered by id: two equal lists are equal whoever answered. */
export function memberListOf(header: AnswerHeader, members: readonly WireMember[], linearizable: boolean): MemberList {
  return {
    clusterId: header.clusterId,
    answeredBy: header.memberId,
    members: sortedById(members.map(memberOf)),
    linearizable,
  };
}

/** Ordered by id. */
export function sortedById(members: readonly Member[]): readonly Member[] {
  return members.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}
