import { describe, expect, test } from 'vitest';
import { membershipChanges } from '../../src/agent/changes.ts';
import { nothingReported, type Reported, withFact } from '../../src/agent/reported.ts';
import type { Member, MemberList } from '../../src/etcd/member.ts';

function member(id: bigint, change: Partial<Member> = {}): Member {
  return { id, name: `n${id}`, peerUrls: [`http://127.0.0.${id}:2380`], clientUrls: [], isLearner: false, ...change };
}

function list(members: readonly Member[], linearizable = true): MemberList {
  return { clusterId: 0xcn, answeredBy: members[0]?.id ?? 1n, members, linearizable };
}

/** What is reported for `now`, and the reported state after it. */
function report(before: Reported, now: MemberList, self?: bigint): { kinds: readonly string[]; after: Reported } {
  const events = membershipChanges(before, now, self);
  return { kinds: events.map((event) => event.kind), after: events.reduce(withFact, before) };
}

describe('R08 membership changes by whoever made them', () => {
  test('each change is reported once, in order', () => {
    let { kinds, after } = report(nothingReported, list([member(1n)]));
    expect(kinds).toEqual(['member.added']);
    ({ kinds, after } = report(after, list([member(1n), member(2n, { isLearner: true })])));
    expect(kinds).toEqual(['member.added']);
    ({ kinds, after } = report(after, list([member(1n), member(2n)])));
    expect(kinds).toEqual(['member.promoted']);
    ({ kinds, after } = report(after, list([member(1n), member(2n, { peerUrls: ['http://127.0.0.9:2380'] })])));
    expect(kinds).toEqual(['member.urlsChanged']);
    ({ kinds, after } = report(after, list([member(1n)])));
    expect(kinds).toEqual(['member.removed']);
    expect(report(after, list([member(1n)])).kinds).toEqual([]);
  });

  test('R15 a list that no quorum confirmed is no news', () => {
    const { after } = report(nothingReported, list([member(1n), member(2n)]));
    expect(report(after, list([member(1n)], false)).kinds).toEqual([]);
  });

  test('the own removal needs proof and is not concluded from one list', () => {
    const { after } = report(nothingReported, list([member(1n), member(2n)]));
    expect(report(after, list([member(1n)]), 2n).kinds).toEqual([]);
  });
});
