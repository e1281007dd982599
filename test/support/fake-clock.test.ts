import { expect, test } from 'vitest';
import { delay } from '../../src/base/clock.ts';
import { FakeClock } from './fake-clock.ts';

test('timers fire in order of their due time, and what they wake runs before the next', async () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const chain = async () => {
    await delay(clock, 10);
    seen.push(`first at ${clock.monotonicMs()}`);
    await delay(clock, 10);
    seen.push(`second at ${clock.monotonicMs()}`);
  };
  const done = chain();
  clock.after(15, () => seen.push(`timer at ${clock.monotonicMs()}`));
  const cancel = clock.after(5, () => seen.push('never'));
  cancel();
  await clock.advance(30);
  await done;
  expect(seen).toEqual(['first at 10', 'timer at 15', 'second at 20']);
  expect(clock.pendingTimers).toBe(0);
});

test('a jump of the wall clock moves no timer and no monotonic time', async () => {
  const clock = new FakeClock();
  let fired = false;
  clock.after(1_000, () => {
    fired = true;
  });
  const before = clock.wallMs();
  clock.jumpWall(10 * 365 * 86_400_000);
  await clock.advance(999);
  expect(fired).toBe(false);
  expect(clock.nextTimerInMs).toBe(1);
  clock.jumpWall(-20 * 365 * 86_400_000);
  await clock.advance(1);
  expect(fired).toBe(true);
  expect(clock.monotonicMs()).toBe(1_000);
  expect(clock.wallMs()).toBe(before - 10 * 365 * 86_400_000 + 1_000);
});
