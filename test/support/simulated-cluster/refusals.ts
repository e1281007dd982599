/** etcd's own words and gRPC's numbers for each refusal, by version. Source: docs/etcd-facts.md, "cluster API". */
import { status } from '@grpc/grpc-js';

/** What a call ends with when it does not end well. */
export interface Refusal {
  readonly code: number;
  readonly details: string;
}

export const refusals = {
  badPeerUrl: refusal(status.INVALID_ARGUMENT, 'etcdserver: given member URLs are invalid'),
  badTransferee: refusal(status.FAILED_PRECONDITION, 'etcdserver: bad leader transferee'),
  leaderChanged: refusal(status.UNAVAILABLE, 'etcdserver: leader changed'),
  learnerNotReady: refusal(
    status.FAILED_PRECONDITION,
    'etcdserver: can only promote a learner member which is in sync with leader',
  ),
  memberExists: refusal(status.FAILED_PRECONDITION, 'etcdserver: member ID already exist'),
  memberNotFound: refusal(status.NOT_FOUND, 'etcdserver: member not found'),
  noLeader: refusal(status.UNAVAILABLE, 'etcdserver: no leader'),
  notALearner: refusal(status.FAILED_PRECONDITION, 'etcdserver: can only promote a learner member'),
  // The source gives this one no status of its own.
  notEnoughStarted: refusal(status.UNKNOWN, 'etcdserver: re-configuration failed due to not enough started members'),
  notLeader: refusal(status.FAILED_PRECONDITION, 'etcdserver: not leader'),
  peerUrlExists: refusal(status.FAILED_PRECONDITION, 'etcdserver: Peer URLs already exists'),
  proposalDropped: refusal(status.UNKNOWN, 'raft proposal dropped'),
  requestTimedOut: refusal(status.UNAVAILABLE, 'etcdserver: request timed out'),
  serverStopped: refusal(status.UNAVAILABLE, 'etcdserver: server stopped'),
  tooManyLearners: refusal(status.FAILED_PRECONDITION, 'etcdserver: too many learner members in cluster'),
  unhealthy: refusal(status.UNAVAILABLE, 'etcdserver: unhealthy cluster'),
  connectionLost: refusal(status.UNAVAILABLE, 'read ECONNRESET'),
} as const;

/** A learner serves nearly nothing: UNAVAILABLE until 3.5, FAILED_PRECONDITION since 3.6. */
export function learnerRefuses(version: Version): Refusal {
  const code = isAtLeast(version, [3, 6, 0]) ? status.FAILED_PRECONDITION : status.UNAVAILABLE;
  return refusal(code, 'etcdserver: rpc not supported for learner');
}

/** A proposal that found no leader for 7 s: 3.4 gives it no status of its own. */
export function noLeaderInTime(version: Version): Refusal {
  const code = isAtLeast(version, [3, 5, 0]) ? status.DEADLINE_EXCEEDED : status.UNKNOWN;
  return refusal(code, 'context deadline exceeded');
}

export function nobodyListens(url: string): Refusal {
  const address = url.replace(/^https?:\/\//, '');
  return refusal(
    status.UNAVAILABLE,
    `No connection established. Last error: Error: connect ECONNREFUSED ${address}. Resolution note: `,
  );
}

export function deadlineExceeded(deadlineMs: number): Refusal {
  return refusal(status.DEADLINE_EXCEEDED, `Deadline exceeded after ${(deadlineMs / 1_000).toFixed(3)}s`);
}

/** The server saw the client's deadline pass, a moment before the client did, and reset the stream: newer grpc-go does so. */
export const resetAtDeadline = refusal(status.CANCELLED, 'Call cancelled');

/** What etcd itself says when the client's deadline passes while it waits; now and then that is faster than the client. */
export function saidAtDeadline(call: string, version: Version, hasLeader: boolean): Refusal {
  if (call === 'MoveLeader')
    return refusal(status.UNKNOWN, 'etcdserver: request timed out, leader transfer took too long');
  if (call === 'MemberPromote' && !hasLeader) return refusals.noLeader;
  if (call === 'Range' || call === 'MemberList' || !hasLeader) return noLeaderInTime(version);
  return refusals.requestTimedOut;
}

/** major, minor, patch */
export type Version = readonly [number, number, number];

export function versionOf(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split('.').map((part) => Number.parseInt(part, 10));
  return [major, minor, patch];
}

export function isAtLeast(version: Version, than: Version): boolean {
  for (let index = 0; index < 3; index++) {
    const difference = (version[index] ?? 0) - (than[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function refusal(code: number, details: string): Refusal {
  return { code, details };
}
