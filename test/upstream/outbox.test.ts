import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';
import { gapDataOf, gapKind } from '../../src/upstream/fact.ts';
import {
  OutboxNewerError,
  OutboxPlaceError,
  OutboxRefusedError,
  OutboxUnreadableError,
} from '../../src/upstream/outbox-errors.ts';
import type { MemoryDisk } from '../support/memory-disk.ts';
import { drain, fact, OutboxMachine, paths, places, twinPath } from './outbox-fixture.ts';

const day = 86_400_000;

/** The segment files of the outbox, in order. */
const segments = (machine: OutboxMachine) =>
  machine.disk.files().filter((file) => file.path.startsWith(`${paths.directory}/`) && file.path.endsWith('.jsonl'));

function filled(count: number, limits = {}): OutboxMachine {
  const machine = new OutboxMachine(7, limits);
  for (let number = 1; number <= count; number++) machine.outbox.append(fact(number));
  return machine;
}

describe('numbers and acknowledgements', () => {
  test('A07 R10 facts are numbered from 1 without a gap and survive a restart with their ids', () => {
    const machine = filled(3);
    const before = machine.outbox.page(10);
    expect(places(before)).toEqual(['a1', 'a2', 'a3']);
    expect(machine.reopenAfter('powerLoss').page(10)).toEqual(before);
    expect(machine.outbox.append(fact(4)).seq).toBe(4);
  });

  test('R02 a page that was not acknowledged is the same page again', () => {
    const machine = filled(5);
    expect(machine.outbox.page(3)).toEqual(machine.outbox.page(3));
    expect(machine.outbox.page(2)).toEqual(machine.outbox.page(3).slice(0, 2));
  });

  test('R04 an acknowledgement takes off what it covers, never goes back, and one never reached is refused', () => {
    const machine = filled(5);
    const { stream } = machine.outbox.stats();
    machine.outbox.ack({ stream, seq: 3 });
    machine.outbox.ack({ stream, seq: 2 });
    expect(places(machine.outbox.page(10))).toEqual(['a4', 'a5']);
    expect(() => machine.outbox.ack({ stream, seq: 6 })).toThrow(OutboxPlaceError);
    expect(() => machine.outbox.ack({ stream: 'ffffffffffffffff', seq: 1 })).toThrow(OutboxPlaceError);
    expect(machine.outbox.stats()).toMatchObject({ high: 5, waiting: 2 });
    expect(places(machine.reopenAfter('kill').page(10))).toEqual(['a4', 'a5']);
  });

  test('an acknowledgement that cannot be saved is kept in memory; after a restart the facts come again', () => {
    const machine = filled(2);
    machine.disk.fail({ step: 'write', errno: 'EROFS', times: 100 });
    machine.outbox.ack({ stream: machine.outbox.stats().stream, seq: 2 });
    expect(machine.outbox.page(10)).toEqual([]);
    expect(machine.outbox.stats().refusing).toContain('EROFS');
    expect(places(machine.reopenAfter('kill').page(10))).toEqual(['a1', 'a2']);
  });

  test('acknowledged facts are kept for 7 days of running, whatever the wall clock says (A12)', () => {
    const machine = filled(20, { segmentBytes: 1_000 });
    drain(machine.outbox);
    const kept = segments(machine).length;
    machine.clock.jumpWall(3_650 * day);
    machine.clock.advanceSync(6 * day);
    machine.outbox.maintain();
    expect(segments(machine).length).toBe(kept);
    machine.outbox.close();
    machine.open();
    machine.clock.advanceSync(1 * day);
    machine.outbox.maintain();
    expect(segments(machine).length).toBe(1);
    expect(machine.reopenAfter('powerLoss').append(fact(21)).seq).toBe(21);
    expect(places(drain(machine.outbox))).toEqual(['a21']);
  });

  test('pruned facts are not taken for a loss when the position is gone', () => {
    const machine = filled(20, { segmentBytes: 1_000 });
    drain(machine.outbox);
    machine.clock.advanceSync(8 * day);
    machine.outbox.maintain();
    machine.outbox.append(fact(21));
    machine.disk.remove(`${paths.directory}/position`);
    machine.reopenAfter('kill');
    expect(drain(machine.outbox).at(-1)?.data).toEqual({ number: 21 });
    expect(machine.outbox.tail(10).filter((one) => one.kind === gapKind)).toEqual([]);
  });
});

describe('what the disk can do', () => {
  test('R11 A14 a torn tail is cut at the last good line; the stream stays', () => {
    const machine = filled(3);
    machine.disk.crashAtStep(1);
    expect(() => machine.outbox.append(fact(4, { data: { text: 'x'.repeat(500) } }))).toThrow(OutboxRefusedError);
    machine.reopenAfter('powerLoss');
    expect(machine.outbox.append(fact(5)).seq).toBe(4);
    expect(places(drain(machine.outbox))).toEqual(['a1', 'a2', 'a3', 'a4']);
  });

  test('A15 a bit flip in the middle is a gap that names the number, and a new stream', () => {
    const machine = filled(5);
    const [file] = segments(machine);
    const lineBytes = (file?.size ?? 0) / 5;
    machine.disk.flipBit(file?.path ?? '', Math.floor(lineBytes * 2.5) * 8);
    const { stream } = machine.outbox.stats();
    machine.reopenAfter('kill');
    const sent = drain(machine.outbox);
    expect(places(sent)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'b1']);
    expect(sent.map((one) => one.kind === gapKind)).toEqual([false, false, true, false, false, true]);
    expect(sent.at(-1)?.data).toMatchObject({ missing: [{ stream, from: 3, to: 3 }], previous: { stream, seq: 5 } });
    expect(machine.outbox.append(fact(6))).toMatchObject({ seq: 2 });
  });

  test('a bit flip in the last accepted fact is no torn tail: the witness knows that it was accepted', () => {
    const machine = filled(3);
    const [file] = segments(machine);
    machine.disk.flipBit(file?.path ?? '', ((file?.size ?? 0) - 20) * 8);
    machine.reopenAfter('kill');
    const sent = drain(machine.outbox);
    expect(places(sent)).toEqual(['a1', 'a2', 'b1']);
    expect(sent.at(-1)?.data).toMatchObject({ missing: [{ from: 3, to: 3 }] });
  });

  test('damage that shows up while the agent runs is found by the next page', () => {
    const machine = filled(5);
    const [file] = segments(machine);
    machine.disk.flipBit(file?.path ?? '', 4_000);
    const sent = drain(machine.outbox);
    expect(sent.filter((one) => one.kind === gapKind)).toHaveLength(2);
    expect(places(sent).at(-1)).toBe('b1');
  });

  test('an old copy put back is noticed: the numbers that are gone are named and never used again', () => {
    const machine = filled(3);
    const copy = machine.disk.save(paths.directory);
    machine.outbox.append(fact(4));
    machine.outbox.append(fact(5));
    machine.disk.restore(paths.directory, copy);
    machine.reopenAfter('kill');
    const sent = drain(machine.outbox);
    expect(places(sent)).toEqual(['a1', 'a2', 'a3', 'b1']);
    expect(sent.at(-1)?.data).toMatchObject({ missing: [{ from: 4, to: 5 }] });
  });

  test('an old copy of the witness alone is noticed as well', () => {
    const machine = filled(1);
    const copy = machine.disk.read(paths.witness) ?? '';
    for (let number = 2; number <= 4; number++) machine.outbox.append(fact(number));
    machine.disk.put(paths.witness, copy);
    machine.reopenAfter('kill');
    const sent = drain(machine.outbox);
    expect(places(sent)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1']);
    expect(sent.at(-1)?.data).toMatchObject({ missing: [{ from: 5, to: null }] });
  });

  test('without a twin old copies of both cannot be noticed here; the receiver sees the fork and asks for a new stream', () => {
    const machine = filled(3);
    const [outboxCopy, witnessCopy] = [machine.disk.save(paths.directory), machine.disk.read(paths.witness) ?? ''];
    const lost = machine.outbox.append(fact(4));
    machine.disk.restore(paths.directory, outboxCopy);
    machine.disk.put(paths.witness, witnessCopy);
    machine.reopenAfter('kill');
    const other = machine.outbox.append(fact(40));
    expect([other.stream, other.seq]).toEqual([lost.stream, lost.seq]);
    expect(other.id).not.toBe(lost.id);
    const opened = machine.outbox.startNewStream('the receiver holds another report of number 4');
    expect(opened.seq).toBe(1);
    expect(gapDataOf(opened)).toMatchObject({ missing: [], previous: { stream: lost.stream, seq: 4 } });
    expect(places(drain(machine.outbox)).slice(-2)).toEqual(['a4', 'b1']);
  });

  describe('a twin of the witness on another file system', () => {
    const twinned = (count: number) => {
      const machine = new OutboxMachine(1, {}, { hasTwin: true });
      for (let number = 1; number <= count; number++) machine.outbox.append(fact(number));
      return machine;
    };
    const oldCopies = (machine: OutboxMachine) => {
      const outbox = machine.disk.save(paths.directory);
      const witness = machine.disk.read(paths.witness) ?? '';
      return () => {
        machine.disk.restore(paths.directory, outbox);
        machine.disk.put(paths.witness, witness);
      };
    };

    test('notices old copies of both, as when the whole state directory comes from a backup', () => {
      const machine = twinned(3);
      const restore = oldCopies(machine);
      const lost = machine.outbox.append(fact(4));
      restore();
      machine.reopenAfter('kill');
      const other = machine.outbox.append(fact(40));
      expect(other.stream).not.toBe(lost.stream);
      const sent = drain(machine.outbox);
      expect(places(sent)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
      expect(sent[3]?.data).toMatchObject({ missing: [{ stream: lost.stream, from: 4, to: 4 }] });
      expect(places(drain(machine.reopenAfter('kill')))).toEqual([]);
    });

    test('notices it also after streams have changed', () => {
      const machine = twinned(3);
      const restore = oldCopies(machine);
      machine.outbox.startNewStream('the receiver says so');
      const lost = machine.outbox.append(fact(4));
      restore();
      machine.reopenAfter('kill');
      const [opened] = drain(machine.outbox).slice(-1);
      expect(opened?.data).toMatchObject({ missing: [{ stream: lost.stream, from: 1, to: 2 }] });
    });

    test('is written once its directory is there, and never makes one', () => {
      const machine = twinned(0);
      machine.disk.wipe('/data');
      machine.reopenAfter('kill').append(fact(1));
      expect(machine.disk.list(dirname(twinPath))).toBeUndefined();
      machine.disk.ensureDirectory(dirname(twinPath));
      machine.outbox.append(fact(2));
      expect(machine.disk.read(twinPath)).toBeDefined();
    });

    test.each([
      [
        'cannot be written',
        (disk: MemoryDisk) => disk.fail({ step: 'write', errno: 'ENOSPC', path: twinPath, times: 99 }),
      ],
      ['cannot be read', (disk: MemoryDisk) => disk.fail({ step: 'read', errno: 'EIO', path: twinPath, times: 99 })],
      ['is damaged', (disk: MemoryDisk) => disk.put(twinPath, 'rubbish')],
      ['is gone', (disk: MemoryDisk) => disk.vanish(twinPath)],
      ['lags behind', () => {}],
    ])('one that %s costs nothing', (what, damage) => {
      const machine = twinned(2);
      const old = machine.disk.read(twinPath) ?? '';
      machine.outbox.append(fact(3));
      damage(machine.disk);
      if (what === 'lags behind') machine.disk.put(twinPath, old);
      machine.outbox.append(fact(4));
      if (what === 'lags behind') machine.disk.put(twinPath, old);
      machine.reopenAfter('kill').append(fact(5));
      expect(places(drain(machine.outbox))).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
    });

    test('saves the stream where the witness itself is gone or damaged', () => {
      const machine = twinned(3);
      machine.disk.vanish(paths.witness);
      machine.reopenAfter('kill').append(fact(4));
      machine.disk.put(paths.witness, 'rubbish');
      machine.reopenAfter('kill').append(fact(5));
      expect(places(drain(machine.outbox))).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
    });

    test('of another node (a swapped disk) says nothing', () => {
      const other = twinned(9);
      const machine = twinned(2);
      const foreign = decodeRecord(other.disk.read(twinPath), 1);
      if (foreign.kind !== 'ok') throw new Error(foreign.kind);
      machine.disk.put(twinPath, encodeRecord({ ...(foreign.value as object), node: 'n2' }, 1));
      machine.reopenAfter('kill').append(fact(3));
      expect(places(drain(machine.outbox))).toEqual(['a1', 'a2', 'a3']);
    });

    test('of a newer agent is refused, as all records are', () => {
      const machine = twinned(2);
      machine.disk.put(twinPath, encodeRecord({}, 2));
      expect(() => machine.reopenAfter('kill')).toThrow(OutboxNewerError);
    });
  });

  test('a lost outbox directory is a new stream whose first fact names what was not acknowledged', () => {
    const machine = filled(5);
    const { stream } = machine.outbox.stats();
    machine.outbox.ack({ stream, seq: 2 });
    machine.outbox.append(fact(6));
    machine.disk.wipe(paths.directory);
    machine.reopenAfter('kill');
    const [opened] = drain(machine.outbox);
    expect(opened?.data).toMatchObject({ missing: [{ stream, from: 3, to: 6 }] });
  });

  test('two accidents in a row: what the first one cost is named again when its announcement is lost too', () => {
    const machine = filled(2);
    const { stream } = machine.outbox.stats();
    machine.disk.wipe(paths.directory);
    const second = machine.reopenAfter('kill').stats().stream;
    machine.disk.wipe(paths.directory);
    machine.reopenAfter('kill');
    const [opened] = drain(machine.outbox);
    expect(opened?.data).toMatchObject({
      missing: [
        { stream, from: 1, to: 2 },
        { stream: second, from: 1, to: 1 },
      ],
    });
    machine.outbox.append(fact(3));
    machine.disk.wipe(paths.directory);
    machine.reopenAfter('kill');
    const [third] = drain(machine.outbox);
    expect(third?.data).toMatchObject({ missing: [{ stream: opened?.stream, from: 2, to: 2 }] });
  });

  test('A21 a refused fact that cannot be taken back does not come back under the number of another', () => {
    const machine = filled(3, { segmentBytes: 1_000 });
    machine.disk.fail({ step: 'sync', errno: 'EIO', path: '.jsonl', times: 2 });
    expect(() => machine.outbox.append(fact(4))).toThrow(OutboxRefusedError);
    const accepted = machine.outbox.append(fact(5, { data: { text: 'x'.repeat(900) } }));
    for (let seed = 0; seed < 20; seed++) {
      machine.reopenAfter('powerLoss');
      expect(machine.outbox.tail(1)).toEqual([accepted]);
    }
  });

  test('a lost witness is a new stream, since nobody can tell how far the history went', () => {
    const machine = filled(2);
    machine.disk.remove(paths.witness);
    machine.reopenAfter('kill');
    expect(drain(machine.outbox).at(-1)?.data).toMatchObject({ missing: [{ from: 3, to: null }] });
  });

  test('with both lost the numbers start anew under another stream', () => {
    const machine = filled(2);
    const { stream } = machine.outbox.stats();
    machine.disk.wipe('/state');
    machine.disk.wipe('/elsewhere');
    machine.reopenAfter('kill');
    expect(machine.outbox.append(fact(1)).stream).not.toBe(stream);
  });

  test('a segment file that was removed by hand is named', () => {
    const machine = filled(20, { segmentBytes: 1_000 });
    const file = segments(machine)[1];
    machine.disk.remove(file?.path ?? '');
    machine.reopenAfter('kill');
    const sent = drain(machine.outbox);
    const named = sent.filter((one) => one.kind === gapKind);
    expect(named).toHaveLength(2);
    const [inPlace] = named;
    expect(gapDataOf(named[1] ?? fail())?.missing).toEqual([
      { stream: inPlace?.stream, from: inPlace?.from, to: inPlace?.seq },
    ]);
    expect(sent.filter((one) => one.kind !== gapKind).length + (inPlace?.seq ?? 0) - (inPlace?.from ?? 0) + 1).toBe(20);
  });

  test('A16 I22 records of a newer agent are refused and not touched', () => {
    const machine = filled(1);
    const [file] = segments(machine);
    for (const path of [file?.path ?? '', paths.witness, `${paths.directory}/position`]) {
      const before = machine.disk.read(path);
      machine.disk.put(path, encodeRecord({ some: 'thing' }, 2));
      const all = machine.disk.files();
      expect(() => machine.open()).toThrow(OutboxNewerError);
      expect(machine.disk.files()).toEqual(all);
      machine.disk.put(path, before ?? '');
    }
  });

  test('A14 an empty, zeroed or half position file loses nothing', () => {
    for (const content of ['', '\0\0\0\0\0\0', '0badc0de 1 {"acked"']) {
      const machine = filled(3);
      machine.outbox.ack({ stream: machine.outbox.stats().stream, seq: 2 });
      machine.disk.put(`${paths.directory}/position`, content);
      machine.reopenAfter('kill');
      expect(places(drain(machine.outbox))).toEqual(['a1', 'a2', 'a3']);
    }
  });

  test('unreadable is not absent', () => {
    const machine = filled(1);
    machine.disk.fail({ step: 'read', errno: 'EIO', path: '.jsonl' });
    expect(() => machine.open()).toThrow(OutboxUnreadableError);
  });

  test('A19 A21 a fact that the disk refuses is not accepted, its number is not used up, and the next one takes it', () => {
    const steps = ['write', 'sync', 'rename', 'syncDirectory'] as const;
    for (const step of steps) {
      for (let skip = 0; skip < 3; skip++) {
        const machine = filled(2);
        machine.disk.fail({ step, errno: 'EIO', skip });
        let refused = 0;
        for (let number = 3; number <= 6; number++) {
          try {
            machine.outbox.append(fact(number));
          } catch (error) {
            expect(error).toBeInstanceOf(OutboxRefusedError);
            expect(machine.outbox.stats().refusing).toContain('EIO');
            refused++;
          }
        }
        expect(refused, `${step} ${skip}`).toBe(1);
        machine.reopenAfter('powerLoss');
        expect(places(drain(machine.outbox)), `${step} ${skip}`).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
      }
    }
  });

  test('A19 a full disk gives up acknowledged facts before it refuses a new one', () => {
    const machine = filled(40, { segmentBytes: 1_000 });
    machine.outbox.ack({ stream: machine.outbox.stats().stream, seq: 20 });
    const used = machine.disk.files().reduce((sum, file) => sum + file.size, 0);
    machine.disk.capacityBytes = used + 400;
    let accepted = 0;
    expect(() => {
      for (let number = 41; number < 200; number++, accepted++) machine.outbox.append(fact(number));
    }).toThrow(OutboxRefusedError);
    expect(accepted).toBeGreaterThan(15);
    machine.disk.capacityBytes = Number.POSITIVE_INFINITY;
    machine.reopenAfter('powerLoss');
    const waiting = drain(machine.outbox);
    expect(places(waiting)).toEqual(Array.from({ length: 20 + accepted }, (_, index) => `a${21 + index}`));
  });
});

describe('bounds', () => {
  test('a fact that is too large is cut, and says so', () => {
    const machine = new OutboxMachine();
    const stored = machine.outbox.append(
      fact(1, { data: { log: 'ä"\n'.repeat(100_000), lines: Array(9_000).fill('line'), code: 2 } }),
    );
    expect(stored.cutFromBytes).toBeGreaterThan(400_000);
    expect(JSON.stringify(stored.data)).toContain('cut: 300000 characters');
    expect(stored.data['code']).toBe(2);
    expect(segments(machine)[0]?.size).toBeLessThanOrEqual(64 * 1024);
    expect(machine.outbox.page(1)).toEqual([stored]);
    const flat = machine.outbox.append(
      fact(2, { data: Object.fromEntries(Array.from({ length: 9_000 }, (_, key) => [`key${key}`, 'value'])) }),
    );
    expect(flat.data).toMatchObject({ cutJson: expect.stringContaining('key0') });
    expect(machine.reopenAfter('kill').page(2)).toEqual([stored, flat]);
  });

  test('data that is not JSON is a mistake of ours and takes no number', () => {
    const machine = new OutboxMachine();
    expect(() => machine.outbox.append(fact(1, { data: { id: 1n } }))).toThrow('is not JSON');
    expect(machine.outbox.append(fact(2)).seq).toBe(1);
  });

  test('R05 I25 at the cap the oldest unimportant facts go first, a gap names them, membership stays', () => {
    const limits = { facts: 400, segmentBytes: 4_000, keepHead: 10 };
    const machine = new OutboxMachine(3, limits);
    for (let number = 1; number <= 2_000; number++) {
      const important = number % 25 === 0;
      machine.outbox.append(fact(number, { important, kind: important ? 'member.removed' : 'process.ready' }));
      expect(machine.outbox.stats().facts).toBeLessThanOrEqual(400);
    }
    machine.reopenAfter('powerLoss');
    const { dropped } = machine.outbox.stats();
    const sent = drain(machine.outbox);
    expect(sent.filter((one) => one.important && one.kind !== gapKind)).toHaveLength(80);
    expect(places(sent.slice(0, 10))).toEqual(Array.from({ length: 10 }, (_, index) => `a${index + 1}`));
    let next = 1;
    for (const one of sent) {
      expect(one.from).toBe(next);
      next = one.seq + 1;
      if (one.kind === gapKind)
        expect(gapDataOf(one)?.missing).toEqual([{ stream: one.stream, from: one.from, to: one.seq }]);
    }
    expect(next).toBe(2_001);
    const counted = sent.flatMap((one) => Object.values(gapDataOf(one)?.dropped ?? {})).reduce((a, b) => a + b, 0);
    expect(counted).toBe(2_000 - sent.filter((one) => one.kind !== gapKind).length);
    expect(dropped).toBe(0); // it counts for this process, which has dropped none
  });

  test('R05 when only membership is left the oldest of it goes, named; files do not pile up', () => {
    const machine = new OutboxMachine(3, { facts: 200, segmentBytes: 3_000, keepHead: 5 });
    for (let number = 1; number <= 5_000; number++) machine.outbox.append(fact(number, { important: true }));
    expect(segments(machine).length).toBeLessThan(60);
    const sent = drain(machine.outbox);
    expect(sent.at(0)?.from).toBe(1);
    expect(sent.at(-1)?.data).toEqual({ number: 5_000 });
    expect(sent.every((one, index) => index === 0 || one.from === (sent[index - 1]?.seq ?? 0) + 1)).toBe(true);
  });

  test('R05 the same by size', () => {
    const machine = new OutboxMachine(3, { bytes: 100_000, segmentBytes: 8_000, keepHead: 5 });
    for (let number = 1; number <= 300; number++)
      machine.outbox.append(fact(number, { data: { text: 'x'.repeat(1_500) } }));
    expect(machine.outbox.stats().bytes).toBeLessThanOrEqual(100_000);
    expect(machine.outbox.stats().dropped).toBeGreaterThan(200);
    expect(drain(machine.outbox).at(-1)?.seq).toBe(300);
  });
});

describe('the receiver asks', () => {
  test('R13 a parked fact stays visible over a restart; only the head can be skipped, and that leaves a gap', () => {
    const machine = filled(3);
    const [first, second] = machine.outbox.page(2);
    if (first === undefined || second === undefined) throw new Error('nothing waits');
    machine.outbox.park(first, '400 Bad Request');
    expect(machine.reopenAfter('powerLoss').parked).toMatchObject({ seq: 1, why: '400 Bad Request' });
    expect(() => machine.outbox.skip(second, 'no')).toThrow(OutboxPlaceError);
    const gap = machine.outbox.skip(first, 'the receiver cannot read it');
    expect(machine.outbox.parked).toBeUndefined();
    expect(gapDataOf(gap)).toMatchObject({ missing: [{ from: 1, to: 1 }], dropped: { 'test.happened': 1 } });
    const sent = drain(machine.reopenAfter('powerLoss'));
    expect(sent.map((one) => one.id)[0]).toBe(gap.id);
    expect(places(sent)).toEqual(['a1', 'a2', 'a3']);
  });

  test('R13 the only fact can be skipped, and the history is trusted afterwards', () => {
    const machine = filled(1);
    const [head] = machine.outbox.page(1);
    machine.outbox.skip(head ?? fail(), 'poison');
    machine.reopenAfter('kill');
    machine.outbox.append(fact(2));
    machine.reopenAfter('kill');
    expect(places(drain(machine.outbox))).toEqual(['a1', 'a2']);
  });

  test('R06 a replay sends the same ids again; what is gone is a gap in front', () => {
    const machine = filled(40, { segmentBytes: 1_000 });
    const { stream } = machine.outbox.stats();
    const all = drain(machine.outbox);
    expect(machine.outbox.replayFrom({ stream, seq: 31 })).toBeUndefined();
    expect(drain(machine.reopenAfter('powerLoss'))).toEqual(all.slice(30));
    machine.clock.advanceSync(8 * day);
    machine.outbox.maintain();
    const missing = machine.outbox.replayFrom({ stream, seq: 5 });
    expect(missing).toMatchObject({ from: 5 });
    const again = drain(machine.reopenAfter('powerLoss'));
    expect(again[0]).toMatchObject({ from: 5, seq: missing?.to, kind: gapKind });
    expect(again.slice(1)).toEqual(all.slice(missing?.to ?? 0));
    machine.outbox.replayFrom();
    expect(drain(machine.reopenAfter('kill'))).toEqual(again);
    expect(() => machine.outbox.replayFrom({ stream, seq: 42 })).toThrow(OutboxPlaceError);
    expect(() => machine.outbox.replayFrom({ stream: 'ffffffffffffffff', seq: 1 })).toThrow(OutboxPlaceError);
  });

  test('people read acknowledged facts too, from a place or from the end', () => {
    const machine = filled(10, { segmentBytes: 1_000 });
    const { stream } = machine.outbox.stats();
    drain(machine.outbox);
    expect(places(machine.outbox.read({ limit: 2 }))).toEqual(['a1', 'a2']);
    expect(places(machine.outbox.read({ after: { stream, seq: 8 }, limit: 9 }))).toEqual(['a9', 'a10']);
    expect(places(machine.outbox.tail(3))).toEqual(['a8', 'a9', 'a10']);
  });
});

function fail(): never {
  throw new Error('expected something to be there');
}
