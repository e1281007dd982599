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
  let most = 0;
  const counting = setInterval(() => {
    most = Math.max(most, countEtcd(tmpdir()));
  }, 500);
  counting.unref();
  return () => {
    clearInterval(counting);
    budget.close();
    rmSync(directory, { recursive: true, force: true });
    // Whoever shares the temporary directory with others may have counted theirs; scripts/check makes one of its own.
    process.stdout.write(`etcd processes at once under ${tmpdir()}: at most ${most}\n`);
    if (tmpdir() !== '/tmp' && most > etcdAtOnce) throw new Error(`${most} etcd at once; ${etcdAtOnce} are allowed`);
  };
}

/** The etcd processes with a data directory below this one. */
function countEtcd(directory: string): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return (
        readFileSync(`/proc/${pid}/comm`, 'utf8') === 'etcd\n' &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${directory}/`)
      );
    } catch {
      return false; // not a process, or gone meanwhile
    }
  }).length;
}
