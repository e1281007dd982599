import { describe, expect, test } from 'vitest';
import { Journal } from '../../src/agent/journal.ts';
import { StateNotWrittenError } from '../../src/agent/state/durable-value.ts';
import { encodeRecord } from '../../src/base/record.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

function machine(seed = 1): { disk: MemoryDisk; open: () => Journal } {
  const random = new SeededRandom(seed);
  const disk = new MemoryDisk(random);
  disk.ensureDirectory('/state');
  const clock = new FakeClock();
  return { disk, open: () => new Journal({ path: '/state/journal', disk, clock, random }) };
}

describe('the journal', () => {
  test('an act that was begun and never ended is known after a crash', () => {
    const { open } = machine();
    const journal = open();
    journal.end(journal.begin('startMember', 'it is to run'), 'done', '');
    const begun = journal.begin('archiveData', 'removed');
    expect(open().interrupted()).toEqual([begun]);
  });

  test('A21 an intent that could not be written is not taken for one', () => {
    const { disk, open } = machine();
    const journal = open();
    disk.fail({ step: 'sync', errno: 'EIO' });
    expect(() => journal.begin('recordRemoval', 'removed')).toThrow(StateNotWrittenError);
    disk.heal();
    expect(journal.interrupted()).toEqual([]);
    expect(open().interrupted()).toEqual([]);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    'A20 after a power cut each intent whose begin returned is there (seed %i)',
    (seed) => {
      const { disk, open } = machine(seed);
      const journal = open();
      const returned: string[] = [];
      disk.crashAtStep(1 + seed * 3);
      try {
        for (let count = 0; count < 50; count++) returned.push(journal.begin(`act ${count}`, '').operation);
      } catch {
        // The machine went down within a write.
      }
      expect(disk.down).toBe(true);
      disk.reboot('powerLoss');
      const kept = open()
        .interrupted()
        .map((entry) => entry.operation);
      expect(kept.slice(0, returned.length)).toEqual(returned);
    },
  );

  test('A16 a journal of a newer agent is not written over, and no act is journalled in it', () => {
    const { disk, open } = machine();
    open().begin('startMember', '');
    const newer = `${new TextDecoder().decode(disk.read('/state/journal'))}${encodeRecord({ a: 'format of tomorrow' }, 2)}`;
    disk.replace('/state/journal', newer);
    const journal = open();
    expect(journal.look()).toMatch(/journal.*version 2/);
    expect(() => journal.begin('recordRemoval', '')).toThrow(StateNotWrittenError);
    expect(new TextDecoder().decode(disk.read('/state/journal'))).toBe(newer);
  });

  test('A19 one that cannot be opened is opened as soon as that is possible', () => {
    const { disk, open } = machine();
    disk.fail({ step: 'create', errno: 'EROFS', times: 2 });
    const journal = open();
    expect(journal.look()).toMatch(/EROFS/);
    expect(journal.look()).toBeUndefined();
    expect(journal.begin('startMember', '').what).toBe('startMember');
  });

  test('it stays small', () => {
    const { disk, open } = machine();
    const journal = open();
    for (let count = 0; count < 3_000; count++) journal.end(journal.begin('startMember', 'x'.repeat(100)), 'done', '');
    expect(disk.read('/state/journal')?.byteLength).toBeLessThan(400 * 1024);
    expect(journal.interrupted()).toEqual([]);
  });
});
