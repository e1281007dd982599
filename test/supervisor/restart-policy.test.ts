// Goal: restarts are prompt, bounded, and never cease by themselves; the count survives agents and clock jumps.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  afterEnd,
  afterStart,
  budget,
  decide,
  elapsedMs,
  emptyHistory,
  goodRunMs,
  type Moment,
  type RestartHistory,
  released,
  type Treatment,
} from '../../src/supervisor/restart-policy.ts';

const restart: Treatment = { kind: 'restart' };
const moment = (ms: number, epoch = 'a'): Moment => ({ wallMs: 1e12 + ms, monotonicMs: ms, epoch });

/** Ends `count` runs of `runMs` each, treated alike; each next start comes as soon as it is due. Gives the delays. */
function loop(count: number, treatment: Treatment, runMs = 0, readyMs = 0, fraction = 0.5) {
  let history: RestartHistory = emptyHistory;
  let nowMs = 0;
  const delays: number[] = [];
  for (let n = 0; n < count; n++) {
    nowMs += runMs;
    history = afterEnd(history, { treatment, readyMs, at: moment(nowMs) }, fraction);
    const { due } = decide(history, moment(nowMs));
    if (due.kind === 'hold' || due.kind === 'never') return { delays, history, nowMs };
    const waitMs = due.kind === 'wait' ? due.ms : 0;
    delays.push(waitMs);
    nowMs += waitMs;
    expect(decide(history, moment(nowMs)).due).toEqual({ kind: 'now' });
    history = afterStart(history, moment(nowMs));
  }
  return { delays, history, nowMs };
}

describe('C11 restart', () => {
  test('at once, then 1 s doubling to 60 s, and after ten within 30 min one try each 5 min', () => {
    expect(loop(13, restart).delays).toEqual([
      0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000, 315_000, 315_000, 315_000,
    ]);
  });

  test('an exhausted budget stays an alarm until a run was ready for 10 min, then counting starts anew', () => {
    const { history, nowMs } = loop(40, restart);
    expect(decide(history, moment(nowMs))).toMatchObject({ exhausted: true, due: { kind: 'now' } });
    const almost = afterEnd(history, { treatment: restart, readyMs: goodRunMs - 1, at: moment(nowMs + 1) }, 0.5);
    expect(decide(almost, moment(nowMs + 1)).exhausted).toBe(true);
    const good = afterEnd(history, { treatment: restart, readyMs: goodRunMs, at: moment(nowMs + 1) }, 0.5);
    expect(decide(good, moment(nowMs + 1))).toEqual({ due: { kind: 'now' }, exhausted: false, restarts: 0, inRow: 1 });
  });

  test('slow crashes, one each 4 min, never exhaust the budget', () => {
    expect(loop(50, restart, 4 * 60_000, 60_000).delays.every((ms) => ms <= 60_000)).toBe(true);
  });
});

describe('other treatments', () => {
  test('retry has delays of its own and costs no budget', () => {
    const port: Treatment = { kind: 'retry', firstMs: 2000, maxMs: 30_000 };
    const { delays, history, nowMs } = loop(8, port);
    expect(delays).toEqual([2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000]);
    expect(decide(history, moment(nowMs))).toMatchObject({ restarts: 0, exhausted: false });
  });

  test('another cause begins at its own first delay', () => {
    const { history, nowMs } = loop(6, { kind: 'retry', firstMs: 2000, maxMs: 30_000 });
    const host = afterEnd(
      history,
      { treatment: { kind: 'retry', firstMs: 30_000, maxMs: 300_000 }, readyMs: 0, at: moment(nowMs) },
      0.5,
    );
    expect(decide(host, moment(nowMs)).due).toEqual({ kind: 'wait', ms: 30_000 });
  });

  test('hold waits for what it names, terminal for ever, also years later; released starts at once', () => {
    const years = moment(1e12);
    const held = afterEnd(
      emptyHistory,
      { treatment: { kind: 'hold', until: 'the configuration changes' }, readyMs: 0, at: moment(0) },
      0,
    );
    expect(decide(held, years).due).toEqual({ kind: 'hold', until: 'the configuration changes' });
    const never = afterEnd(emptyHistory, { treatment: { kind: 'terminal' }, readyMs: 0, at: moment(0) }, 0);
    expect(decide(never, years).due).toEqual({ kind: 'never' });
    expect(decide(released(held), years).due).toEqual({ kind: 'now' });
  });

  test('an end that was asked for costs nothing and waits for nothing, and hides no crash loop', () => {
    const { history, nowMs } = loop(10, restart);
    const asked = afterEnd(history, { treatment: { kind: 'asked' }, readyMs: 0, at: moment(nowMs) }, 0.5);
    expect(decide(asked, moment(nowMs)).due).toEqual({ kind: 'now' });
    expect(decide(afterStart(asked, moment(nowMs)), moment(nowMs)).restarts).toBe(10);
  });
});

describe('A12 clocks', () => {
  const crashed = (at: Moment) =>
    afterEnd(
      afterEnd(emptyHistory, { treatment: restart, readyMs: 0, at }, 0.5),
      { treatment: restart, readyMs: 0, at },
      0.5,
    );

  test('a jump of the wall clock changes nothing within one agent', () => {
    const history = crashed(moment(0));
    for (const jumpMs of [-1e11, 1e11]) {
      const now = { ...moment(400), wallMs: 1e12 + jumpMs };
      expect(decide(history, now).due).toEqual({ kind: 'wait', ms: 600 });
    }
  });

  test('across agents a clock ten years back costs one whole delay, never years', () => {
    const now = { wallMs: 1e12 - 3e11, monotonicMs: 5, epoch: 'b' };
    expect(decide(crashed(moment(0)), now).due).toEqual({ kind: 'wait', ms: 1000 });
    expect(elapsedMs(moment(0), now)).toBe(0);
  });

  test('the history survives being stored and read', () => {
    const { history, nowMs } = loop(12, restart);
    const read: RestartHistory = JSON.parse(JSON.stringify(history));
    expect(decide(read, moment(nowMs))).toEqual(decide(history, moment(nowMs)));
  });
});

test('in any 30 min there are at most 10 + 6 paid restarts, and a start is always due within 5.5 min', () => {
  const run = fc.record({
    runMs: fc.oneof(fc.constant(0), fc.nat({ max: 120_000 }), fc.nat({ max: 20 * 60_000 })),
    readyShare: fc.double({ min: 0, max: 1, noNaN: true }),
    treatment: fc.oneof(
      { weight: 6, arbitrary: fc.constant(restart) },
      { weight: 1, arbitrary: fc.constant<Treatment>({ kind: 'retry', firstMs: 2000, maxMs: 30_000 }) },
      { weight: 1, arbitrary: fc.constant<Treatment>({ kind: 'asked' }) },
    ),
    fraction: fc.double({ min: 0, max: 1, noNaN: true }),
    newAgent: fc.boolean(),
  });
  void fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 120 }), (runs) => {
      let history: RestartHistory = emptyHistory;
      let [nowMs, epoch] = [0, 0];
      let paid: number[] = [];
      for (const { runMs, readyShare, treatment, fraction, newAgent } of runs) {
        nowMs += runMs;
        if (newAgent) epoch += 1;
        const readyMs = runMs * readyShare;
        if (readyMs >= goodRunMs) paid = []; // a good run: counting starts anew, by design
        history = afterEnd(history, { treatment, readyMs, at: moment(nowMs, `${epoch}`) }, fraction);
        const { due } = decide(history, moment(nowMs, `${epoch}`));
        expect(['now', 'wait']).toContain(due.kind);
        const waitMs = due.kind === 'wait' ? due.ms : 0;
        expect(waitMs).toBeLessThanOrEqual(budget.exhaustedMs * 1.1);
        nowMs += waitMs;
        history = afterStart(history, moment(nowMs, `${epoch}`));
        if (treatment.kind === 'restart') paid.push(nowMs);
        const window = paid.filter((at) => nowMs - at < budget.withinMs);
        expect(window.length).toBeLessThanOrEqual(budget.restarts + budget.withinMs / budget.exhaustedMs);
        // Every decision is bounded plain data.
        expect(history.restarts.length).toBeLessThanOrEqual(budget.restarts);
      }
    }),
    { numRuns: 500 },
  );
});
