import { describe, expect, test } from 'vitest';
import { MemoryDisk } from './memory-disk.ts';
import { SeededRandom } from './seeded-random.ts';

const manySeeds = Array.from({ length: 200 }, (_, seed) => new SeededRandom(seed));
const text = (disk: MemoryDisk, path: string) => new TextDecoder().decode(disk.read(path));

/** How often each outcome of `story` came up over all seeds. */
function outcomes(story: (disk: MemoryDisk) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const random of manySeeds) {
    const disk = new MemoryDisk(random);
    disk.ensureDirectory('/d');
    const outcome = story(disk);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

describe('a disk in memory that may lose what was not synced', () => {
  test('what a call returned for survives a power loss', () => {
    const seen = outcomes((disk) => {
      const file = disk.openAppend('/d/log');
      file.append('one');
      disk.replace('/d/state', 'two');
      disk.rename('/d/state', '/d/other');
      disk.reboot('powerLoss');
      return `${text(disk, '/d/log')} ${text(disk, '/d/other')} ${disk.list('/d')?.join()}`;
    });
    expect(seen).toEqual({ 'one two log,other': 200 });
  });

  test('an append whose sync did not return is kept, lost or torn; what was synced before it stays', () => {
    const seen = outcomes((disk) => {
      const file = disk.openAppend('/d/log');
      file.append('old|');
      disk.crashAtStep(2);
      expect(() => file.append('new')).toThrow('crash within sync');
      disk.reboot('powerLoss');
      const content = text(disk, '/d/log');
      expect(content.startsWith('old|')).toBe(true);
      return content === 'old|' ? 'lost' : content === 'old|new' ? 'kept' : 'torn';
    });
    expect(Object.keys(seen).sort()).toEqual(['kept', 'lost', 'torn']);
  });

  test('the same append is whole when only the process died', () => {
    const seen = outcomes((disk) => {
      const file = disk.openAppend('/d/log');
      disk.crashAtStep(2);
      expect(() => file.append('new')).toThrow('crash');
      disk.reboot('kill');
      return text(disk, '/d/log');
    });
    expect(seen).toEqual({ new: 200 });
  });

  test('a rename whose directory sync did not return may be undone; the file is old or new, never mixed', () => {
    const seen = outcomes((disk) => {
      disk.replace('/d/state', 'old');
      disk.crashAtStep(5);
      expect(() => disk.replace('/d/state', 'new')).toThrow('crash within syncDirectory');
      disk.reboot('powerLoss');
      return text(disk, '/d/state');
    });
    expect(Object.keys(seen).sort()).toEqual(['new', 'old']);
  });

  test('a failed sync is not made good by a later one', () => {
    const seen = outcomes((disk) => {
      const file = disk.openAppend('/d/log');
      disk.fail({ step: 'sync', errno: 'EIO' });
      expect(() => file.append('aaaa')).toThrow('EIO');
      file.append('bbbb');
      disk.reboot('powerLoss');
      const content = text(disk, '/d/log');
      expect(content.slice(4)).toBe('bbbb');
      return content === 'aaaabbbb' ? 'kept' : 'damaged';
    });
    expect(Object.keys(seen).sort()).toEqual(['damaged', 'kept']);
  });

  test('a full disk takes a part of the write and says ENOSPC', () => {
    const disk = new MemoryDisk(new SeededRandom(1));
    disk.ensureDirectory('/d');
    const file = disk.openAppend('/d/log');
    disk.capacityBytes = 6;
    expect(() => file.append('12345678')).toThrow('ENOSPC');
    expect(text(disk, '/d/log')).toBe('123456');
    file.truncate(0);
    file.append('1234');
    expect(() => disk.replace('/d/state', '12345')).toThrow('ENOSPC');
    expect(disk.list('/d')).toEqual(['log']);
  });
});
