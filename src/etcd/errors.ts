/** etcd's refusals, by name. The text is the key: codes differ between versions for a few. Source: docs/etcd-facts.md, "cluster API". */

import { AgentError } from '../base/errors.ts';

/** Whether a call that failed can have changed anything. `refused`: it did not. `unknown`: it may have been, or may yet be, applied: read the list. */
export type Outcome = 'refused' | 'unknown';

/** What was asked of whom, for the message. */
export interface FailedCall {
  /** `MemberAdd`, `Status`, … */
  readonly call: string;
  /** `https://10.0.0.1:2379` */
  readonly endpoint: string;
}

/** A gRPC status as etcd or the transport gave it. */
export interface GrpcFailure {
  readonly code: number;
  readonly details: string;
}

/** Any failure of a call to etcd. */
export abstract class EtcdError extends AgentError {
  /** See {@link Outcome}; decided by the class. */
  abstract readonly outcome: Outcome;
  readonly call: string;
  readonly endpoint: string;
  readonly grpc: GrpcFailure;

  constructor(what: string, hint: string, failed: FailedCall, grpc: GrpcFailure, cause?: unknown) {
    super(`${failed.call} at ${failed.endpoint}: ${what}`, { hint, cause });
    this.call = failed.call;
    this.endpoint = failed.endpoint;
    this.grpc = grpc;
  }
}

/** One kind of failure as a class: its code, its outcome, what it says and what helps. */
function etcdError<Code extends string>(code: Code, outcome: Outcome, what: string, hint = '') {
  return class extends EtcdError {
    readonly code = code;
    readonly outcome = outcome;

    constructor(failed: FailedCall, grpc: GrpcFailure, cause?: unknown) {
      super(what || `${grpc.details} (code ${grpc.code})`, hint, failed, grpc, cause);
    }
  };
}

/** The id is in no list any more, or never was. For a removal this is success. */
export class MemberNotFoundError extends etcdError('ETCD_MEMBER_NOT_FOUND', 'refused', 'there is no such member') {}

/** The learner is behind, or was never started. */
export class LearnerNotReadyError extends etcdError(
  'ETCD_LEARNER_NOT_READY',
  'refused',
  'the learner is not in sync with the leader yet',
  'The agent asks again by itself. If this lasts, compare the raft index of both members.',
) {}

/** The member votes already. For a promotion this is success. */
export class NotALearnerError extends etcdError('ETCD_NOT_A_LEARNER', 'refused', 'the member is no learner') {}

/** The learner slot is taken: one learner per cluster, or `max-learners`. */
export class TooManyLearnersError extends etcdError(
  'ETCD_TOO_MANY_LEARNERS',
  'refused',
  'the cluster has as many learners as it may have',
  'Wait until the other learner votes, or remove it.',
) {}

/** Another member has this peer URL. */
export class PeerUrlExistsError extends etcdError(
  'ETCD_PEER_URL_EXISTS',
  'refused',
  'a member with this peer URL exists',
  'Read the list: it may be our own member from an earlier try.',
) {}

/** The id is taken, which happens only with the same peer URLs within one second. */
export class MemberExistsError extends etcdError('ETCD_MEMBER_EXISTS', 'refused', 'a member with this id exists') {}

/** The peer URL is none: scheme, host and port, no path. */
export class BadPeerUrlError extends etcdError('ETCD_BAD_PEER_URL', 'refused', 'the peer URL is not valid') {}

/** Not enough voters have been connected for 5 s, as seen by the member that was asked. */
export class UnhealthyClusterError extends etcdError(
  'ETCD_UNHEALTHY_CLUSTER',
  'refused',
  'not enough voters have been connected for 5 s',
  'The agent asks again after 5 s. If this lasts, look for the voter that is down.',
) {}

/** Too few voters have ever been started for this change. */
export class NotEnoughStartedMembersError extends etcdError(
  'ETCD_NOT_ENOUGH_STARTED_MEMBERS',
  'refused',
  'the started members that would remain are no quorum',
  'Start or remove the members that were added and never started.',
) {}

/** Only the leader can do this. */
export class NotLeaderError extends etcdError('ETCD_NOT_LEADER', 'refused', 'this member does not lead') {}

/** Leadership cannot go to an unknown member or a learner. */
export class BadTransfereeError extends etcdError(
  'ETCD_BAD_TRANSFEREE',
  'refused',
  'leadership cannot go to this member',
) {}

/** The cluster has no leader. */
export class NoLeaderError extends etcdError(
  'ETCD_NO_LEADER',
  'refused',
  'there is no leader',
  'If this lasts, the quorum is lost. See docs/runbook.md, "a lost quorum".',
) {}

/** The quota of the database is used up: writes are refused until it is compacted, defragmented and disarmed. */
export class NoSpaceError extends etcdError(
  'ETCD_NO_SPACE',
  'refused',
  'the database has reached its quota (alarm NOSPACE)',
  'Compact, defragment each member, then disarm the alarm. See docs/runbook.md, "a full database".',
) {}

/** A member's data differs from the others' (alarm CORRUPT). */
export class CorruptClusterError extends etcdError(
  'ETCD_CORRUPT_CLUSTER',
  'refused',
  'the data of the members differs (alarm CORRUPT)',
  'Find the member whose hash differs and replace it. See docs/runbook.md, "a corrupt member".',
) {}

/** The revision is compacted, or not there yet. */
export class RevisionUnavailableError extends etcdError(
  'ETCD_REVISION_UNAVAILABLE',
  'refused',
  'the revision is compacted or in the future',
) {}

/** The leader changed while the request was under way. */
export class LeaderChangedError extends etcdError('ETCD_LEADER_CHANGED', 'unknown', 'the leader changed meanwhile') {}

/** The member stopped while the request was under way; a member that removes itself says so after the removal took effect. */
export class ServerStoppedError extends etcdError('ETCD_SERVER_STOPPED', 'unknown', 'the member stopped meanwhile') {}

/** etcd gave up after its own 7 s, as it does without a quorum. */
export class RequestTimedOutError extends etcdError(
  'ETCD_REQUEST_TIMED_OUT',
  'unknown',
  'etcd gave up waiting for a quorum',
) {}

/** The leader is being moved and takes no proposals; nothing was proposed. */
export class ProposalDroppedError extends etcdError(
  'ETCD_PROPOSAL_DROPPED',
  'refused',
  'the leader takes no proposals at this moment',
) {}

/** etcd is behind with applying and sheds load; nothing was proposed. */
export class TooManyRequestsError extends etcdError('ETCD_TOO_MANY_REQUESTS', 'refused', 'etcd is overloaded') {}

/** A learner serves nearly nothing. */
export class LearnerRefusesError extends etcdError(
  'ETCD_LEARNER_REFUSES',
  'refused',
  'a learner does not serve this call',
) {}

/** Authentication or authorisation. */
export class AuthRequiredError extends etcdError(
  'ETCD_AUTH_REQUIRED',
  'refused',
  'etcd wants a user that may do this',
  'The cluster has authentication enabled; give the agent a certificate whose CN is a user with the role root.',
) {}

/** A downgrade cannot be done as asked. */
export class DowngradeRefusedError extends etcdError('ETCD_DOWNGRADE_REFUSED', 'refused', '') {}

/** The version does not have this call. */
export class UnsupportedCallError extends etcdError(
  'ETCD_UNSUPPORTED',
  'refused',
  'this etcd does not have the call',
) {}

/** The arguments are wrong. */
export class BadRequestError extends etcdError('ETCD_BAD_REQUEST', 'refused', '') {}

/** No connection was ever made for this call: it was not sent. */
export class UnreachableError extends etcdError('ETCD_UNREACHABLE', 'refused', 'nobody answers there') {}

/** The connection broke while the call was under way. */
export class ConnectionLostError extends etcdError(
  'ETCD_CONNECTION_LOST',
  'unknown',
  'the connection broke meanwhile',
) {}

/** Our own deadline passed. The request may be applied later; a timed-out add usually is. */
export class DeadlineExceededError extends etcdError(
  'ETCD_DEADLINE_EXCEEDED',
  'unknown',
  'there was no answer within the deadline',
) {}

/** We gave up ourselves. */
export class CancelledError extends etcdError('ETCD_CANCELLED', 'unknown', 'the call was cancelled') {}

/** Anything else. */
export class OtherEtcdError extends etcdError('ETCD_ERROR', 'unknown', '') {}
