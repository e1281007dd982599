import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../../scripts/bundle.ts';
import { etcdAtOnce, openBudget } from './etcd-budget.ts';

/** Once for all tests on real etcd: bundles the agent (from source each start would cost seconds) and opens the budget. */
export async function setup(): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'agent-bundle-'));
  const file = join(directory, 'etcd-node-agent.mjs');
  await bundle(join(import.meta.dirname, '../../src/cli/agent.ts'), file);
  const budget = await openBudget(directory);
  process.env['ETCD_NODE_AGENT_BUNDLE'] = file;
  process.env['NODE_COMPILE_CACHE'] = join(directory, 'compile-cache');
  process.env['ETCD_TEST_BUDGET'] = budget.path;
  let most: readonly string[] = [];
  const counting = setInterval(() => {
    const running = runningEtcd(tmpdir());
    if (running.length > most.length) most = running;
  }, 500);
  counting.unref();
  return () => {
    clearInterval(counting);
    budget.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    // Whoever shares the temporary directory with others may have counted theirs; scripts/check makes one of its own.
    process.stdout.write(`etcd processes at once under ${tmpdir()}: at most ${most.length} (${most.join(' ')})\n`);
    if (tmpdir() !== '/tmp' && most.length > etcdAtOnce)
      throw new Error(`${most.length} etcd at once; ${etcdAtOnce} are allowed`);
  };
}

/** The data directories below this one on which an etcd runs. */
function runningEtcd(directory: string): readonly string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      if (readFileSync(`/proc/${pid}/comm`, 'utf8') !== 'etcd\n') return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const at = command.indexOf(`${directory}/`);
      return at < 0 ? [] : [command.slice(at + directory.length + 1).split('\0')[0] ?? ''];
    } catch {
      return []; // not a process, or gone meanwhile
    }
  });
}
