// Goal: no number of a life is used twice, also when the records of the earlier ones are gone: whoever remembers an end by its number
// would take a new one for it.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { defaultLifeLimits, Lives } from '../../src/supervisor/lives.ts';
import { temporaryDirectory } from '../support/etcd-process.ts';

const spec = {
  prefix: [],
  binary: '/bin/true',
  args: [],
  environmentNames: [],
  identity: '/data',
  startedAtMs: 0,
  bootId: 'boot',
};

test('numbers go on where the records are, and where the owner remembers more', async () => {
  using place = temporaryDirectory();
  const directory = join(place.path, 'lives');
  let remembered = 0;
  const options = { directory, disk: realDisk, clock: systemClock, log: silentLog, limits: defaultLifeLimits };
  const lives = new Lives({ ...options, remembered: () => remembered });
  expect((await lives.create(spec)).number).toBe(1);
  expect((await lives.create(spec)).number).toBe(2);
  rmSync(directory, { recursive: true });
  remembered = 2;
  expect((await lives.create(spec)).number).toBe(3);
  expect((await lives.create(spec)).number).toBe(4);
});
