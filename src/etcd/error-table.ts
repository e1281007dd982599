/** A gRPC status → the error class of ours that names it. */

import * as errors from './errors.ts';

type ErrorClass = new (failed: errors.FailedCall, grpc: errors.GrpcFailure, cause?: unknown) => errors.EtcdError;

/** @pure The error for a failed call. `cause` is what the transport threw. */
export function etcdErrorFrom(failed: errors.FailedCall, grpc: errors.GrpcFailure, cause?: unknown): errors.EtcdError {
  const byText = texts.find(([part]) => grpc.details.includes(part))?.[1];
  const named = byText ?? transportClass(grpc) ?? byCode.get(grpc.code) ?? errors.OtherEtcdError;
  return new named(failed, grpc, cause);
}

/** @pure Whether a change that failed so can have been applied. What is no failure of etcd's is unknown. */
export function outcomeOf(error: unknown): errors.Outcome {
  return error instanceof errors.EtcdError ? error.outcome : 'unknown';
}

/** Parts of etcd's texts, special ones first. Source: docs/etcd-facts.md, "cluster API". */
const texts: readonly (readonly [string, ErrorClass])[] = [
  ['etcdserver: member not found', errors.MemberNotFoundError],
  ['can only promote a learner member which is in sync with leader', errors.LearnerNotReadyError],
  ['etcdserver: can only promote a learner member', errors.NotALearnerError],
  ['too many learner members in cluster', errors.TooManyLearnersError],
  ['etcdserver: Peer URLs already exists', errors.PeerUrlExistsError],
  ['etcdserver: member ID already exist', errors.MemberExistsError],
  ['etcdserver: given member URLs are invalid', errors.BadPeerUrlError],
  ['etcdserver: unhealthy cluster', errors.UnhealthyClusterError],
  ['re-configuration failed due to not enough started members', errors.NotEnoughStartedMembersError],
  ['etcdserver: not leader', errors.NotLeaderError],
  ['etcdserver: bad leader transferee', errors.BadTransfereeError],
  ['etcdserver: no leader', errors.NoLeaderError],
  ['database space exceeded', errors.NoSpaceError],
  ['etcdserver: no space', errors.NoSpaceError],
  ['etcdserver: corrupt cluster', errors.CorruptClusterError],
  ['required revision has been compacted', errors.RevisionUnavailableError],
  ['required revision is a future revision', errors.RevisionUnavailableError],
  ['etcdserver: leader changed', errors.LeaderChangedError],
  ['etcdserver: server stopped', errors.ServerStoppedError],
  ['raft: stopped', errors.ServerStoppedError],
  ['etcdserver: request timed out', errors.RequestTimedOutError],
  ['raft proposal dropped', errors.ProposalDroppedError],
  ['etcdserver: too many requests', errors.TooManyRequestsError],
  ['rpc not supported for learner', errors.LearnerRefusesError],
  ['etcdserver: user name is empty', errors.AuthRequiredError],
  ['etcdserver: user name not found', errors.AuthRequiredError],
  ['etcdserver: permission denied', errors.AuthRequiredError],
  ['etcdserver: invalid auth token', errors.AuthRequiredError],
  ['etcdserver: authentication failed', errors.AuthRequiredError],
  ['etcdserver: authentication is not enabled', errors.BadRequestError],
  ['etcdserver: revision of auth store is old', errors.AuthRequiredError],
  ['downgrade', errors.DowngradeRefusedError],
  ['context deadline exceeded', errors.DeadlineExceededError],
  ['context canceled', errors.CancelledError],
  ['etcdserver: request cancelled', errors.CancelledError],
];

/**
 * UNAVAILABLE from the transport itself. It is certain that nothing was sent only where no connection was made at all; a
 * connection that broke, also during its TLS handshake as the transport words it, leaves the outcome unknown.
 */
function transportClass({ code, details }: errors.GrpcFailure): ErrorClass | undefined {
  if (code !== codes.unavailable) return undefined;
  return neverConnected.test(details) ? errors.UnreachableError : errors.ConnectionLostError;
}

const neverConnected =
  /No connection established|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|Name resolution failed|ENOTFOUND/;

/** gRPC's numbers. */
const codes = {
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  outOfRange: 11,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** Where the text says nothing that we know. */
const byCode: ReadonlyMap<number, ErrorClass> = new Map<number, ErrorClass>([
  [codes.cancelled, errors.CancelledError],
  [codes.invalidArgument, errors.BadRequestError],
  [codes.deadlineExceeded, errors.DeadlineExceededError],
  [codes.permissionDenied, errors.AuthRequiredError],
  [codes.outOfRange, errors.RevisionUnavailableError],
  [codes.unimplemented, errors.UnsupportedCallError],
  [codes.unauthenticated, errors.AuthRequiredError],
]);
