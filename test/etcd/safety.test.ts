// Goal: no change of membership and no stop is allowed that could cost the quorum; each refusal says why, in numbers.
// Method: a small builder of clusters; a table with every rule; then random clusters against a plain restatement of the rule.
import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AcceptedRisk, listHash } from '../../src/etcd/accepted-risk.ts';
import { formatId, type Member, type MemberId } from '../../src/etcd/member.ts';
import { quorumOf } from '../../src/etcd/quorum.ts';
import { judgeChange, moveTargets } from '../../src/etcd/safety.ts';
import type { Activity, SafetyQuestion, SafetyVerdict, WantedChange } from '../../src/etcd/safety-question.ts';
import { describeSafety } from '../../src/etcd/safety-text.ts';
import type { MemberAnswer } from '../../src/etcd/survivors.ts';
import { parseRole } from '../../src/upstream/role.ts';

const nowMs = 100_000;
const clusterId = 0xc1n;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** How one member of a built cluster is: `l` learner, `u` never started, `-` silent, and so on; the first `v` leads. */
type Kind =
  | 'v'
  | 'silent'
  | 'stale'
  | 'behind'
  | 'otherLeader'
  | 'noLeader'
  | 'early'
  | 'otherCluster'
  | 'saysLearner'
  | 'unstarted'
  | 'learner'
  | 'learnerUnstarted'
  | 'learnerBehind';

function member(index: number, kind: Kind): Member {
  const started = kind !== 'unstarted' && kind !== 'learnerUnstarted';
  return {
    id: BigInt(0xa0 + index),
    name: started ? `n${index}` : '',
    peerUrls: [`http://n${index}:2380`],
    clientUrls: started ? [`http://n${index}:2379`] : [],
    isLearner: kind.startsWith('learner'),
  };
}

function answerOf(index: number, kind: Kind): MemberAnswer | undefined {
  const good: MemberAnswer = {
    memberId: BigInt(0xa0 + index),
    clusterId,
    leader: 0xa1n,
    appliedIndex: 500n,
    isLearner: kind.startsWith('learner') || kind === 'saysLearner',
    askedAtMs: nowMs - 900,
    atMs: nowMs - 800,
  };
  switch (kind) {
    case 'silent':
    case 'unstarted':
    case 'learnerUnstarted':
      return undefined;
    case 'stale':
      return { ...good, askedAtMs: nowMs - 2_500, atMs: nowMs - 2_001 };
    case 'behind':
    case 'learnerBehind':
      return { ...good, appliedIndex: 499n };
    case 'otherLeader':
      return { ...good, leader: 0xa9n };
    case 'noLeader':
      return { ...good, leader: undefined };
    case 'early':
      return { ...good, askedAtMs: nowMs - 1_100 };
    case 'otherCluster':
      return { ...good, clusterId: 0xc2n };
    default:
      return good;
  }
}

function question(kinds: readonly Kind[], wanted: WantedChange, more: Partial<SafetyQuestion> = {}): SafetyQuestion {
  const members = kinds.map((kind, index) => member(index + 1, kind));
  return {
    wanted,
    list: { clusterId, answeredBy: 0xa1n, members, linearizable: true },
    listAtMs: nowMs - 500,
    answers: kinds.flatMap((kind, index) => answerOf(index + 1, kind) ?? []),
    leader: { memberId: 0xa1n, index: 500n, atMs: nowMs - 1_000 },
    nowMs,
    activities: new Map(),
    accepted: [],
    force: false,
    sha256,
    ...more,
  };
}

const n = (index: number): MemberId => BigInt(0xa0 + index);
const remove = (index: number, provenDead = false): WantedChange => ({
  kind: 'remove',
  memberId: n(index),
  provenDead,
});
const down = (index: number): WantedChange => ({ kind: 'down', memberId: n(index) });
const move = (index: number): WantedChange => ({ kind: 'moveLeader', target: n(index) });
const add = (peerUrl = 'http://new:2380'): WantedChange => ({ kind: 'addLearner', peerUrl });
const promote = (index: number, stableForMs = 60_000, agoMs = 500): WantedChange => ({
  kind: 'promote',
  memberId: n(index),
  consent: { stableForMs, atMs: nowMs - agoMs },
});
const promoteUnasked = (index: number): WantedChange => ({ kind: 'promote', memberId: n(index), consent: undefined });

function verdictOf(verdict: SafetyVerdict): string {
  if (verdict.kind === 'refused') return verdict.refusal.kind;
  return verdict.kind === 'allowed' && verdict.handOverFirst ? 'allowed, hands over first' : verdict.kind;
}

type Row = readonly [rule: string, kinds: readonly Kind[], wanted: WantedChange, expected: string];

const rows: readonly Row[] = [
  // removal
  ['K10: the last voter is never removed', ['v'], remove(1), 'lastVoter'],
  ['the last voter is not removed because a learner is there', ['v', 'learner'], remove(1), 'lastVoter'],
  ['4 to 3 needs nothing', ['v', 'v', 'v', 'v'], remove(4), 'allowed'],
  ['5 to 4 needs nothing', ['v', 'v', 'v', 'v', 'v'], remove(5), 'allowed'],
  ['K11: who leads hands over first', ['v', 'v', 'v', 'v'], remove(1), 'allowed, hands over first'],
  ['3 to 2 leaves no tolerance', ['v', 'v', 'v'], remove(3), 'zero-tolerance'],
  ['2 to 1 leaves no tolerance', ['v', 'v'], remove(2), 'zero-tolerance'],
  ['5 with one silent to 4 leaves none either', ['v', 'v', 'v', 'v', 'silent'], remove(4), 'zero-tolerance'],
  ['K12: a healthy one of 3 with one silent stays', ['v', 'v', 'silent'], remove(2), 'quorumOfRest'],
  ['K12: the leader of 3 with one silent stays', ['v', 'v', 'silent'], remove(1), 'quorumOfRest'],
  ['2 with one silent: the other stays', ['v', 'silent'], remove(1), 'quorumOfRest'],
  ['K13: the dead one of 3 goes', ['v', 'v', 'silent'], remove(3, true), 'allowed'],
  ['the silent one of 3 is not known to be dead', ['v', 'v', 'silent'], remove(3), 'zero-tolerance'],
  ['one that answers is not dead, whoever says so', ['v', 'v', 'v'], remove(3, true), 'zero-tolerance'],
  [
    'an unstarted voter of 2 cannot go: 1 of 2 commits nothing; etcd hangs',
    ['v', 'unstarted'],
    remove(1),
    'quorumOfRest',
  ],
  ['a learner goes without arithmetic', ['v', 'silent', 'learner'], remove(3), 'allowed'],
  ['a learner does not carry the rest', ['v', 'silent', 'learner'], remove(1), 'quorumOfRest'],
  ['K01: who is not in the list is removed already', ['v', 'v'], remove(7), 'needless'],
  // who counts
  ['an answer older than 2 s does not count', ['v', 'v', 'stale'], remove(2), 'quorumOfRest'],
  [
    'a survivor that is behind what the leader had reported does not count',
    ['v', 'v', 'behind'],
    remove(2),
    'quorumOfRest',
  ],
  ['one that follows another leader does not count', ['v', 'v', 'otherLeader'], remove(2), 'quorumOfRest'],
  ['one that knows no leader does not count', ['v', 'v', 'noLeader'], remove(2), 'quorumOfRest'],
  ['one that was asked before the leader does not count', ['v', 'v', 'early'], remove(2), 'quorumOfRest'],
  ['N15: one of another cluster does not count', ['v', 'v', 'otherCluster'], remove(2), 'quorumOfRest'],
  ['one that calls itself a learner does not count', ['v', 'v', 'saysLearner'], remove(2), 'quorumOfRest'],
  ['an unstarted voter does not count', ['v', 'v', 'unstarted'], remove(2), 'quorumOfRest'],
  // stop
  ['a single voter needs nobody', ['v'], down(1), 'allowed'],
  ['a single voter that hangs needs nobody', ['silent'], down(1), 'allowed'],
  ['one of 3 stops', ['v', 'v', 'v'], down(3), 'allowed'],
  ['the leader of 3 hands over and stops', ['v', 'v', 'v'], down(1), 'allowed, hands over first'],
  ['a voter stays counted: one of 2 does not stop', ['v', 'v'], down(2), 'quorum-loss'],
  ['one of 3 with one silent does not stop', ['v', 'v', 'silent'], down(2), 'quorum-loss'],
  ['the silent one of 3 may be stopped', ['v', 'v', 'silent'], down(3), 'allowed'],
  ['one of 4 with one silent does not stop', ['v', 'v', 'v', 'silent'], down(2), 'quorum-loss'],
  ['one of 5 with one silent stops', ['v', 'v', 'v', 'v', 'silent'], down(2), 'allowed'],
  ['a learner stops', ['v', 'silent', 'learner'], down(3), 'allowed'],
  ['a learner is none of the others', ['v', 'v', 'learner'], down(2), 'quorum-loss'],
  ['who is no member stops', ['v', 'v'], down(7), 'allowed'],
  // join
  ['a learner is added', ['v', 'v', 'v'], add(), 'allowed'],
  ['a learner is added to a single voter', ['v'], add(), 'allowed'],
  ['a learner is added while one of 3 is silent', ['v', 'v', 'silent'], add(), 'allowed'],
  ['there is one learner slot', ['v', 'v', 'v', 'learner'], add(), 'learnerSlotTaken'],
  ['K17: the address is taken', ['v', 'v', 'learnerUnstarted'], add('http://n3:2380'), 'peerUrlTaken'],
  ['without a quorum nothing is added', ['v', 'silent', 'silent'], add(), 'noQuorum'],
  // promotion
  ['a learner that is in sync, stable and consents votes', ['v', 'v', 'learner'], promote(3), 'allowed'],
  ['1 s is stable', ['v', 'v', 'learner'], promote(3, 1_000), 'allowed'],
  ['less is not', ['v', 'v', 'learner'], promote(3, 999), 'learnerNotStable'],
  ['1 to 2 takes longer', ['v', 'learner'], promote(2, 9_999), 'learnerNotStable'],
  ['10 s are enough for 1 to 2', ['v', 'learner'], promote(2, 10_000), 'allowed'],
  ['nobody spoke for it', ['v', 'v', 'learner'], promoteUnasked(3), 'noConsent'],
  ['its agent spoke too long ago', ['v', 'v', 'learner'], promote(3, 60_000, 2_001), 'noConsent'],
  ['its agent speaks from the future: another clock', ['v', 'v', 'learner'], promote(3, 60_000, -1), 'noConsent'],
  ['K15: a learner that is behind waits', ['v', 'v', 'learnerBehind'], promote(3), 'learnerNotReady'],
  ['a learner that was never started waits', ['v', 'v', 'learnerUnstarted'], promote(3), 'learnerNotReady'],
  ['K16: a voter is promoted already', ['v', 'v'], promote(2), 'needless'],
  ['nobody is promoted that is not in the list', ['v', 'v'], promote(7), 'noSuchMember'],
  ['without a quorum nobody is promoted', ['v', 'silent', 'learner'], promote(3), 'noQuorum'],
  ['3 voters, one silent: the learner carries its part', ['v', 'v', 'silent', 'learner'], promote(4), 'allowed'],
  // leadership
  ['leadership moves to a voter', ['v', 'v', 'v'], move(2), 'allowed'],
  ['K27: not to a learner', ['v', 'v', 'learner'], move(3), 'targetIsLearner'],
  ['K27: not to one that is silent', ['v', 'v', 'silent'], move(3), 'targetDoesNotCount'],
  ['K27: not to one that lags', ['v', 'v', 'behind'], move(3), 'targetDoesNotCount'],
  ['K27: not to one that is gone', ['v', 'v'], move(7), 'noSuchMember'],
  ['who leads need not be asked', ['v', 'v'], move(1), 'needless'],
];

describe('every rule', () => {
  test.each(rows)('%s', (_rule, kinds, wanted, expected) => {
    expect(verdictOf(judgeChange(question(kinds, wanted)))).toBe(expected);
  });

  test.each(rows)('%s: said in one sentence', (_rule, kinds, wanted) => {
    const asked = question(kinds, wanted);
    const text = describeSafety(asked, judgeChange(asked));
    expect(text).not.toMatch(/undefined|\[object|NaN|\n/);
    expect(text).toMatch(/ is (allowed|refused|not needed): /);
  });
});

describe('what the judgement rests on', () => {
  const threeVoters: readonly Kind[] = ['v', 'v', 'v', 'v'];

  test('a list that no quorum confirmed allows nothing but the stop of a single voter', () => {
    for (const wanted of [remove(4), down(4), add(), promote(4), move(2)]) {
      const asked = question(threeVoters, wanted);
      expect(verdictOf(judgeChange({ ...asked, list: { ...asked.list, linearizable: false } }))).toBe(
        'listUnconfirmed',
      );
    }
  });

  test('a list older than 5 s allows nothing, nor does one from another clock', () => {
    expect(verdictOf(judgeChange(question(threeVoters, remove(4), { listAtMs: nowMs - 5_000 })))).toBe('allowed');
    expect(verdictOf(judgeChange(question(threeVoters, remove(4), { listAtMs: nowMs - 5_001 })))).toBe('listOld');
    expect(verdictOf(judgeChange(question(threeVoters, remove(4), { listAtMs: nowMs + 1 })))).toBe('listOld');
  });

  test('without a leader that answered lately and votes, nobody counts', () => {
    const good = question(threeVoters, remove(4));
    expect(verdictOf(judgeChange({ ...good, leader: undefined }))).toBe('noLeader');
    expect(verdictOf(judgeChange({ ...good, leader: { memberId: n(9), index: 1n, atMs: nowMs - 1_000 } }))).toBe(
      'noLeader',
    );
    expect(verdictOf(judgeChange({ ...good, leader: { memberId: n(1), index: 1n, atMs: nowMs - 4_001 } }))).toBe(
      'noLeader',
    );
  });

  test('the newest answer of a member is the one that counts', () => {
    const asked = question(['v', 'v', 'v', 'v'], remove(4));
    const bad = { ...(answerOf(3, 'v') ?? expect.fail()), leader: undefined, atMs: nowMs - 1, askedAtMs: nowMs - 2 };
    expect(verdictOf(judgeChange({ ...asked, answers: [bad, ...asked.answers] }))).toBe('zero-tolerance');
  });

  test('numbers before and after, and why each voter counts or not', () => {
    const verdict = judgeChange(question(['v', 'v', 'v', 'v', 'behind'], remove(4)));
    expect(verdict.numbers).toMatchObject({
      before: { voters: 5, quorum: 3, tolerance: 2, counted: 4 },
      after: { voters: 4, quorum: 3, tolerance: 1, counted: 3 },
    });
    expect(verdict.numbers.voters.map(({ standing }) => standing.kind)).toEqual([
      'counts',
      'counts',
      'counts',
      'goes',
      'behind',
    ]);
  });
});

describe('accepted risks', () => {
  const kinds: readonly Kind[] = ['v', 'v', 'v'];
  const hash = judgeChange(question(kinds, remove(3))).numbers.listHash;
  const risk: AcceptedRisk = { kind: 'zero-tolerance', memberId: formatId(n(3)), listHash: hash };

  test('the very risk, member and list are accepted, and the verdict says so', () => {
    const verdict = judgeChange(question(kinds, remove(3), { accepted: [risk] }));
    expect(verdict).toMatchObject({
      kind: 'allowed',
      overridden: { by: 'accept', refusal: { kind: 'zero-tolerance' } },
    });
  });

  test.each([
    ['another kind', { ...risk, kind: 'quorum-loss' }],
    ['another member', { ...risk, memberId: formatId(n(2)) }],
    ['another list', { ...risk, listHash: '0123456789abcdef' }],
    ['a part of the hash', { ...risk, listHash: hash.slice(0, 8) }],
  ])('%s is not', (_what, accepted) => {
    expect(verdictOf(judgeChange(question(kinds, remove(3), { accepted: [accepted] })))).toBe('zero-tolerance');
  });

  test('an acceptance never overrides a lost quorum or the last voter, and neither does force', () => {
    const lost = question(['v', 'v', 'silent'], remove(2));
    const { listHash: lostHash } = judgeChange(lost).numbers;
    const all = ['zero-tolerance', 'quorum-loss'].map((kind) => ({
      kind,
      memberId: formatId(n(2)),
      listHash: lostHash,
    }));
    expect(verdictOf(judgeChange({ ...lost, accepted: all, force: true }))).toBe('quorumOfRest');
    expect(verdictOf(judgeChange(question(['v'], remove(1), { force: true })))).toBe('lastVoter');
    expect(verdictOf(judgeChange(question(kinds, remove(3), { force: true })))).toBe('zero-tolerance');
  });

  test('a stop is forced or accepted whatever is in doubt, and who leads still hands over', () => {
    const two = question(['v', 'v'], down(1));
    const accepted = [{ kind: 'quorum-loss', memberId: formatId(n(1)), listHash: judgeChange(two).numbers.listHash }];
    expect(judgeChange({ ...two, accepted })).toMatchObject({
      kind: 'allowed',
      handOverFirst: true,
      overridden: { by: 'accept' },
    });
    expect(judgeChange({ ...two, force: true })).toMatchObject({ kind: 'allowed', overridden: { by: 'force' } });
    const blind = { ...two, list: { ...two.list, linearizable: false }, answers: [], leader: undefined };
    expect(verdictOf(judgeChange(blind))).toBe('listUnconfirmed');
    expect(judgeChange({ ...blind, force: true })).toMatchObject({ kind: 'allowed', handOverFirst: false });
  });

  test('the hash does not depend on order, names or addresses, but on ids, votes and cluster', () => {
    const members = [member(1, 'v'), member(2, 'v')];
    const hashOf = (cluster: bigint, list: readonly Member[]) => listHash(cluster, list, sha256);
    const own = hashOf(clusterId, members);
    expect(own).toMatch(/^[0-9a-f]{16}$/);
    expect(hashOf(clusterId, [{ ...member(2, 'v'), name: 'x', peerUrls: [] }, member(1, 'v')])).toBe(own);
    expect(hashOf(clusterId, [member(1, 'v'), member(2, 'learner')])).not.toBe(own);
    expect(hashOf(clusterId, [member(1, 'v')])).not.toBe(own);
    expect(hashOf(0xc2n, members)).not.toBe(own);
  });

  test('the refusal carries what a role document needs to accept it', () => {
    const asked = question(kinds, remove(3));
    const text = describeSafety(asked, judgeChange(asked));
    const named = /to accept that: (\S+) for this member, list ([0-9a-f]+)/.exec(text);
    const document = JSON.stringify({
      nodeId: 'x',
      role: 'leaving',
      grantId: 'g',
      accept: [{ kind: named?.[1], memberId: formatId(n(3)), listHash: named?.[2] }],
    });
    const reading = parseRole(document, 'role');
    if (reading.kind !== 'role') expect.fail(JSON.stringify(reading));
    expect(judgeChange({ ...asked, accepted: reading.role.accept }).kind).toBe('allowed');
  });
});

describe('who takes leadership over', () => {
  const targetsOf = (kinds: readonly Kind[], activities: readonly (readonly [number, Activity])[] = []) =>
    moveTargets(
      question(kinds, move(1), { activities: new Map(activities.map(([index, what]) => [n(index), what])) }),
    ).map(({ name }) => name);

  test('at most two, never the leader, a learner or one that does not count', () => {
    expect(targetsOf(['v', 'v', 'v', 'v', 'v'])).toEqual(['n2', 'n3']);
    expect(targetsOf(['v', 'silent', 'behind', 'learner', 'v'])).toEqual(['n5']);
    expect(targetsOf(['v'])).toEqual([]);
  });

  test('nobody that drains, stops or is paused; whose agent is unknown comes last', () => {
    expect(
      targetsOf(
        ['v', 'v', 'v', 'v', 'v'],
        [
          [2, 'draining'],
          [3, 'stopping'],
          [4, 'paused'],
        ],
      ),
    ).toEqual(['n5']);
    expect(targetsOf(['v', 'v', 'v', 'v'], [[4, 'active']])).toEqual(['n4', 'n2']);
    const asked = question(['v', 'v'], move(2), { activities: new Map([[n(2), 'draining']]) });
    expect(describeSafety(asked, judgeChange(asked))).toBe(
      'moving leadership to n2 (a2) is refused: its agent says that it is draining',
    );
  });

  test('the most caught up comes first', () => {
    const asked = question(['v', 'v', 'v', 'v'], move(2));
    const answers = asked.answers.map((answer) =>
      answer.memberId === n(4) ? { ...answer, appliedIndex: 900n } : answer,
    );
    expect(moveTargets({ ...asked, answers }).map(({ name }) => name)).toEqual(['n4', 'n2']);
  });
});

describe('sentences', () => {
  const sentence = (kinds: readonly Kind[], wanted: WantedChange, more: Partial<SafetyQuestion> = {}) => {
    const asked = question(kinds, wanted, more);
    return describeSafety(asked, judgeChange(asked));
  };

  test('K12: quorum of the rest', () => {
    expect(sentence(['v', 'v', 'silent'], remove(2))).toBe(
      'removing n2 (a2) is refused: 2 voters would remain, of which 2 must answer now and 1 does (n3 (a3) does not answer)',
    );
  });

  test('K10: last voter', () => {
    expect(sentence(['v'], remove(1))).toBe(
      'removing n1 (a1) is refused: it is the last voter, and a cluster without a voter is lost',
    );
  });

  test('K11, K13: numbers before and after', () => {
    expect(sentence(['v', 'v', 'v', 'v'], remove(1))).toBe(
      'removing n1 (a1) is allowed: 4 voters (quorum 3, 1 may fail, 4 answer now) become 3 voters (quorum 2, 1 may fail, 3 answer now); it leads, so leadership is moved first',
    );
    expect(sentence(['v', 'v', 'silent'], remove(3, true))).toBe(
      'removing n3 (a3) is allowed: 3 voters (quorum 2, 1 may fail, 2 answer now) become 2 voters (quorum 2, none may fail, 2 answer now)',
    );
  });

  test('K15 and the slot', () => {
    expect(sentence(['v', 'v', 'learnerBehind'], promote(3))).toBe(
      'promoting n3 (a3) is refused: the learner is behind (applied 499, the leader was at 500)',
    );
    expect(sentence(['v', 'learnerUnstarted'], add())).toBe(
      'adding a learner at http://new:2380 is refused: the unstarted member a2 holds the one learner slot',
    );
  });

  test('a forced stop names what was overridden', () => {
    expect(sentence(['v', 'silent'], down(1), { force: true })).toBe(
      'stopping n1 (a1) is allowed: 2 voters (quorum 2, none may fail, 1 answers now), of which 0 would be up; it leads, so leadership is moved first, though it stays one of 2 voters with quorum 2, so the cluster stands still while it is down (forced)',
    );
  });
});

describe('random clusters', () => {
  const kind = fc.constantFrom<Kind>(
    ...(['v', 'v', 'v', 'silent', 'stale', 'behind', 'otherLeader', 'noLeader', 'early', 'unstarted'] as const),
    ...(['learner', 'learnerUnstarted', 'learnerBehind'] as const),
  );
  const kinds = fc.array(kind, { minLength: 0, maxLength: 7 }).map((rest): readonly Kind[] => ['v', ...rest]);
  const target = fc.integer({ min: 1, max: 8 });
  const live = (built: readonly Kind[], without: number) =>
    built.filter((each, index) => each === 'v' && index + 1 !== without).length;
  const votersIn = (built: readonly Kind[]) => built.filter((each) => !each.startsWith('learner')).length;
  const anyRisk = (asked: SafetyQuestion, index: number): readonly AcceptedRisk[] =>
    ['zero-tolerance', 'quorum-loss'].map((each) => ({
      kind: each,
      memberId: formatId(n(index)),
      listHash: judgeChange(asked).numbers.listHash,
    }));

  test('a removal that is allowed leaves a majority of live voters, whatever was accepted or forced', () => {
    void fc.assert(
      fc.property(kinds, target, fc.boolean(), fc.boolean(), (built, index, dead, force) => {
        const asked = question(built, remove(index, dead), { force });
        const verdict = judgeChange({ ...asked, accepted: anyRisk(asked, index) });
        const goes = built[index - 1];
        if (verdict.kind !== 'allowed' || goes === undefined || goes.startsWith('learner')) return;
        const after = votersIn(built) - 1;
        expect(after).toBeGreaterThan(0);
        expect(live(built, index)).toBeGreaterThanOrEqual(quorumOf(after));
      }),
      { numRuns: 3_000 },
    );
  });

  test('without an acceptance one more of the live voters may fail afterwards, unless the one that goes is dead', () => {
    void fc.assert(
      fc.property(kinds, target, fc.boolean(), (built, index, dead) => {
        const verdict = judgeChange(question(built, remove(index, dead)));
        const goes = built[index - 1];
        if (verdict.kind !== 'allowed' || goes === undefined || goes.startsWith('learner')) return;
        const spare = live(built, index) - quorumOf(votersIn(built) - 1);
        expect(spare > 0 || (dead && goes !== 'v')).toBe(true);
        // And a dead one never makes it worse than it was.
        if (spare === 0) expect(live(built, 0) - quorumOf(votersIn(built))).toBeLessThanOrEqual(0);
      }),
      { numRuns: 3_000 },
    );
  });

  test('a stop that nobody forced leaves a majority of all voters live', () => {
    void fc.assert(
      fc.property(kinds, target, (built, index) => {
        const verdict = judgeChange(question(built, down(index)));
        const goes = built[index - 1];
        if (goes === undefined || goes.startsWith('learner') || votersIn(built) === 1) return;
        expect(verdict.kind === 'allowed').toBe(live(built, index) >= quorumOf(votersIn(built)));
      }),
      { numRuns: 3_000 },
    );
  });

  test('a promotion that is allowed leaves a majority of live voters, the new one among them', () => {
    void fc.assert(
      fc.property(kinds, target, fc.integer({ min: 0, max: 12_000 }), (built, index, stable) => {
        const verdict = judgeChange(question(built, promote(index, stable)));
        if (verdict.kind !== 'allowed') return;
        expect(built[index - 1]).toBe('learner');
        expect(live(built, 0) + 1).toBeGreaterThanOrEqual(quorumOf(votersIn(built) + 1));
        expect(live(built, 0)).toBeGreaterThanOrEqual(quorumOf(votersIn(built)));
        expect(stable).toBeGreaterThanOrEqual(votersIn(built) === 1 ? 10_000 : 1_000);
      }),
      { numRuns: 3_000 },
    );
  });

  test('a learner changes no verdict on a voter', () => {
    void fc.assert(
      fc.property(kinds, target, fc.boolean(), (built, index, stops) => {
        const voters = built.filter((each) => !each.startsWith('learner'));
        if (index > voters.length) return;
        const wanted = stops ? down(index) : remove(index);
        const bare = judgeChange(question(voters, wanted));
        const withLearner = judgeChange(question([...voters, 'learner'], wanted));
        expect(verdictOf(withLearner)).toBe(verdictOf(bare));
      }),
    );
  });

  test('the order of list and answers does not matter', () => {
    void fc.assert(
      fc.property(kinds, target, (built, index) => {
        for (const wanted of [remove(index), down(index), promote(index), move(index)]) {
          const asked = question(built, wanted);
          const turned = {
            ...asked,
            list: { ...asked.list, members: asked.list.members.toReversed() },
            answers: asked.answers.toReversed(),
          };
          expect(verdictOf(judgeChange(turned))).toBe(verdictOf(judgeChange(asked)));
          expect(moveTargets(turned)).toEqual(moveTargets(asked));
        }
      }),
    );
  });
});
