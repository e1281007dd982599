/** A process that runs an agent of one line, so that tests can send it signals: run-child.ts CONFIG HOW. */
import { environmentOf } from '../../src/cli/environment.ts';
import { runUntilSignal } from '../../src/cli/run.ts';

const [file = '', how = ''] = process.argv.slice(2);

await runUntilSignal(file, environmentOf({}, ''), async (_config, { log, stop, onReload, readConfig, setLogLevel }) => {
  onReload(async () => {
    const config = readConfig();
    setLogLevel(config.log.level);
    log.warn({ level: config.log.level }, 'reloaded');
  });
  if (how === 'throw') setImmediate(() => JSON.parse('{'));
  if (how === 'reject') void Promise.reject(new Error('nobody waits'));
  if (how === 'fail') throw new Error('a part failed');
  // A timer that nobody cancels must not keep the process.
  setInterval(() => {}, 1000);
  log.warn({}, 'running');
  if (how === 'hang') await new Promise(() => {});
  await new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve()));
});
