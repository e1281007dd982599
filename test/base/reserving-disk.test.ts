import { describe, expect, test } from 'vitest';
import { ReservingDisk } from '../../src/base/reserving-disk.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const bytes = 64 * 1024;

function full(): { memory: MemoryDisk; disk: ReservingDisk } {
  const memory = new MemoryDisk(new SeededRandom(1));
  memory.ensureDirectory('/state');
  const disk = new ReservingDisk({ disk: memory, path: '/state/reserve', bytes });
  expect(disk.refill()).toBe(true);
  memory.capacityBytes = bytes + 10;
  return { memory, disk };
}

describe('C14 the reserve on a full disk', () => {
  test('lets a record be replaced', () => {
    const { disk } = full();
    disk.replace('/state/intent', 'stopped'.repeat(10));
    expect(new TextDecoder().decode(disk.read('/state/intent'))).toBe('stopped'.repeat(10));
    expect(disk.held).toBe(false);
  });

  test('lets a line be appended once, not twice and not torn', () => {
    const { disk } = full();
    const file = disk.openAppend('/state/journal');
    file.append('0123456789abcdef\n');
    expect(new TextDecoder().decode(disk.read('/state/journal'))).toBe('0123456789abcdef\n');
  });

  test('is taken up again when there is space, and not before', () => {
    const { memory, disk } = full();
    disk.replace('/state/intent', 'x'.repeat(100));
    expect(disk.refill()).toBe(false);
    expect(memory.read('/state/reserve')).toBeUndefined();
    memory.capacityBytes = 10 * bytes;
    expect(disk.refill()).toBe(true);
    expect(memory.read('/state/reserve')?.byteLength).toBe(bytes);
  });

  test('is written piece by piece, and what is there counts at once', () => {
    const memory = new MemoryDisk(new SeededRandom(1));
    memory.ensureDirectory('/state');
    const size = 9 * 1024 * 1024;
    const disk = new ReservingDisk({ disk: memory, path: '/state/reserve', bytes: size });
    expect([disk.refillSome(), disk.refillSome(), disk.held]).toEqual(['more', 'more', true]);
    memory.capacityBytes = memory.read('/state/reserve')?.byteLength ?? 0;
    expect(disk.refillSome()).toBe('noSpace');
    expect(disk.held, 'a part is better than nothing').toBe(true);
    disk.replace('/state/intent', 'stopped');
    memory.capacityBytes = 2 * size;
    expect(disk.refill()).toBe(true);
    expect(disk.refillSome()).toBe('whole');
  });

  test('of the agent before is known at the first piece', () => {
    const { memory } = full();
    const next = new ReservingDisk({ disk: memory, path: '/state/reserve', bytes });
    expect(next.refillSome()).toBe('whole');
    next.replace('/state/intent', 'x'.repeat(100));
    expect(next.held).toBe(false);
  });

  test('that cannot even be removed harms nobody', () => {
    const { memory, disk } = full();
    memory.fail({ step: 'remove', errno: 'EROFS', times: 100 });
    expect(() => disk.replace('/state/intent', 'x'.repeat(100))).toThrow(/ENOSPC/);
    expect(new ReservingDisk({ disk: memory, path: '/elsewhere/reserve', bytes }).refillSome()).toBe('noSpace');
  });

  test('without it a full disk is an error', () => {
    const { disk } = full();
    disk.replace('/state/one', 'x'.repeat(bytes - 100));
    expect(() => disk.replace('/state/two', 'x'.repeat(bytes))).toThrow(/ENOSPC/);
  });
});
