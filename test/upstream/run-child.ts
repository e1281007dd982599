// A process of its own for outbox-real.test.ts: it is killed, and it is given little memory.
//   run-child.ts write DIR      appends for ever; prints `accepted STREAM SEQ ID` only after append has returned
//   run-child.ts fill DIR N     writes N facts without syncing them (to have a backlog quickly)
//   run-child.ts drain DIR      sends everything in pages of 100; prints what it took in a JSON line
import {
  appendFileSync,
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import type { Disk } from '../../src/base/disk.ts';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { systemRandom } from '../../src/base/system-random.ts';
import { Outbox } from '../../src/upstream/outbox.ts';
import { fact } from './outbox-fixture.ts';

/** The witness is written once, at the end. */
let witness: Uint8Array | string | undefined;

/** The real disk without its syncs, and without a witness for each fact. */
const quickDisk: Disk = {
  ...realDisk,
  replace(path, content) {
    if (path.endsWith('/witness')) {
      witness = content;
      return;
    }
    writeFileSync(`${path}.tmp`, content);
    renameSync(`${path}.tmp`, path);
  },
  openAppend(path) {
    const fd = openSync(path, 'a');
    return {
      get size() {
        return fstatSync(fd).size;
      },
      append: (content) => appendFileSync(fd, content),
      truncate: (size) => ftruncateSync(fd, size),
      close: () => closeSync(fd),
    };
  },
};

const [mode = '', directory = '', count = '0'] = process.argv.slice(2);

function open(disk: Disk): Outbox {
  return new Outbox({
    directory: `${directory}/outbox`,
    witness: `${directory}/witness`,
    disk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    limits: { segmentBytes: mode === 'write' ? 16 * 1024 : 1024 * 1024 },
  });
}

function say(text: string): void {
  writeSync(1, `${text}\n`);
}

if (mode === 'write') {
  const outbox = open(realDisk);
  for (let number = 1; ; number++) {
    const { stream, seq, id } = outbox.append(fact(number, { important: number % 3 === 0 }));
    say(`accepted ${stream} ${seq} ${id}`);
    const last = number % 25 === 0 ? outbox.page(20).at(-1) : undefined;
    if (last !== undefined) outbox.ack(last);
  }
} else if (mode === 'fill') {
  const outbox = open(quickDisk);
  const text = 'x'.repeat(150);
  for (let number = 1; number <= Number(count); number++) outbox.append(fact(number, { data: { number, text } }));
  outbox.close();
  if (witness !== undefined) realDisk.replace(`${directory}/witness`, witness);
} else if (mode === 'drain') {
  const begun = performance.now();
  const outbox = open(quickDisk);
  const openMs = performance.now() - begun;
  let sent = 0;
  let peakHeap = 0;
  for (let page = outbox.page(100); page.length > 0; page = outbox.page(100)) {
    sent += page.length;
    const last = page.at(-1);
    if (last !== undefined) outbox.ack(last);
    if (sent % 1_000 === 0) peakHeap = Math.max(peakHeap, process.memoryUsage().heapUsed);
  }
  const { waiting, dropped, bytes } = outbox.stats();
  const drainMs = performance.now() - begun - openMs;
  say(JSON.stringify({ sent, waiting, dropped, bytes, openMs, drainMs, peakHeapMb: peakHeap / 2 ** 20 }));
}
