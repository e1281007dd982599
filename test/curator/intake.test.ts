import { describe, expect, test } from 'vitest';
import { missingIn, openingOf } from '../../src/curator/gap.ts';
import type { IncomingReport } from '../../src/curator/incoming-report.ts';
import { emptyStream, judgeBatch, keptReports, type StreamRecord } from '../../src/curator/intake.ts';
import { answerSession } from '../../src/curator/report-session.ts';

/** `5` and `5b` are two reports of number 5; `g4-9` is a gap. */
function report(text: string): IncomingReport {
  const gap = /^g(\d+)-(\d+)$/.exec(text);
  if (gap !== null) return { seq: Number(gap[2]), fromSeq: Number(gap[1]), id: text, kind: 'outbox.gap', data: {} };
  const seq = Number.parseInt(text, 10);
  return { seq, fromSeq: seq, id: text, kind: 'member.added', data: {} };
}

function batch(texts: string): readonly IncomingReport[] {
  return texts.split(' ').filter(Boolean).map(report);
}

/** A stream of which these were stored, batch by batch. */
function stored(...batches: readonly string[]): StreamRecord {
  return batches.reduce((record, texts) => taken(record, texts).record, emptyStream('s1'));
}

function taken(record: StreamRecord, texts: string, isToday = true) {
  const verdict = judgeBatch(record, batch(texts), { isToday });
  if (verdict.kind !== 'taken') throw new Error(JSON.stringify(verdict));
  return verdict;
}

/** `taken 4 5+`: 5 is stored besides another; `forked`, `known`, `missing 3-4`, `refused badNumber`. */
function short(record: StreamRecord, texts: string, isToday = true): string {
  const verdict = judgeBatch(record, batch(texts), { isToday });
  if (verdict.kind === 'missing') return `missing ${verdict.from}-${verdict.to}`;
  if (verdict.kind === 'refused') return `refused ${verdict.fault}`;
  const reports = verdict.reports.map(({ report: { id }, besides }) => `${id}${besides ? '+' : ''}`);
  const words = [verdict.fork === undefined ? 'taken' : 'forked', ...(reports.length === 0 ? ['nothing'] : reports)];
  return `${words.join(' ')}, up to ${verdict.record.high}`;
}

describe('what becomes of a batch', () => {
  test.each<[string, StreamRecord, string, string]>([
    ['the first batch of a stream', stored(), '1 2 3', 'taken 1 2 3, up to 3'],
    ['the next one', stored('1 2'), '3 4', 'taken 3 4, up to 4'],
    ['K01 R02 the same once more: its answer was lost', stored('1 2', '3 4'), '3 4', 'taken nothing, up to 4'],
    ['the same once more, and what came since', stored('1 2', '3'), '3 4', 'taken 4, up to 4'],
    ['R04 a hole before it', stored('1 2'), '4 5', 'missing 3-3'],
    ['a stream that is unknown here, not from its start', stored(), '8 9', 'missing 1-7'],
    ['R04 a hole before it, also if a gap begins it', stored('1 2'), 'g5-7 8', 'missing 3-4'],
    ['a gap that closes the hole', stored('1 2'), 'g3-7 8', 'taken g3-7 8, up to 8'],
    ['a gap of which a part is here', stored('1 2 3 4'), 'g2-7 8', 'taken g2-7 8, up to 8'],
    ['a gap that names only what is here', stored('1 2 3 4'), 'g2-4', 'taken nothing, up to 4'],
    ['a gap in the place of a report that is here', stored('1 2 3 4'), 'g3-3 4', 'taken nothing, up to 4'],
    ['the same gap once more', stored('1 2', 'g3-7'), 'g3-7 8', 'taken 8, up to 8'],
    ['a gap that grew', stored('1 2', 'g3-7'), 'g3-9', 'taken g3-9, up to 9'],
    ['a fork', stored('1 2 3'), '3b', 'forked 3b+, up to 3'],
    ['a fork in the middle, told once', stored('1 2 3 4'), '2 3b 4b 5', 'forked 3b+ 4b+ 5, up to 5'],
    ['the same batch after that', stored('1 2 3 4', '2 3b 4b 5'), '2 3b 4b 5', 'taken nothing, up to 5'],
    ['the first history after that, should it come back', stored('1 2 3', '3b'), '3', 'taken nothing, up to 3'],
    ['a third one of the same number', stored('1 2 3', '3b'), '3c', 'forked 3c+, up to 3'],
    ['a report under a number that a gap stands for: the node went back', stored('g1-5'), '4', 'forked 4+, up to 5'],
  ])('%s', (_title, record, texts, expected) => {
    expect(short(record, texts)).toBe(expected);
  });

  test.each<[string, readonly IncomingReport[], string]>([
    ['none', [], 'noReports'],
    ['more than 100', Array.from({ length: 101 }, (_, index) => report(`${index + 1}`)), 'tooManyReports'],
    ['number 0', [report('0')], 'badNumber'],
    ['a number that is no whole one', [{ ...report('1'), seq: 1.5, fromSeq: 1.5 }], 'badNumber'],
    ['a number beyond all numbers', [{ ...report('1'), seq: 2 ** 53, fromSeq: 2 ** 53 }], 'badNumber'],
    ['a gap that ends before it begins', [{ ...report('g1-2'), fromSeq: 3 }], 'badNumber'],
    ['a gap from number 0', [{ ...report('g1-2'), fromSeq: 0 }], 'badNumber'],
    ['no id', [{ ...report('1'), id: '' }], 'badId'],
    ['a long id', [{ ...report('1'), id: 'x'.repeat(65) }], 'badId'],
    ['a report for several numbers that is no gap', [{ ...report('2'), fromSeq: 1 }], 'notAGap'],
    ['backwards', batch('2 1'), 'notInOrder'],
    ['one twice', batch('1 1'), 'notInOrder'],
    ['a gap over the one before it', batch('1 2 g2-3'), 'notInOrder'],
    ['one left out', batch('1 3'), 'numbersLeftOut'],
  ])('is refused by name: %s', (_title, reports, fault) => {
    const verdict = judgeBatch(stored('1 2'), reports, { isToday: true });
    expect(verdict).toMatchObject({ kind: 'refused', fault, refusal: { reason: 'invalidArgument' } });
  });

  test('a hole and a fork are refusals that the contract knows', () => {
    expect(judgeBatch(stored('1'), batch('3'), { isToday: true })).toMatchObject({
      refusal: {
        reason: 'reportsMissing',
        message: 'the reports 2 to 2 of this stream are not here, and the batch begins behind them',
      },
    });
    expect(taken(stored('1 2 3'), '2b 3b').fork).toMatchObject({
      reason: 'streamForked',
      message: 'another report is stored under number 2 and 1 more numbers of stream s1; both are kept',
    });
  });

  test('no more is acknowledged than the batch has: a node takes no other answer', () => {
    expect(taken(stored('1 2 3 4 5'), '2 3').acknowledgedSeq).toBe(3);
    expect(taken(stored('1 2 3 4 5'), '3b').acknowledgedSeq).toBe(3);
  });

  test('in a stream that the node has left, both are kept and nothing is asked for', () => {
    const verdict = taken(stored('1 2 3'), '2b 3b', false);
    expect(verdict).toMatchObject({ fork: undefined, forkedAt: [2, 3], acknowledgedSeq: 3 });
    expect(verdict.reports).toHaveLength(2);
    expect(verdict.record.besides).toBe(2);
  });

  test('an id that stands under another number is no repetition', () => {
    const verdict = judgeBatch(stored('1 2 3'), [{ ...report('3'), id: '2' }], { isToday: true });
    expect(verdict).toMatchObject({ kind: 'taken', forkedAt: [3], reports: [{ besides: true }] });
  });

  test('a number that is too old to be remembered is kept besides, never dropped on doubt', () => {
    const many = Array.from({ length: 5 }, (_, page) =>
      Array.from({ length: 100 }, (_unused, index) => `${page * 100 + index + 1}`).join(' '),
    );
    const record = stored(...many);
    expect(record.kept).toHaveLength(keptReports);
    expect(short(record, '500')).toBe('taken nothing, up to 500');
    expect(short(record, '301')).toBe('taken nothing, up to 500');
    expect(short(record, '300')).toBe('forked 300+, up to 500');
  });
});

describe('how a stream begins', () => {
  const opener = (data: unknown): IncomingReport => ({ seq: 1, fromSeq: 1, id: 'o', kind: 'outbox.gap', data });
  const because = 'the outbox is an old copy';

  test.each<[string, IncomingReport, readonly StreamRecord[], object]>([
    ['the first of a node', report('1'), [], { previous: undefined, notHere: undefined, unexplained: false }],
    [
      'a later one, all of the stream before it being here',
      opener({ because, missing: [], previous: { stream: 's1', seq: 3 } }),
      [stored('1 2 3')],
      { because, previous: { stream: 's1', seq: 3 }, notHere: undefined, wentBack: false, unexplained: false },
    ],
    [
      'the end of the stream before it is not here',
      opener({ because, missing: [], previous: { stream: 's1', seq: 7 } }),
      [stored('1 2 3')],
      { notHere: { stream: 's1', from: 4, to: 7 }, wentBack: false },
    ],
    [
      'the stream before it never came',
      opener({ because, missing: [], previous: { stream: 's0', seq: 7 } }),
      [stored('1 2 3')],
      { notHere: { stream: 's0', from: 1, to: 7 } },
    ],
    [
      'more of the stream before it is here than the node had',
      opener({ because, missing: [], previous: { stream: 's1', seq: 2 } }),
      [stored('1 2 3')],
      { notHere: undefined, wentBack: true },
    ],
    ['K07 one that says nothing of those before it', report('1'), [stored('1')], { because: '', unexplained: true }],
    [
      'a gap that cannot be read is a gap all the same',
      opener({ missing: 'cut' }),
      [stored('1')],
      { unexplained: true },
    ],
    [
      'a gap before a replay stands where the stream told of those before it',
      { ...report('g1-4'), data: { because: 'sent long ago', missing: [{ stream: 's2', from: 1, to: 4 }] } },
      [],
      { unexplained: true, previous: undefined, notHere: undefined },
    ],
  ])('%s', (_title, first, others, expected) => {
    expect(openingOf(first, others)).toMatchObject(expected);
  });

  test('what it names as missing is read, also where nobody knows the end', () => {
    const missing = [{ stream: 's1', from: 4, to: null }];
    expect(missingIn(opener({ because, missing, more: 'of a later version' }))).toEqual(missing);
    expect(missingIn(report('1'))).toEqual([]);
    expect(missingIn(opener({ because, missing: [{ stream: 's1', from: 0, to: 2 }] }))).toEqual([]);
  });
});

describe('what a session is answered', () => {
  const s1 = stored('1 2 3');
  const s2 = { ...stored('1 2'), stream: 's2' };
  const goOn = (stream: string, acknowledgedSeq: number, acknowledgedId: string) => ({
    kind: 'goOn',
    stream,
    acknowledgedSeq,
    acknowledgedId,
  });

  // `s1:3` is a stream whose last report is number 3, with the id `3`; `s1:3b` one with the id `3b`.
  test.each<[string, string, readonly StreamRecord[], object]>([
    ['a node without any report', '', [], goOn('', 0, '')],
    ['a stream that has no report yet', 's1:0', [], goOn('s1', 0, '')],
    ['a stream that is unknown here', 's1:9', [], goOn('s1', 0, '')],
    ['what is stored', 's1:9', [s1], goOn('s1', 3, '3')],
    ['all of it', 's1:3', [s1], goOn('s1', 3, '3')],
    ['of two under the last number, the one that came last', 's1:3b', [stored('1 2 3', '3b')], goOn('s1', 3, '3b')],
    ['a fork further back leaves the last one as it is', 's1:3', [stored('1 2 3', '2b')], goOn('s1', 3, '3')],
    ['all of two streams', 's1:3 s2:5', [s1, s2], goOn('s2', 2, '2')],
    ['K07 what a restored curator has lost of an older stream comes first', 's1:5 s2:5', [s1, s2], goOn('s1', 3, '3')],
    ['K07 and one that has lost all of it', 's1:5 s2:5', [], goOn('s1', 0, '')],
    ['an older stream that is longer here than there is over', 's1:2 s2:5', [s1, s2], goOn('s2', 2, '2')],
    ['more than the node ever gave out', 's1:2', [s1], { kind: 'forked', refusal: { reason: 'streamForked' } }],
    ['another report under the last number', 's1:3b', [s1], { kind: 'forked', refusal: { reason: 'streamForked' } }],
  ])('%s', (_title, streams, records, expected) => {
    const asked = streams
      .split(' ')
      .filter(Boolean)
      .map((text) => text.split(':'))
      .map(([stream = '', id = '']) => ({ stream, lastSeq: Number.parseInt(id, 10), lastId: id }));
    expect(answerSession(asked, records)).toMatchObject(expected);
  });
});
