// An agent in small: recovers, and keeps one child running by starting it anew; for tests that kill the agent itself.
// Arguments: ROOT MODE. Each line on stdout is a JSON fact. MODE `cycle` also stops and restarts the child for ever.
import { join } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { directLauncher } from '../../src/supervisor/run.ts';
import { Supervisor } from '../../src/supervisor/supervisor.ts';

const [root = '', mode = ''] = process.argv.slice(2);
const identity = join(root, 'data');

function say(fact: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(fact)}\n`);
}

const supervisor = new Supervisor({
  directory: join(root, 'run'),
  lockFile: `${identity}.lock`,
  launcher: directLauncher(join(import.meta.dirname, '../../src/supervisor/keeper.sh')),
  disk: realDisk,
  clock: systemClock,
  log: silentLog,
  signal: new AbortController().signal,
  onLine: () => {},
  isDecisive: () => false,
  onEnd: (life, end) => say({ ended: life.number, exit: end.exit, asked: end.stop?.reason }),
  onChange: () => {},
});

const spec = {
  binary: '/bin/sh',
  // Says so if a second one ever runs beside it.
  args: [
    '-c',
    `mkdir "$1.running" || echo SECOND >>"$1.seconds"; trap 'rmdir "$1.running"; exit 7' TERM; while :; do sleep 0.02; done`,
    'stub',
    identity,
  ],
  environment: { PATH: '/usr/bin:/bin' },
  identity,
};

say({ recovered: await supervisor.recover() });
for (;;) {
  if (supervisor.view().phase !== 'starting') {
    say({ starting: true });
    const life = await supervisor.start(spec);
    say({ started: life.number, pid: life.pid, adopted: life.adopted });
  }
  if (mode !== 'cycle') break;
  say({ stopping: true });
  const end = await supervisor.stop({ graceMs: 5000, by: 'agent-process', reason: 'cycle' });
  say({ stopped: end?.exit });
}
