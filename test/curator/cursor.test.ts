import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cursorAt, readAfter } from '../../src/curator/cursor.ts';

describe('cursors', () => {
  const readable = (last: number, numbers: readonly number[], id = 'h1') => ({
    id,
    last,
    items: numbers.map((number) => ({ number })),
  });

  test('a reader without one begins at the oldest that is kept, and goes on behind it', () => {
    const history = readable(6, [3, 4, 6]);
    const first = readAfter(history, '', 2);
    expect(first).toMatchObject({ kind: 'page', items: [{ number: 3 }, { number: 4 }], more: true });
    const second = readAfter(history, first.kind === 'page' ? first.next : '', 2);
    expect(second).toMatchObject({ kind: 'page', items: [{ number: 6 }], more: false });
    const third = readAfter(readable(7, [3, 4, 6, 7]), second.kind === 'page' ? second.next : '', 2);
    expect(third).toMatchObject({ kind: 'page', items: [{ number: 7 }] });
  });

  test('K07 a cursor whose entries are gone says how many, and with what to go on', () => {
    const at2 = cursorAt(readable(4, [1, 2, 3, 4]), 2);
    const reading = readAfter(readable(7, [1, 2, 6, 7]), at2, 10);
    expect(reading).toMatchObject({ kind: 'lost', lost: 3, refusal: { reason: 'cursorLost' } });
    if (reading.kind !== 'lost') return;
    expect(reading.refusal.message).toContain('3 entries behind number 2');
    expect(readAfter(readable(7, [1, 2, 6, 7]), reading.resume, 10)).toMatchObject({
      items: [{ number: 6 }, { number: 7 }],
    });
  });

  test.each<[string, string, ReturnType<typeof readable>, string]>([
    ['another history', cursorAt(readable(4, [1, 2, 3, 4], 'h0'), 2), readable(4, [1, 2, 3, 4]), 'cursorLost'],
    [
      'an older copy, which has not come so far',
      cursorAt(readable(4, [1, 2, 3, 4]), 4),
      readable(3, [1, 2, 3]),
      'cursorLost',
    ],
    [
      'an older copy, which has what was gone',
      cursorAt(readable(4, [1, 4]), 1),
      readable(4, [1, 2, 3, 4]),
      'cursorLost',
    ],
    ['no cursor at all', 'yesterday', readable(4, [1, 2, 3, 4]), 'invalidArgument'],
    ['numbers that are none', 'h1.1e3.0', readable(4, [1, 2, 3, 4]), 'invalidArgument'],
  ])('a cursor is refused by name: %s', (_title, cursor, history, reason) => {
    expect(readAfter(history, cursor, 10)).toMatchObject({ kind: 'refused', refusal: { reason } });
  });

  test('a page has a bound, and never none', () => {
    const history = readable(3, [1, 2, 3]);
    expect(readAfter(history, '', 0)).toMatchObject({ items: [{ number: 1 }], more: true });
    expect(readAfter(history, '', 1_000_000)).toMatchObject({ items: [{ number: 1 }, { number: 2 }, { number: 3 }] });
  });

  /** A reader that reads now and then, while entries come and go. */
  type Act =
    | { readonly do: 'come' }
    | { readonly do: 'go'; readonly at: number }
    | { readonly do: 'read'; readonly limit: number };
  const acts = fc.array(
    fc.oneof(
      fc.constant<Act>({ do: 'come' }),
      fc.record({ do: fc.constant('go' as const), at: fc.nat(20) }),
      fc.record({ do: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 4 }) }),
    ),
    { maxLength: 60, size: 'max' },
  );

  test('every entry is read once, or told as lost; the number that is lost is exact', () => {
    let losses = 0;
    fc.assert(
      fc.property(acts, (story) => {
        let numbers: readonly number[] = [];
        let [last, cursor, lost, goneBefore] = [0, '', 0, 0];
        const read: number[] = [];
        const step = (limit: number): boolean => {
          const history = readable(last, numbers);
          if (cursor === '') goneBefore = last - numbers.length;
          const reading = readAfter(history, cursor, limit);
          if (reading.kind === 'refused') throw new Error(reading.refusal.message);
          if (reading.kind === 'page') read.push(...reading.items.map(({ number }) => number));
          else lost += reading.lost;
          cursor = reading.kind === 'page' ? reading.next : reading.resume;
          return reading.kind === 'lost' || reading.more;
        };
        for (const act of story) {
          if (act.do === 'come') numbers = [...numbers, ++last];
          if (act.do === 'go') numbers = numbers.filter((_number, index) => index !== act.at);
          if (act.do === 'read') step(act.limit);
        }
        while (step(3));
        expect(read).toEqual([...new Set(read)].sort((a, b) => a - b));
        expect(read.length + lost + goneBefore).toBe(last);
        losses += lost;
      }),
    );
    expect(losses).toBeGreaterThan(0);
  });
});
