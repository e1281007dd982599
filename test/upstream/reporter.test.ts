import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { gapKind, type StoredFact } from '../../src/upstream/fact.ts';
import { Reporter, type ReporterTiming, type SendResult } from '../../src/upstream/reporter.ts';
import { fact, OutboxMachine } from './outbox-fixture.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

type Answer = (batch: readonly StoredFact[], signal: AbortSignal) => SendResult | Promise<SendResult>;

const acked: Answer = (batch) => {
  const last = batch.at(-1);
  if (last === undefined) throw new Error('an empty batch was sent');
  return { kind: 'acked', upTo: { stream: last.stream, seq: last.seq } };
};
const retry =
  (afterMs?: number): Answer =>
  () => ({ kind: 'retry', why: '503', ...(afterMs !== undefined && { afterMs }) });

/** A reporter on a hand-moved clock with a transport that answers as told, and notes when it was asked for what. */
function setUp(count: number, timing: Partial<ReporterTiming> = {}) {
  const machine = new OutboxMachine(5);
  for (let number = 1; number <= count; number++) machine.outbox.append(fact(number));
  const sent: { readonly atMs: number; readonly seqs: readonly number[] }[] = [];
  const answers: Answer[] = [];
  const world = { always: acked, underWay: 0, mostUnderWay: 0 };
  const abort = new AbortController();
  const reporter = new Reporter({
    outbox: machine.outbox,
    clock: machine.clock,
    random: machine.random,
    log: silentLog,
    signal: abort.signal,
    timing,
    transport: {
      name: 'fake',
      async send(batch, signal) {
        sent.push({ atMs: machine.clock.monotonicMs(), seqs: batch.map((one) => one.seq) });
        world.underWay++;
        world.mostUnderWay = Math.max(world.mostUnderWay, world.underWay);
        try {
          return await (answers.shift() ?? world.always)(batch, signal);
        } finally {
          world.underWay--;
        }
      },
    },
  });
  const running = reporter.run();
  const stop = async () => {
    abort.abort();
    await running;
    expect(machine.clock.pendingTimers).toBe(0);
  };
  stops.push(stop);
  return { machine, outbox: machine.outbox, clock: machine.clock, reporter, sent, answers, world, stop };
}

describe('sending', () => {
  test('batches of 100, one under way at a time, in order, and new facts wake it', async () => {
    const { outbox, clock, sent, world, reporter } = setUp(250);
    await clock.advance(0);
    expect(sent.map(({ seqs }) => [seqs[0], seqs.at(-1)])).toEqual([
      [1, 100],
      [101, 200],
      [201, 250],
    ]);
    expect(reporter.status).toMatchObject({ state: 'idle', acked: 250, failures: 0 });
    outbox.append(fact(251));
    await clock.advance(0);
    expect(sent.at(-1)?.seqs).toEqual([251]);
    expect(world.mostUnderWay).toBe(1);
  });

  test('R01 a failure is repeated with the same facts, after 1 s doubling to 60 s, ± 20 %', async () => {
    const { clock, sent, world, reporter } = setUp(3);
    world.always = retry();
    await clock.advance(400_000);
    const gaps = sent.slice(1).map(({ atMs }, index) => atMs - (sent[index]?.atMs ?? 0));
    const expected = [1, 2, 4, 8, 16, 32, 60, 60, 60];
    expect(gaps.length).toBeGreaterThanOrEqual(expected.length);
    for (const [index, seconds] of expected.entries()) {
      expect(gaps[index]).toBeGreaterThanOrEqual(seconds * 800);
      expect(gaps[index]).toBeLessThanOrEqual(seconds * 1_200);
    }
    expect(new Set(sent.map(({ seqs }) => seqs.join()))).toEqual(new Set(['1,2,3']));
    expect(reporter.status).toMatchObject({ state: 'waiting', problem: '503' });
    world.always = acked;
    await clock.advance(75_000);
    expect(reporter.status).toMatchObject({ state: 'idle', failures: 0, problem: undefined });
  });

  test('R01 Retry-After is honoured, but not beyond an hour', async () => {
    const { clock, sent, answers } = setUp(1);
    answers.push(retry(300_000), retry(86_400_000));
    await clock.advance(299_999);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(sent).toHaveLength(2);
    await clock.advance(3_599_999);
    expect(sent).toHaveLength(2);
    await clock.advance(1);
    expect(sent).toHaveLength(3);
  });

  test('A12 jumps of the wall clock neither shorten nor lengthen a pause', async () => {
    const { clock, sent, answers } = setUp(1);
    answers.push(retry(10_000));
    await clock.advance(1);
    clock.jumpWall(10 * 365 * 86_400_000);
    await clock.advance(9_000);
    expect(sent).toHaveLength(1);
    clock.jumpWall(-20 * 365 * 86_400_000);
    await clock.advance(1_000);
    expect(sent).toHaveLength(2);
  });

  test('R02 no answer within the deadline: the signal is aborted and the same facts are sent again', async () => {
    const { clock, sent, answers } = setUp(2);
    let aborted = false;
    answers.push((_batch, signal) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise<SendResult>(() => {}); // a transport that does not even listen
    });
    await clock.advance(29_999);
    expect(aborted).toBe(false);
    await clock.advance(1);
    expect(aborted).toBe(true);
    await clock.advance(1_300);
    expect(sent.map(({ seqs }) => seqs)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test('a transport that throws is a failure like any other', async () => {
    const { clock, sent, answers, reporter } = setUp(1);
    answers.push(() => {
      throw new Error('no route');
    });
    await clock.advance(0);
    expect(reporter.status.problem).toContain('no route');
    await clock.advance(1_300);
    expect(sent).toHaveLength(2);
    expect(reporter.status.acked).toBe(1);
  });

  test('R04 only a prefix of the batch is taken off; the rest comes again; nonsense is not believed', async () => {
    const { clock, sent, answers, outbox } = setUp(4);
    answers.push(
      (batch) => ({ kind: 'acked', upTo: { stream: batch[1]?.stream ?? '', seq: 2 } }),
      (batch) => ({ kind: 'acked', upTo: { stream: batch[0]?.stream ?? '', seq: 99 } }),
      () => ({ kind: 'acked', upTo: { stream: 'ffffffffffffffff', seq: 3 } }),
    );
    await clock.advance(0);
    expect(sent.map(({ seqs }) => seqs)).toEqual([
      [1, 2, 3, 4],
      [3, 4],
    ]);
    expect(outbox.stats().waiting).toBe(2);
    await clock.advance(10_000);
    expect(sent.map(({ seqs }) => seqs)).toEqual([
      [1, 2, 3, 4],
      [3, 4],
      [3, 4],
      [3, 4],
    ]);
    expect(outbox.stats().waiting).toBe(0);
  });

  test('it stops at once in a pause, in a send and when idle, and leaves no timer', async () => {
    const idle = setUp(0);
    await idle.clock.advance(0);
    await idle.stop();
    const pausing = setUp(1);
    pausing.world.always = retry();
    await pausing.clock.advance(0);
    await pausing.stop();
    const sending = setUp(1);
    sending.world.always = () => new Promise<SendResult>(() => {});
    await sending.clock.advance(0);
    await sending.stop();
    expect(sending.reporter.status.state).toBe('stopped');
    expect(sending.outbox.stats().waiting).toBe(1);
  });

  test('A19 a disk that refuses to be read or written is waited for', async () => {
    const { clock, machine, sent, reporter } = setUp(0);
    await clock.advance(0);
    machine.disk.fail({ step: 'read', errno: 'EIO', path: '.jsonl', times: 3 });
    machine.outbox.append(fact(1));
    await clock.advance(0);
    expect(reporter.status.problem).toContain('EIO');
    await clock.advance(10_000);
    expect(sent.at(-1)?.seqs).toEqual([1]);
    expect(machine.outbox.stats().waiting).toBe(0);
  });
});

describe('R13 a fact that is refused for ever', () => {
  const refusing =
    (poison: (one: StoredFact) => boolean): Answer =>
    (batch, signal) =>
      batch.some(poison) ? { kind: 'refused', why: '400 Bad Request' } : acked(batch, signal);
  const isNumber = (number: number) => (one: StoredFact) => one.data['number'] === number;

  test('is found by halving, parked visibly at the head, and nothing overtakes it', async () => {
    const { clock, world, outbox, reporter, sent } = setUp(150);
    world.always = refusing(isNumber(42));
    await clock.advance(0);
    expect(outbox.parked).toMatchObject({ seq: 42, why: '400 Bad Request' });
    expect(outbox.stats().waiting).toBe(109);
    expect(reporter.status.state).toBe('parked');
    expect(sent.length).toBeLessThan(20);
    outbox.append(fact(151));
    await clock.advance(60_000);
    expect(outbox.stats().waiting).toBe(110);
  });

  test('goes on when it is skipped, with a gap in its place', async () => {
    const { clock, world, outbox } = setUp(150);
    const received: StoredFact[] = [];
    const answer = refusing(isNumber(42));
    world.always = async (batch, signal) => {
      const result = await answer(batch, signal);
      if (result.kind === 'acked') received.push(...batch);
      return result;
    };
    await clock.advance(0);
    const { parked } = outbox;
    if (parked === undefined) throw new Error('nothing is parked');
    outbox.skip(parked, 'poison');
    await clock.advance(0);
    expect(received.map((one) => one.seq)).toEqual(Array.from({ length: 150 }, (_, index) => index + 1));
    expect(received.filter((one) => one.kind === gapKind).map((one) => one.seq)).toEqual([42]);
    expect(outbox.parked).toBeUndefined();
  });

  test('is tried again every 10 min, also while new facts arrive, and after a restart', async () => {
    const { clock, world, outbox, sent, machine } = setUp(2);
    world.always = refusing(isNumber(1));
    await clock.advance(0);
    const before = sent.length;
    for (let minute = 0; minute < 11; minute++) {
      await clock.advance(60_000);
      outbox.append(fact(100 + minute));
    }
    expect(sent.length).toBe(before + 1);
    expect(sent.at(-1)?.seqs).toEqual([1]);
    world.always = acked;
    await clock.advance(600_000);
    expect(outbox.parked).toBeUndefined();
    expect(outbox.stats().waiting).toBe(0);
    expect(machine.disk.files().length).toBeGreaterThan(0);
  });

  test('an operator may have it tried at once', async () => {
    const { clock, world, outbox } = setUp(2);
    world.always = refusing(isNumber(1));
    await clock.advance(0);
    world.always = acked;
    outbox.unpark();
    await clock.advance(0);
    expect(outbox.stats().waiting).toBe(0);
  });
});

describe('a receiver with a history of its own', () => {
  test('a fork is a new stream; both facts are kept', async () => {
    const { clock, answers, outbox, sent } = setUp(2);
    const before = outbox.stats().stream;
    answers.push(() => ({ kind: 'forked', why: 'it holds another report of number 2' }));
    await clock.advance(2_000);
    expect(outbox.stats().stream).not.toBe(before);
    expect(outbox.stats().waiting).toBe(0);
    expect(sent.map(({ seqs }) => seqs)).toEqual([[1, 2], [1, 2], [1]]);
  });

  test('R06 a resync sends again from where it asks', async () => {
    const { clock, answers, outbox, sent } = setUp(5);
    await clock.advance(0);
    const { stream } = outbox.stats();
    answers.push(() => ({ kind: 'resync', from: { stream, seq: 3 }, why: 'it was restored from a backup' }));
    outbox.append(fact(6));
    await clock.advance(2_000);
    expect(sent.map(({ seqs }) => seqs)).toEqual([[1, 2, 3, 4, 5], [6], [3, 4, 5, 6]]);
    answers.push(() => ({ kind: 'resync', why: 'it has nothing' }));
    outbox.append(fact(7));
    await clock.advance(2_000);
    expect(sent.at(-1)?.seqs).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });
});
