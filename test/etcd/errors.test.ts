// Goal: each refusal of etcd-facts has a name, and for a change it is certain, or unknown, whether it can have been applied.
import { describe, expect, test } from 'vitest';
import { describeError } from '../../src/base/errors.ts';
import { etcdErrorFrom, outcomeOf } from '../../src/etcd/error-table.ts';
import * as errors from '../../src/etcd/errors.ts';

const from = (code: number, details: string) =>
  etcdErrorFrom({ call: 'MemberAdd', endpoint: 'http://h:1' }, { code, details });

// code, text, class, outcome; the codes are those that were seen.
const seen: readonly (readonly [number, string, keyof typeof errors, errors.Outcome])[] = [
  [5, 'etcdserver: member not found', 'MemberNotFoundError', 'refused'],
  [9, 'etcdserver: can only promote a learner member which is in sync with leader', 'LearnerNotReadyError', 'refused'],
  [9, 'etcdserver: can only promote a learner member', 'NotALearnerError', 'refused'],
  [9, 'etcdserver: too many learner members in cluster', 'TooManyLearnersError', 'refused'],
  [9, 'etcdserver: Peer URLs already exists', 'PeerUrlExistsError', 'refused'],
  [3, 'etcdserver: given member URLs are invalid', 'BadPeerUrlError', 'refused'],
  [14, 'etcdserver: unhealthy cluster', 'UnhealthyClusterError', 'refused'],
  [
    2,
    'etcdserver: re-configuration failed due to not enough started members',
    'NotEnoughStartedMembersError',
    'refused',
  ],
  [9, 'etcdserver: not leader', 'NotLeaderError', 'refused'],
  [9, 'etcdserver: bad leader transferee', 'BadTransfereeError', 'refused'],
  [14, 'etcdserver: no leader', 'NoLeaderError', 'refused'],
  [8, 'etcdserver: mvcc: database space exceeded', 'NoSpaceError', 'refused'],
  [15, 'etcdserver: corrupt cluster', 'CorruptClusterError', 'refused'],
  [11, 'etcdserver: mvcc: required revision has been compacted', 'RevisionUnavailableError', 'refused'],
  [14, 'etcdserver: leader changed', 'LeaderChangedError', 'unknown'],
  [14, 'etcdserver: server stopped', 'ServerStoppedError', 'unknown'],
  [2, 'raft: stopped', 'ServerStoppedError', 'unknown'],
  [14, 'etcdserver: request timed out', 'RequestTimedOutError', 'unknown'],
  [14, 'etcdserver: request timed out, possibly due to previous leader failure', 'RequestTimedOutError', 'unknown'],
  [2, 'etcdserver: request timed out, leader transfer took too long', 'RequestTimedOutError', 'unknown'],
  [2, 'raft proposal dropped', 'ProposalDroppedError', 'refused'],
  [14, 'etcdserver: rpc not supported for learner', 'LearnerRefusesError', 'refused'],
  [9, 'etcdserver: rpc not supported for learner', 'LearnerRefusesError', 'refused'],
  [3, 'etcdserver: user name is empty', 'AuthRequiredError', 'refused'],
  [3, 'etcdserver: invalid downgrade target version', 'DowngradeRefusedError', 'refused'],
  [9, 'etcdserver: cluster has a downgrade job in progress', 'DowngradeRefusedError', 'refused'],
  [12, 'unknown method Downgrade', 'UnsupportedCallError', 'refused'],
  [2, 'context deadline exceeded', 'DeadlineExceededError', 'unknown'],
  [4, 'Deadline exceeded after 0.300s', 'DeadlineExceededError', 'unknown'],
  [1, 'Cancelled on client', 'CancelledError', 'unknown'],
  [14, 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:1', 'UnreachableError', 'refused'],
  [14, 'read ECONNRESET', 'ConnectionLostError', 'unknown'],
  [14, 'Connection dropped', 'ConnectionLostError', 'unknown'],
  [2, 'something that nobody has seen', 'OtherEtcdError', 'unknown'],
];

describe('names', () => {
  test.each(seen)('%i %s is %s, %s', (code, details, name, outcome) => {
    const error = from(code, details);
    expect(error.name).toBe(name);
    expect(outcomeOf(error)).toBe(outcome);
    expect(error.message).toMatch(/^MemberAdd at http:\/\/h:1: ./);
    expect(error.code).toMatch(/^ETCD_[A-Z_]+$/);
  });

  test('each has a code of its own, and each is reached by a text above or is named here', () => {
    const codes = new Map(seen.map(([code, details]) => [from(code, details).name, from(code, details).code]));
    expect(new Set(codes.values()).size).toBe(codes.size);
    const all = Object.keys(errors).filter((name) => name !== 'EtcdError');
    const rare = ['BadRequestError', 'MemberExistsError', 'TooManyRequestsError'];
    expect(all.filter((name) => !codes.has(name)).sort()).toEqual(rare);
  });
});

test('a failure that is none of etcd is unknown: it may have happened after the call was sent', () => {
  expect(outcomeOf(new TypeError('x'))).toBe('unknown');
});

test('the cause is kept, for the chain that is printed once', () => {
  const cause = new Error('14 UNAVAILABLE');
  const error = etcdErrorFrom(
    { call: 'Status', endpoint: 'http://h:1' },
    { code: 14, details: 'Connection dropped' },
    cause,
  );
  expect(describeError(error)).toBe('Status at http://h:1: the connection broke meanwhile: 14 UNAVAILABLE');
});
