// Goal: a data volume that cannot be read for a moment while an etcd is taken over is read again, and etcd taken over once; nothing is
// started before.
// Method: a supervisor whose log or history is refused by the disk the first time.
import { expect, test } from 'vitest';
import { LifeWatch } from '../../src/agent/life-watch.ts';
import { InvariantError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { recoverer } from '../../src/cli/recovery.ts';
import { LockHeldError } from '../../src/supervisor/errors.ts';
import type { Recovered } from '../../src/supervisor/life.ts';
import { FakeClock } from '../support/fake-clock.ts';

const eio = () => Object.assign(new Error('EIO: read'), { code: 'EIO' });
const life = { number: 3, pid: 4711, adopted: true, startedAtMs: 1, path: '/lives/3' };
const adopted: Recovered = { kind: 'adopted', life };
const lines = ['one', 'two', 'three'];

/** What the parts were told; `refuse` throws for as long as the disk refuses. */
function world(found: Recovered, refuse: (what: 'recover' | 'history' | 'log') => void) {
  const clock = new FakeClock();
  const seen = { recovered: 0, adopted: [] as number[], blocked: [] as (string | undefined)[], wakes: 0 };
  const watch = new LifeWatch();
  const recover = recoverer({
    supervisor: {
      async recover() {
        if (seen.recovered > 0) throw new InvariantError('event adopted in state starting');
        refuse('recover');
        seen.recovered++;
        return found;
      },
      endedAfter() {
        refuse('history');
        return [];
      },
      async replay(_number, onLine) {
        for (const [index, text] of lines.entries()) {
          if (index === 2) refuse('log');
          onLine({ text } as Parameters<typeof onLine>[0]);
        }
        return true;
      },
    },
    child: { blockedBy: (because) => void seen.blocked.push(because) },
    parts: {
      watch,
      ends: { last: { life: 2 } },
      reports: { reported: { exitedLife: 2 } },
      turnReports: { adopted: (number) => void seen.adopted.push(number) },
      observer: { judgeEarlier: () => {} },
      agent: { wake: () => void seen.wakes++ },
    },
    clock,
    log: silentLog,
    stop: new AbortController().signal,
  });
  return { seen, watch, clock, recover };
}

function times(count: number, at: string, error: () => unknown = eio) {
  let left = count;
  return (what: string) => {
    if (what === at && left-- > 0) throw error();
  };
}

test('a history that cannot be read at first: etcd is adopted once, and told of once', async () => {
  const { seen, clock, recover } = world(adopted, times(2, 'history'));
  await recover();
  expect(seen).toMatchObject({ recovered: 1, adopted: [], blocked: [expect.stringContaining('EIO')] });
  await clock.advance(12_000);
  expect(seen.recovered).toBe(1);
  expect(seen.adopted).toEqual([3]);
  expect(seen.blocked.at(-1)).toBeUndefined();
});

test('a log that cannot be read to its end at first is judged by one reading', async () => {
  const end = { exit: { kind: 'code', code: 0 }, endedAtMs: 1, lockStillHeld: false, stop: undefined } as const;
  const { watch, clock, recover } = world({ kind: 'ended', number: 3, startedAtMs: 1, end }, times(1, 'log'));
  await recover();
  await clock.advance(6_000);
  const once = new LifeWatch();
  for (const line of lines) once.take(3, line);
  expect(watch.evidence).toEqual(once.evidence);
});

test.each([
  ['a lock that a stranger holds', () => new LockHeldError('/lock', [])],
  ['a directory that cannot be listed', eio],
])('%s is looked at again', async (_what, error) => {
  const { seen, clock, recover } = world(adopted, times(1, 'recover', error));
  await recover();
  expect(seen.blocked).toHaveLength(1);
  await clock.advance(6_000);
  expect(seen).toMatchObject({ recovered: 1, adopted: [3] });
});
