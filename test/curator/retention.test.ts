import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HistoryEntry } from '../../src/curator/history-entry.ts';
import { type Kept, membersToForget, numbersToDrop } from '../../src/curator/retention.ts';

const dayMs = 86_400_000;
const now = 1_000 * dayMs;

function kept(number: number, goes: Kept['goes'] = 'first', ageDays = 0): Kept {
  return { number, storedAtMs: now - ageDays * dayMs, goes };
}

describe('what goes first', () => {
  const bounds = { count: 4, ageMs: 30 * dayMs, atLeast: 2 };
  test.each<[string, readonly Kept[], readonly number[]]>([
    ['nothing within the bounds', [kept(1), kept(2), kept(3), kept(4)], []],
    ['the oldest beyond the count', [kept(1), kept(2), kept(3), kept(4), kept(5), kept(6)], [1, 2]],
    [
      'what is of membership after all others, however old it is',
      [kept(1, 'last'), kept(2, 'last'), kept(3), kept(4), kept(5), kept(6)],
      [3, 4],
    ],
    [
      'when nothing else is left, what is of membership',
      [kept(1, 'last'), kept(2, 'last'), kept(3, 'last'), kept(4), kept(5, 'last'), kept(6, 'last')],
      [4, 1],
    ],
    ['what is under way never', [kept(1, 'never'), kept(2, 'never'), kept(3), kept(4), kept(5)], [3]],
    [
      'more than the count, if all of it is under way',
      [kept(1, 'never'), kept(2, 'never'), kept(3, 'never'), kept(4, 'never'), kept(5, 'never')],
      [],
    ],
    ['what is too old', [kept(1, 'first', 40), kept(2), kept(3)], [1]],
    [
      'not all of it, since a clock may have jumped',
      [kept(1, 'first', 40), kept(2, 'first', 40), kept(3, 'last', 40)],
      [1],
    ],
    ['what was stored in the future stays', [kept(1, 'first', -400), kept(2), kept(3)], []],
    [
      'by count and age together, once each',
      [kept(1, 'first', 40), kept(2, 'first', 40), kept(3), kept(4), kept(5)],
      [1, 2],
    ],
  ])('%s', (_title, items, expected) => {
    expect(numbersToDrop(items, bounds, now)).toEqual(expected);
  });

  test('what is left is within the bounds, or protected', () => {
    const items = fc.array(
      fc.record({
        goes: fc.constantFrom<Kept['goes']>('first', 'last', 'never'),
        ageDays: fc.integer({ min: -5, max: 60 }),
      }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(items, fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 12 }), (list, count, atLeast) => {
        const all = list.map(({ goes, ageDays }, index) => kept(index + 1, goes, ageDays));
        const dropped = numbersToDrop(all, { count, ageMs: 30 * dayMs, atLeast }, now);
        const left = all.filter(({ number }) => !dropped.includes(number));
        expect(new Set(dropped).size).toBe(dropped.length);
        expect(all.filter(({ number, goes }) => dropped.includes(number) && goes === 'never')).toEqual([]);
        if (left.some(({ goes }) => goes !== 'never')) expect(left.length).toBeLessThanOrEqual(Math.max(count, 0));
        if (left.some(({ goes }) => goes === 'first'))
          expect(
            all.some(
              ({ number, goes, storedAtMs }) =>
                dropped.includes(number) && goes === 'last' && storedAtMs > now - 30 * dayMs,
            ),
          ).toBe(false);
        expect(left.length).toBeGreaterThanOrEqual(Math.min(all.length, count, atLeast));
      }),
    );
  });
});

describe('whose entries go first', () => {
  const witness = { nodeId: 'n1', certainty: 'observed', at: '', stream: 's', seq: 1, order: 0 } as const;
  const entry = (number: number, memberId: string, transition: 'added' | 'removed', ageDays: number): HistoryEntry => ({
    number,
    clusterId: 'c',
    memberId,
    transition,
    occurrence: 0,
    nodeId: '',
    peerUrls: [],
    certainty: 'observed',
    first: witness,
    confirmed: [],
    operationId: '',
    before: 0,
    learner: false,
    storedAt: new Date(now - ageDays * dayMs).toISOString(),
  });
  const entries = [
    entry(1, 'a', 'added', 90),
    entry(2, 'b', 'added', 90),
    entry(3, 'b', 'removed', 80),
    entry(4, 'd', 'added', 70),
    entry(5, 'd', 'removed', 60),
    entry(6, 'e', 'added', 1),
  ];

  test.each<[string, { count: number; ageDays: number; atLeast: number }, readonly string[]]>([
    ['nobody within the bounds', { count: 6, ageDays: 100, atLeast: 0 }, []],
    ['whoever was removed first, whole', { count: 5, ageDays: 100, atLeast: 0 }, ['b']],
    ['whoever is there stays, whatever the count', { count: 1, ageDays: 100, atLeast: 0 }, ['b', 'd']],
    ['whoever was removed too long ago', { count: 6, ageDays: 70, atLeast: 0 }, ['b']],
    ['not below what is kept at least', { count: 6, ageDays: 50, atLeast: 3 }, ['b']],
  ])('%s', (_title, { count, ageDays, atLeast }, expected) => {
    expect(membersToForget({ entries }, { count, ageMs: ageDays * dayMs, atLeast }, now)).toEqual(expected);
  });
});
