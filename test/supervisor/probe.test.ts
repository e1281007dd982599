// Goal: a verdict changes only for a reason; questions never overlap; nothing is heard after the end.
import { expect, test } from 'vitest';
import { type ProbeVerdict, startProbe } from '../../src/supervisor/probe.ts';
import { FakeClock } from '../support/fake-clock.ts';

interface Asked {
  readonly signal: AbortSignal;
  readonly answer: PromiseWithResolvers<void>;
}

function begin(misses = 3) {
  const clock = new FakeClock();
  const aborter = new AbortController();
  const asked: Asked[] = [];
  const verdicts: [ProbeVerdict, string][] = [];
  const ask = (signal: AbortSignal) => {
    const answer = Promise.withResolvers<void>();
    asked.push({ signal, answer });
    return answer.promise;
  };
  startProbe(
    { ask, intervalMs: 100, deadlineMs: 50, misses },
    { clock, signal: aborter.signal, onVerdict: (verdict, because) => verdicts.push([verdict, because]) },
  );
  return { clock, aborter, asked, verdicts };
}

test('it asks at once; one good answer makes the verdict good, and only the first says so', async () => {
  const { clock, asked, verdicts } = begin();
  expect(asked).toHaveLength(1);
  for (let n = 0; n < 3; n++) {
    asked[n]?.answer.resolve();
    await clock.advance(100);
  }
  expect(asked).toHaveLength(4);
  expect(verdicts).toEqual([['good', '']]);
});

test('so many misses in a row make it bad, with the last reason; fewer do not', async () => {
  const { clock, asked, verdicts } = begin();
  const answer = async (n: number, good: boolean) => {
    if (good) asked[n]?.answer.resolve();
    else asked[n]?.answer.reject(new Error(`refused ${n}`));
    await clock.advance(100);
  };
  for (const [n, good] of [true, false, false, true, false, false, false, false, true].entries()) await answer(n, good);
  expect(verdicts).toEqual([
    ['good', ''],
    ['bad', 'refused 6'],
    ['good', ''],
  ]);
});

test('an answer after its deadline is a miss and is not heard; the question is told to end', async () => {
  const { clock, asked, verdicts } = begin(1);
  await clock.advance(60);
  expect(verdicts).toEqual([['bad', 'no answer within 50 ms']]);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[0]?.answer.resolve();
  await clock.advance(10);
  expect(verdicts).toHaveLength(1);
});

test('a question that never ends is never joined by a second one, and counts as misses', async () => {
  const { clock, asked, verdicts } = begin(4);
  await clock.advance(1000);
  expect(asked).toHaveLength(1);
  expect(verdicts).toEqual([['bad', 'the former question has not ended yet']]);
  asked[0]?.answer.reject(new Error('at last'));
  await clock.advance(100);
  expect(asked).toHaveLength(2);
});

test('after the abort nothing is asked and nothing is told', async () => {
  const { clock, aborter, asked, verdicts } = begin(1);
  aborter.abort();
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[0]?.answer.resolve();
  await clock.advance(1000);
  expect(asked).toHaveLength(1);
  expect(verdicts).toEqual([]);
});

test('a question that throws at once is a miss like any other', async () => {
  const clock = new FakeClock();
  const verdicts: ProbeVerdict[] = [];
  const ask = () => {
    throw new Error('a bug in the question');
  };
  startProbe(
    { ask, intervalMs: 100, deadlineMs: 50, misses: 2 },
    { clock, signal: new AbortController().signal, onVerdict: (verdict) => verdicts.push(verdict) },
  );
  await clock.advance(250);
  expect(verdicts).toEqual(['bad']);
});
