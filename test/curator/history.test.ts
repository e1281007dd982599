import { describe, expect, test } from 'vitest';
import { emptyHistory, learnOwner, loadedHistory, takeFact, withoutMembers } from '../../src/curator/history.ts';
import type { History, HistoryContext } from '../../src/curator/history-draft.ts';
import { type HistoryEntry, maxWitnesses, witnessesOf } from '../../src/curator/history-entry.ts';
import { factsFromList } from '../../src/curator/history-list.ts';
import { inOrder } from '../../src/curator/history-order.ts';
import { keptUrlChanges } from '../../src/curator/history-urls.ts';
import { type NodeReport, readFact } from '../../src/curator/membership-fact.ts';
import type { OperationRecord } from '../../src/curator/records.ts';
import type { Member } from '../../src/etcd/member.ts';

const context: HistoryContext = { storedAt: '2026-01-02T00:00:00.000Z', operations: [] };
const clusterId = 'c1';

/** What a node says, in short: `n1: added b learner #3` is a report of node n1 with order 3. */
function reportOf(text: string, seq: number): NodeReport {
  const match = /^(n\d+)(~?)(?:\/(\w+))?: (\w+) ([0-9a-f]+)(.*)$/.exec(text);
  if (match === null) throw new Error(`not a report: ${text}`);
  const [, nodeId = '', isInferred = '', stream = nodeId, what = '', memberId = '', rest = ''] = match;
  const urls = /(\S+)>(\S+)/.exec(rest);
  const order = /#(\d+)/.exec(rest);
  const peerUrls = [urls?.[2] ?? /at (\S+)/.exec(rest)?.[1] ?? `http://${memberId}`];
  const member = { memberId, name: '', peerUrls, learner: rest.includes('learner') };
  const data = {
    founded: { clusterId, memberId, foundingId: 'f' },
    joined: { clusterId, memberId },
    removed: { member, self: rest.includes('self'), evidence: [] },
    urlsChanged: { member, before: [urls?.[1] ?? ''] },
  }[what] ?? { member };
  return {
    nodeId,
    stream,
    seq,
    kind: what === 'founded' ? 'cluster.founded' : `member.${what}`,
    certainty: isInferred === '' ? 'observed' : 'inferred',
    at: '2026-01-01T00:00:00.000Z',
    clusterId,
    memberId: /own (\w+)/.exec(rest)?.[1] ?? '',
    data: order === null ? data : { ...data, order: Number(order[1]) },
    forked: rest.includes('forked'),
  };
}

function take(history: History, text: string, seq: number, more: HistoryContext = context): History {
  const reading = readFact(reportOf(text, seq));
  if (reading.kind !== 'fact') throw new Error(JSON.stringify(reading));
  const step = takeFact(history, reading.fact, more);
  const again = takeFact(step.history, reading.fact, more);
  expect(again.changed, `${text}, told twice`).toEqual([]);
  expect(inOrder(step.history.entries), 'the places lead to the order').toEqual(step.history.entries);
  return step.history;
}

function told(...texts: readonly string[]): History {
  return texts.reduce((history, text, index) => take(history, text, index + 1), emptyHistory('h', clusterId));
}

/** `founded a`, `added b learner`, `promoted b?`: inferred; in the order of commitment. */
function short({ entries }: History): readonly string[] {
  return entries.map(({ transition, memberId, learner, certainty, peerUrls }) => {
    const words = [transition, memberId, ...(learner ? ['learner'] : [])];
    if (transition === 'urlsChanged') words.push(peerUrls.join());
    return words.join(' ') + (certainty === 'inferred' ? '?' : '');
  });
}

function numbers({ entries }: History): readonly number[] {
  return entries.map(({ number }) => number);
}

function entryOf(history: History, transition: string, memberId: string): HistoryEntry {
  const entry = history.entries.find((one) => one.transition === transition && one.memberId === memberId);
  if (entry === undefined) throw new Error(`no ${transition} ${memberId}`);
  return entry;
}

describe('one entry for each committed change', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    [
      'the life of a member',
      ['n1: added b learner', 'n1: promoted b', 'n1: removed b'],
      ['added b learner', 'promoted b', 'removed b'],
    ],
    [
      'K01 several nodes tell of it, and again',
      ['n1: added b learner', 'n2: added b learner', 'n1: promoted b', 'n2: promoted b', 'n1: promoted b'],
      ['added b learner', 'promoted b'],
    ],
    ['a voter that was added as one', ['n1: added b', 'n2: added b'], ['added b']],
    [
      'a founder, whose member stood in the list before it said so',
      ['n1: added a own a', 'n1: founded a'],
      ['founded a'],
    ],
    ['a founder that said so first', ['n1: founded a', 'n1: added a', 'n2: added a'], ['founded a']],
    ['a learner is no founder, whoever says so', ['n1: added a learner', 'n1: founded a'], ['added a learner']],
    [
      'R09 whoever is promoted was added before, whenever that is told',
      ['n1: promoted b', 'n2: added b learner'],
      ['added b learner', 'promoted b'],
    ],
    ['a promotion alone shows two changes', ['n1: promoted b'], ['added b learner?', 'promoted b']],
    ['a removal alone shows two changes', ['n1: removed b'], ['added b?', 'removed b']],
    [
      'one saw it as a learner, another as a voter: it was promoted',
      ['n1: added b learner', 'n2: added b'],
      ['added b learner', 'promoted b?'],
    ],
    ['the same, the other way round', ['n2: added b', 'n1: added b learner'], ['added b learner', 'promoted b?']],
    [
      'a node that joined came as a learner, and was promoted if it is a voter: nobody else looked in between',
      ['n2: joined b', 'n1: added b', 'n2: added b own b'],
      ['added b learner', 'promoted b?'],
    ],
    ['a node that joined, and is not promoted yet', ['n2: joined b'], ['added b learner?']],
    [
      'the last that was known of a removed one shows that it was promoted',
      ['n1: added b learner', 'n2: removed b', 'n1: removed b learner'],
      ['added b learner', 'promoted b?', 'removed b'],
    ],
    [
      'who knew it as a learner until it was gone says nothing of a promotion',
      ['n1: added b learner', 'n1: removed b learner'],
      ['added b learner', 'removed b'],
    ],
    [
      'and the promotion is seen in the end',
      ['n1: added b learner', 'n2: added b', 'n3: promoted b'],
      ['added b learner', 'promoted b'],
    ],
    [
      'late reports of a member that is gone',
      ['n1: removed b', 'n2: promoted b', 'n2: added b learner', 'n2: removed b'],
      ['added b learner', 'promoted b', 'removed b'],
    ],
  ])('%s', (_title, texts, expected) => {
    expect(short(told(...texts))).toEqual(expected);
  });

  test('a member that is added again is another one', () => {
    const history = told('n1: added b', 'n1: removed b', 'n1: added c learner', 'n1: promoted c');
    expect(short(history)).toEqual(['added b', 'removed b', 'added c learner', 'promoted c']);
  });

  test('what is of another cluster is not of this history', () => {
    const reading = readFact({ ...reportOf('n1: added b', 1), clusterId: 'c2' });
    if (reading.kind !== 'fact') throw new Error(reading.kind);
    const step = takeFact(emptyHistory('h', clusterId), reading.fact, context);
    expect(step).toMatchObject({ changed: [], ignored: 'it is of cluster c2, and this is the history of c1' });
  });
});

describe('who saw it', () => {
  test('the first, then all others in the order of their reports, each once', () => {
    const entry = entryOf(told('n2: added b', 'n1: added b', 'n3: added b', 'n1/again: added b'), 'added', 'b');
    expect(entry.first).toMatchObject({ nodeId: 'n2', seq: 1 });
    expect(entry.confirmed.map(({ nodeId }) => nodeId)).toEqual(['n1', 'n3']);
  });

  test('I26 what was seen wins over what was concluded, and its witness comes first', () => {
    const entry = entryOf(told('n1: removed b', 'n2: added b'), 'added', 'b');
    expect(entry).toMatchObject({ certainty: 'observed', first: { nodeId: 'n2' } });
    expect(entry.confirmed).toMatchObject([{ nodeId: 'n1', certainty: 'inferred' }]);
    const same = entryOf(told('n1~: removed b', 'n1: removed b'), 'removed', 'b');
    expect(same).toMatchObject({ certainty: 'observed', first: { nodeId: 'n1', seq: 2 }, confirmed: [] });
    expect(entryOf(told('n1: removed b', 'n1~: removed b'), 'removed', 'b').certainty).toBe('observed');
  });

  test('a promotion is concluded from who saw the voter', () => {
    expect(entryOf(told('n1: added b learner', 'n2: added b'), 'promoted', 'b').first.nodeId).toBe('n2');
    expect(entryOf(told('n2: added b', 'n1: added b learner'), 'promoted', 'b').first.nodeId).toBe('n2');
  });

  test('so many witnesses and no more', () => {
    const texts = Array.from({ length: maxWitnesses + 5 }, (_, index) => `n${index + 1}: added b`);
    expect(witnessesOf(entryOf(told(...texts), 'added', 'b'))).toHaveLength(maxWitnesses);
  });

  test('the node that runs it: its own reports name it, all its entries learn it', () => {
    const history = told('n1: added b learner', 'n1: promoted b');
    expect(history.entries.map(({ nodeId }) => nodeId)).toEqual(['', '']);
    const step = learnOwner(history, { clusterId, memberId: 'b', nodeId: 'n2' }, context);
    expect(step.changed.map(({ nodeId }) => nodeId)).toEqual(['n2', 'n2']);
    expect(learnOwner(step.history, { clusterId, memberId: 'b', nodeId: 'n9' }, context).changed).toEqual([]);
    expect(learnOwner(history, { clusterId: 'c2', memberId: 'b', nodeId: 'n2' }, context).changed).toEqual([]);
    expect(learnOwner(history, { clusterId, memberId: '', nodeId: 'n2' }, context).changed).toEqual([]);
    expect(entryOf(take(step.history, 'n1: removed b', 9), 'removed', 'b').nodeId).toBe('n2');
    expect(entryOf(told('n1: added b', 'n2: removed b self'), 'removed', 'b').nodeId).toBe('n2');
  });
});

describe('the order', () => {
  test.each<[string, readonly string[], readonly string[], readonly number[]]>([
    [
      'as the changes became known, where nothing is proven',
      ['n1: added b', 'n1: removed a', 'n2: added c'],
      ['added b', 'added a?', 'removed a', 'added c'],
      [1, 2, 3, 4],
    ],
    [
      'the life of one member, whatever is told first',
      ['n1: added b', 'n1: removed b', 'n2: added b learner'],
      ['added b learner', 'promoted b?', 'removed b'],
      [1, 3, 2],
    ],
    [
      'the founders first, by their ids as etcd takes them',
      ['n1: added f', 'n1: added 1a', 'n1: added d', 'n2: founded 1a', 'n1: founded f'],
      ['founded f', 'founded 1a', 'added d'],
      [1, 2, 3],
    ],
    [
      'also where one of them is told of last',
      ['n1: founded f', 'n1: added d', 'n3: founded 2'],
      ['founded 2', 'founded f', 'added d'],
      [3, 1, 2],
    ],
    [
      'as one node saw both, and says so',
      ['n1: added c', 'n1: added b', 'n2: added b #1', 'n2: added c #2'],
      ['added b', 'added c'],
      [2, 1],
    ],
    [
      'the numbers of reports prove nothing: one look finds several changes',
      ['n1: added c', 'n1: added b', 'n2: added b', 'n2: added c'],
      ['added c', 'added b'],
      [1, 2],
    ],
    [
      'nor do changes that were found together',
      ['n1: added c', 'n1: added b', 'n2: added b #1', 'n2: added c #1'],
      ['added c', 'added b'],
      [1, 2],
    ],
    [
      'nor two streams of one node',
      ['n1: added c', 'n1: added b', 'n2: added b #1', 'n2/new: added c #2'],
      ['added c', 'added b'],
      [1, 2],
    ],
    [
      'nor a stream that has forked',
      ['n1: added c', 'n1: added b', 'n2: added b #1 forked', 'n2: added c #2 forked'],
      ['added c', 'added b'],
      [1, 2],
    ],
    [
      'a change that everybody else slept through, told late',
      ['n1: added b #1', 'n1: added d #2', 'n1: added e #3', 'n2: added b #1', 'n2: added c #2', 'n2: added d #3'],
      ['added b', 'added c', 'added d', 'added e'],
      [1, 4, 2, 3],
    ],
    [
      'what was put wrong is mended, and takes with it what must stand before',
      ['n1: added e', 'n1: added d #1', 'n1: promoted d #2', 'n2: promoted d #1', 'n2: added e #2'],
      ['added d learner', 'promoted d', 'added e'],
      [2, 3, 1],
    ],
    [
      'what is concluded has no place of its own: who saw a member go says nothing of when it came',
      ['n1: added c #1', 'n1: removed b #2', 'n3: added b #1', 'n3: added c #2'],
      ['added b', 'added c', 'removed b'],
      [2, 1, 3],
    ],
    [
      'nodes that contradict each other prove nothing',
      ['n1: added b #1', 'n1: added c #2', 'n2: added c #1', 'n2: added b #2'],
      ['added b', 'added c'],
      [1, 2],
    ],
    [
      'nor a node that contradicts the life of a member',
      ['n1: removed b #1', 'n1: added b #2'],
      ['added b', 'removed b'],
      [1, 2],
    ],
  ])('%s', (_title, texts, expected, expectedNumbers) => {
    const history = told(...texts);
    expect(short(history)).toEqual(expected);
    expect(numbers(history)).toEqual(expectedNumbers);
  });

  test('a reader that has the numbers and places finds it, also after members were dropped', () => {
    const history = told(
      ...['n1: added b #1', 'n1: added d #2', 'n1: added e #3', 'n1: removed d #4'],
      ...['n2: added b #1', 'n2: added c #2', 'n2: added d #3'],
    );
    expect(history.entries.map(({ memberId, number, before }) => `${memberId}${number}<${before}`)).toEqual([
      ...['b1<0', 'c5<2', 'd2<0', 'e3<0', 'd4<0'],
    ]);
    const step = withoutMembers(history, ['d'], 10);
    expect(step.dropped).toEqual([2, 4]);
    expect(step.changed.map(({ number, before }) => [number, before])).toEqual([[5, 3]]);
    const stored = [...step.history.entries].sort((a, b) => a.number - b.number);
    expect(loadedHistory({ ...step.history, entries: stored })).toEqual(step.history);
    expect(short(step.history)).toEqual(['added b', 'added c', 'added e']);
    expect(step.history).toMatchObject({ last: 5, forgotten: ['d'] });
  });

  test('K07 a late report of a member that was dropped is no news', () => {
    const { history } = withoutMembers(told('n1: added b', 'n1: removed b'), ['b'], 10);
    const reading = readFact(reportOf('n3: promoted b', 9));
    if (reading.kind !== 'fact') throw new Error(reading.kind);
    const step = takeFact(history, reading.fact, context);
    expect(step).toMatchObject({ history, changed: [], ignored: 'the entries of member b were dropped long ago' });
    expect(withoutMembers(history, ['c', 'd'], 2).history.forgotten).toEqual(['c', 'd']);
  });
});

describe('the changes of the URLs of a member', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['one', ['n1: added b at A', 'n1: urlsChanged b A>B', 'n2: urlsChanged b A>B'], ['added b', 'urlsChanged b B']],
    [
      'back and forth, each time a change',
      ['n1: added b at A', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>A', 'n1: urlsChanged b A>B'],
      ['added b', 'urlsChanged b B', 'urlsChanged b A', 'urlsChanged b B'],
    ],
    [
      'back and forth, seen by two',
      ['n1: added b at A', 'n2: added b at A', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>A', 'n2: urlsChanged b A>B', 'n2: urlsChanged b B>A'], // biome-ignore format: one thought
      ['added b', 'urlsChanged b B', 'urlsChanged b A'],
    ],
    [
      'one that slept through a change tells of two as one, after the others',
      ['n1: added b at A', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>C', 'n2: urlsChanged b A>C'],
      ['added b', 'urlsChanged b B', 'urlsChanged b C'],
    ],
    [
      'and before them',
      ['n2: added b at A', 'n2: urlsChanged b A>C', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>C'],
      ['added b', 'urlsChanged b B', 'urlsChanged b C'],
    ],
    [
      'a node that forgot what it had told tells of nothing new',
      ['n1: added b at A', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>C', 'n1/new: urlsChanged b A>C'],
      ['added b', 'urlsChanged b B', 'urlsChanged b C'],
    ],
    [
      'whoever told of the member first had seen it late',
      ['n2: added b at B', 'n1: urlsChanged b A>B'],
      ['added b', 'urlsChanged b B'],
    ],
    ['a change alone shows that it was added', ['n1: urlsChanged b A>B'], ['added b?', 'urlsChanged b B']],
    [
      'nothing is concluded of what it was before',
      ['n1: added b at A', 'n2: urlsChanged b B>C'],
      ['added b', 'urlsChanged b C'],
    ],
    [
      'when somebody tells of it, it comes before',
      ['n1: added b at A', 'n2: urlsChanged b B>C', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>C'],
      ['added b', 'urlsChanged b B', 'urlsChanged b C'],
    ],
    [
      'a founder whose URLs nobody had told of',
      ['n1: founded a', 'n1: urlsChanged a A>B'],
      ['founded a', 'urlsChanged a B'],
    ],
    [
      'of a member that is gone, told late',
      ['n1: added b at A', 'n1: removed b', 'n2: urlsChanged b A>B'],
      ['added b', 'urlsChanged b B', 'removed b'],
    ],
    [
      'a stream that has forked tells of nothing new by telling it twice',
      ['n1: added b at A', 'n1: urlsChanged b A>B', 'n1: urlsChanged b A>B forked'],
      ['added b', 'urlsChanged b B'],
    ],
    [
      'it does not show that the member was promoted: some etcd take the mark of a learner off with it',
      ['n1: added b learner at A', 'n1: urlsChanged b A>B'],
      ['added b learner', 'urlsChanged b B'],
    ],
    [
      'what is moved takes along the changes before it, as they stand',
      [
        ...['n3: added c', 'n1: added b at A', 'n1: urlsChanged b A>B', 'n1: urlsChanged b B>C'],
        ...['n2: urlsChanged b A>C #1', 'n2: added c #2'],
      ],
      ['added b', 'urlsChanged b B', 'urlsChanged b C', 'added c'],
    ],
    [
      'where it may be a later one, the order of the reporter says nothing of the first',
      [
        ...['n1: added b at A #1', 'n1: urlsChanged b A>B #2', 'n1: urlsChanged b B>A #3', 'n1: urlsChanged b A>B #4'],
        ...['n2: added d #1', 'n2: urlsChanged b A>B #2'],
      ],
      ['added b', 'urlsChanged b B', 'urlsChanged b A', 'urlsChanged b B', 'added d'],
    ],
    [
      'a node that came later tells of the second as if it were the first: it may be that, so it is not another one',
      [
        ...['n1: added b at A #1', 'n1: urlsChanged b A>B #2', 'n1: urlsChanged b B>A #3', 'n1: added c #4'],
        ...['n2: added c #1', 'n2: urlsChanged b A>B #2'],
      ],
      ['added b', 'urlsChanged b B', 'urlsChanged b A', 'added c'],
    ],
  ])('%s', (_title, texts, expected) => {
    expect(short(told(...texts))).toEqual(expected);
  });

  test('so many are kept of one member; what was dropped is not entered again', () => {
    const count = keptUrlChanges + 3;
    const texts = Array.from({ length: count }, (_, index) => `n1: urlsChanged b U${index}>U${index + 1}`);
    let history = told('n1: added b at U0', ...texts);
    expect(history.entries.filter(({ transition }) => transition === 'urlsChanged')).toHaveLength(keptUrlChanges);
    expect(history.last).toBe(count + 1);
    history = take(history, 'n2: urlsChanged b U1>U2', 1);
    expect(history.last).toBe(count + 1);
    history = take(history, `n2: urlsChanged b U${count}>U0`, 1);
    expect(history.last).toBe(count + 2);
  });
});

describe('the operation behind a change', () => {
  const operation = (more: Partial<OperationRecord>): OperationRecord => ({
    operationId: 'o1',
    kind: 'grantRole',
    nodeId: 'n2',
    role: 'consensus-member',
    memberId: null,
    state: 'running',
    steps: [],
    blocked: '',
    hint: '',
    orderedBy: 'operator',
    orderedAt: '2026-01-01T00:00:00.000Z',
    endedAt: null,
    accept: [],
    bypassed: [],
    ...more,
  });

  test.each<[string, Partial<OperationRecord>, readonly string[], string]>([
    ['a grant adds', { memberId: 'b' }, ['n1: added b learner'], 'o1'],
    ['a grant promotes', { memberId: 'b', state: 'done' }, ['n1: added b learner', 'n1: promoted b'], 'o1'],
    ['a grant that does not know its member yet is known by its node', {}, ['n2: joined b'], 'o1'],
    ['but not for another node', {}, ['n3: joined b'], ''],
    ['nor once it is over', { state: 'done' }, ['n2: joined b'], ''],
    ['nor for another member', { memberId: 'c' }, ['n2: joined b'], ''],
    ['a grant that is done removes nothing', { memberId: 'b', state: 'done' }, ['n1: removed b'], ''],
    ['a grant that failed takes its learner out', { memberId: 'b', state: 'failed' }, ['n1: removed b learner'], 'o1'],
    ['a revocation removes', { kind: 'revokeRole', memberId: 'b' }, ['n1: removed b'], 'o1'],
    [
      'a revocation that failed has removed nothing',
      { kind: 'revokeRole', memberId: 'b', state: 'failed' },
      ['n1: removed b'],
      '',
    ],
    ['nobody founds by order', { memberId: 'b' }, ['n1: founded b'], ''],
  ])('%s', (_title, more, texts, expected) => {
    const operations = [operation(more)];
    const history = texts.reduce((before, text, index) => take(before, text, index + 1, { ...context, operations }), emptyHistory('h', clusterId)); // biome-ignore format: one thought
    expect(history.entries.at(-1)?.operationId).toBe(expected);
  });

  test('it is learned with the node, and stays', () => {
    const operations = [operation({})];
    const history = told('n1: added b learner');
    const step = learnOwner(history, { clusterId, memberId: 'b', nodeId: 'n2' }, { ...context, operations });
    expect(step.changed).toMatchObject([{ nodeId: 'n2', operationId: 'o1' }]);
    const later = { ...context, operations: [operation({ operationId: 'o2', memberId: 'b' })] };
    expect(take(step.history, 'n3: added b learner', 2, later).entries).toMatchObject([{ operationId: 'o1' }]);
  });
});

describe('what a report says', () => {
  test.each<[string, Partial<NodeReport>, object]>([
    ['other kinds say nothing', { kind: 'leader.changed' }, { kind: 'none' }],
    ['a removal that is not confirmed is no change', { kind: 'member.removalUnconfirmed' }, { kind: 'none' }],
    ['X08 data that is none', { data: 'member' }, { kind: 'unreadable' }],
    [
      'X08 an id that is none',
      { data: { member: { memberId: '__proto__', peerUrls: [], learner: true } } },
      { kind: 'unreadable' },
    ],
    [
      'no member has id 0',
      { data: { member: { memberId: '0', peerUrls: [], learner: true } } },
      { kind: 'unreadable' },
    ],
    ['a report without a cluster', { clusterId: '' }, { kind: 'unreadable' }],
  ])('%s', (_title, more, expected) => {
    const reading = readFact({ ...reportOf('n1: added b', 7), ...more });
    expect(reading).toMatchObject(expected);
    if (reading.kind === 'unreadable') expect(reading.because).toContain('report n1/7 of node n1 (member.added)');
  });

  test('it may have more than is read', () => {
    const report = reportOf('n1: added b learner #4', 7);
    const data = { ...Object(report.data), evidence: ['a later version'] };
    expect(readFact({ ...report, data })).toMatchObject({
      fact: { what: 'added', learner: true, witness: { order: 4 } },
    });
  });
});

describe('what the list of the curator itself adds', () => {
  const witness = { nodeId: 'n9', at: '2026-01-01T00:00:00.000Z', stream: 'list', seq: 1 };
  const member = (text: string): Member => {
    const [id = '', url = '', learner = ''] = text.split(' ');
    const peerUrls = [url === '' ? `http://${id}` : url];
    return { id: BigInt(`0x${id}`), name: '', peerUrls, clientUrls: [], isLearner: learner === 'learner' };
  };
  const list = (...members: readonly string[]) => ({
    clusterId: 0xc1n,
    answeredBy: 0xan,
    members: members.map(member),
    linearizable: true,
  });

  test.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ['nothing where all is known', ['n1: added a'], ['a'], ['added a']],
    ['members that nobody has told of', ['n1: added a'], ['a', 'b', 'd http://d learner'], ['added a', 'added b?', 'added d learner?']], // biome-ignore format: one thought
    ['a promotion', ['n1: added b learner'], ['b'], ['added b learner', 'promoted b?']],
    ['new URLs', ['n1: added b'], ['b U'], ['added b', 'urlsChanged b U?']],
    ['not of a founder whose URLs nobody has told of', ['n1: founded b'], ['b U'], ['founded b']],
    ['a removal', ['n1: added a', 'n1: added b learner'], ['a'], ['added a', 'added b learner', 'removed b?']],
    [
      'and no more of a member that is gone',
      ['n1: added a', 'n1: removed b'],
      ['a'],
      ['added a', 'added b?', 'removed b'],
    ],
  ])('%s', (_title, texts, members, expected) => {
    let history = told(...texts);
    const facts = factsFromList(history, list(...members), witness);
    for (const fact of facts) history = takeFact(history, fact, context).history;
    expect(short(history)).toEqual(expected);
    expect(factsFromList(history, list(...members), witness), 'all is known now').toEqual([]);
  });

  test('a report of a node confirms it', () => {
    const before = told('n1: added a');
    const [fact] = factsFromList(before, list('a', 'b'), witness);
    if (fact === undefined) throw new Error('no fact');
    const history = take(takeFact(before, fact, context).history, 'n1: added b', 2);
    expect(history.entries.at(-1)).toMatchObject({ certainty: 'observed', first: { nodeId: 'n1' } });
  });

  test('R15 a list that no quorum confirmed, or of another cluster, shows nothing', () => {
    const history = told('n1: added a');
    expect(factsFromList(history, { ...list(), linearizable: false }, witness)).toEqual([]);
    expect(factsFromList(history, { ...list('b'), clusterId: 0xc2n }, witness)).toEqual([]);
  });

  test('a member whose entries were dropped is no news', () => {
    const { history } = withoutMembers(told('n1: added b', 'n1: removed b'), ['b'], 10);
    expect(factsFromList(history, list('b'), witness)).toEqual([]);
  });
});
