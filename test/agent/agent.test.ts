// Goal: A13 what was seen long ago is not acted on: the agent, or its machine, was stopped between the look and the act.
import { expect, test } from 'vitest';
import { Agent } from '../../src/agent/agent.ts';
import type { Executor } from '../../src/agent/executor.ts';
import type { Observed } from '../../src/agent/observed.ts';
import type { Observer } from '../../src/agent/observer.ts';
import { nothingReported } from '../../src/agent/reported.ts';
import type { Reports } from '../../src/agent/reports.ts';
import { silentLog } from '../../src/base/log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { SeededRandom } from '../support/seeded-random.ts';

/** A member that is down and may be started. */
const startable: Observed = {
  supervision: { kind: 'full' },
  volume: { kind: 'present' },
  intent: { kind: 'run', because: '' },
  paused: false,
  founding: 'done',
  identity: {
    clusterId: 1n,
    memberId: 2n,
    name: 'n1',
    peerUrl: 'http://127.0.0.1:2380',
    isLearner: false,
    lastVoters: [],
  },
  data: { kind: 'member', clusterId: 1n, memberId: 2n },
  process: { kind: 'down' },
  removal: { kind: 'none' },
  peers: { kind: 'nobody' },
  start: { kind: 'now', because: 'it is to run' },
  preflight: [],
  role: { kind: 'unknown', because: 'no file' },
  join: { kind: 'none' },
  cluster: { kind: 'notAsked' },
  leftRecord: false,
};

/** Runs turns until the first act; returns after how many looks it came. `looked` is called in each look. */
async function looksUntilAct(looked: (looks: number, clock: FakeClock) => void): Promise<number> {
  const clock = new FakeClock();
  const stop = new AbortController();
  let looks = 0;
  let actedAfter = 0;
  const agent = new Agent({
    observer: {
      observe: async () => {
        looks++;
        looked(looks, clock);
        return startable;
      },
      forgetData: () => {},
      nextLookMs: () => undefined,
    } as unknown as Observer,
    executor: {
      execute: async () => {
        actedAfter = looks;
        stop.abort();
      },
    } as unknown as Executor,
    reports: { reported: nothingReported } as Reports,
    clock,
    random: new SeededRandom(1),
    log: silentLog,
    idleTurnMs: () => 10_000,
    beside: async () => {},
    onPlan: () => {},
  });
  const running = agent.run(stop.signal);
  for (let minutes = 0; !stop.signal.aborted && minutes < 10; minutes++) await clock.advance(60_000);
  await running;
  return actedAfter;
}

test('A13 a look just now is acted on', async () => {
  expect(await looksUntilAct(() => {})).toBe(1);
});

test('A13 after a suspend, which only the wall clock shows, it is looked again', async () => {
  expect(await looksUntilAct((looks, clock) => looks === 1 && clock.jumpWall(3_600_000))).toBe(2);
});

test('A13 after a stop of the process, which the monotonic clock shows, it is looked again', async () => {
  expect(await looksUntilAct((looks, clock) => looks === 1 && clock.advanceSync(20_000))).toBe(2);
});

test('on a machine that is always that slow the agent acts all the same', async () => {
  expect(await looksUntilAct((_looks, clock) => clock.advanceSync(20_000))).toBe(4);
});
