// Goal: only what cannot be a mistake counts as proof of a removal (faults C10, C31; the silent disasters of docs/etcd-facts.md).
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { emptyEvidence } from '../../src/etcd/evidence.ts';
import type { MemberList } from '../../src/etcd/member.ts';
import { quorumOf } from '../../src/etcd/quorum.ts';
import { type RemovalQuestion, removalProof } from '../../src/etcd/removal-proof.ts';
import { mayStartUnconfirmed } from '../../src/etcd/start-rule.ts';

const cluster = 0xc1n;
const us = 3n;

const question: RemovalQuestion = {
  ownId: us,
  clusterId: cluster,
  evidence: emptyEvidence,
  ownRemovalJournalled: false,
  lists: [],
  lastKnownVoters: [1n, 2n, us],
};

function list(answeredBy: bigint, members: readonly bigint[], change: Partial<MemberList> = {}): MemberList {
  const all = members.map((id) => ({ id, name: `n${id}`, peerUrls: [], clientUrls: [], isLearner: false }));
  return { clusterId: cluster, answeredBy, members: all, linearizable: true, ...change };
}

const kindWith = (change: Partial<RemovalQuestion>) => removalProof({ ...question, ...change }).kind;

describe('proof', () => {
  const ownRemoval = { memberId: us, clusterId: cluster, text: 'removed member' };

  test('the applied line in our own log', () => {
    expect(kindWith({ evidence: { ...emptyEvidence, ownRemoval } })).toBe('proven');
  });

  test('the same line about another id or another cluster is none', () => {
    expect(kindWith({ evidence: { ...emptyEvidence, ownRemoval: { ...ownRemoval, memberId: 9n } } })).toBe('unknown');
    expect(kindWith({ evidence: { ...emptyEvidence, ownRemoval: { ...ownRemoval, clusterId: 9n } } })).toBe('unknown');
  });

  test('our own journalled removal, read back', () => {
    expect(kindWith({ ownRemovalJournalled: true })).toBe('proven');
  });

  test('the lists of both others, of three voters', () => {
    expect(kindWith({ lists: [list(1n, [1n, 2n]), list(2n, [1n, 2n])] })).toBe('proven');
  });
});

describe('no proof', () => {
  const one = list(1n, [1n, 2n]);

  test('one list of two: a stale member forced into a cluster of its own says the same', () => {
    expect(kindWith({ lists: [list(1n, [1n])] })).toBe('suspected');
  });

  test('the same voter asked twice', () => {
    expect(kindWith({ lists: [one, one] })).toBe('suspected');
  });

  test('a view that no quorum confirmed', () => {
    expect(kindWith({ lists: [one, list(2n, [1n, 2n], { linearizable: false })] })).toBe('suspected');
  });

  test('lists of another cluster', () => {
    expect(kindWith({ lists: [1n, 2n].map((id) => list(id, [1n, 2n], { clusterId: 9n })) })).toBe('unknown');
  });

  test('lists of learners, strangers, or ourselves', () => {
    expect(kindWith({ lists: [one, list(7n, [1n, 2n]), list(us, [1n, 2n])] })).toBe('suspected');
  });

  test('one list lacks us and another has us', () => {
    expect(kindWith({ lists: [one, list(2n, [1n, 2n, us])] })).toBe('suspected');
    expect(kindWith({ lists: [list(2n, [1n, 2n, us])] })).toBe('notRemoved');
  });

  test('of two voters the other alone can never prove it', () => {
    expect(kindWith({ lastKnownVoters: [1n, us], lists: [list(1n, [1n])] })).toBe('suspected');
  });

  test('"permanently removed", or the panic, alone', () => {
    expect(kindWith({ evidence: { ...emptyEvidence, permanentlyRemoved: true } })).toBe('suspected');
    expect(kindWith({ evidence: { ...emptyEvidence, learnerPanic: true } })).toBe('suspected');
  });

  test('silence is unknown', () => {
    expect(kindWith({})).toBe('unknown');
    expect(kindWith({ ownId: undefined, lists: [one] })).toBe('unknown');
  });

  test('fewer than a quorum of voters never prove it, whatever else is answered', () => {
    const answer = fc.record({ by: fc.bigInt(1n, 9n), has: fc.boolean(), sure: fc.boolean(), here: fc.boolean() });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.array(answer, { maxLength: 12 }), (voters, answers) => {
        const lastKnownVoters = [us, 1n, 2n, 4n, 5n, 6n, 7n].slice(0, voters);
        const lists = answers.map(({ by, has, sure, here }) =>
          list(by, has ? [1n, us] : [1n], { linearizable: sure, clusterId: here ? cluster : 9n }),
        );
        const good = answers.filter(({ by, has, sure, here }) => {
          return !has && sure && here && by !== us && lastKnownVoters.includes(by);
        });
        if (new Set(good.map(({ by }) => by)).size < quorumOf(voters)) {
          expect(removalProof({ ...question, lastKnownVoters, lists }).kind).not.toBe('proven');
        }
      }),
    );
  });
});

describe('a start while the removal is unconfirmed', () => {
  const may = (lists: readonly MemberList[], silentForMs = 0) => {
    return mayStartUnconfirmed({ ownId: us, clusterId: cluster, lists, silentForMs }).start;
  };

  test('is forbidden while an answering list lacks us, also when another has us', () => {
    expect(may([list(1n, [1n])])).toBe(false);
    expect(may([list(2n, [1n, us]), list(1n, [1n])], 99_000)).toBe(false);
  });

  test('is allowed when a list has us', () => expect(may([list(1n, [1n, us])])).toBe(true));

  test('is allowed after 30 s of silence; an answer of another cluster is silence', () => {
    expect(may([], 29_999)).toBe(false);
    expect(may([list(1n, [1n], { clusterId: 9n })], 30_000)).toBe(true);
  });
});
