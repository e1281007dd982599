import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import treeKill from 'tree-kill';
import { eventually } from '../lab/eventually.ts';
import { killQuietly, processesNaming } from '../lab/processes.ts';

/** What is written into the directory of a demo, so that nothing else is ever swept. */
interface DemoMark {
  readonly kind: 'etcd-node-agent demo';
  /**
   * Arguments that name a process of this demo: configuration files, data directories, and the names of its helpers. The
   * agents come first: what is left of the others is not started again.
   */
  readonly identities: readonly string[];
}

/** Writes the mark. Everything that is started later must have one of `identities` in its command line. */
export function markDemo(directory: string, identities: readonly string[]): void {
  const mark: DemoMark = { kind: 'etcd-node-agent demo', identities };
  writeFileSync(markFile(directory), `${JSON.stringify(mark, undefined, 2)}\n`);
}

/**
 * Ends every process of the demo in `directory` and removes the directory. etcd and the agents live in sessions of their own,
 * so they are found by their command lines, and looked for until none is left. Throws if there is no demo, or if a process
 * outlives SIGKILL for 20 s.
 */
export async function sweep(directory: string): Promise<void> {
  const { identities } = readMark(directory);
  const kill = treesCanBeKilled() ? killTree : killOne;
  await eventually(
    async () => {
      let found = 0;
      for (const identity of identities) {
        const pids = processesNaming(identity);
        found += pids.length;
        await Promise.all(pids.map((pid) => kill(pid)));
      }
      return found === 0;
    },
    { withinMs: 20_000, what: 'the end of all processes of the demo' },
  );
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

function readMark(directory: string): DemoMark {
  if (!existsSync(markFile(directory))) throw new Error(`${directory} is not the directory of a demo`);
  const mark: unknown = JSON.parse(readFileSync(markFile(directory), 'utf8'));
  if (typeof mark === 'object' && mark !== null && 'kind' in mark && mark.kind === 'etcd-node-agent demo') {
    return mark as DemoMark;
  }
  throw new Error(`${markFile(directory)} cannot be read`);
}

function markFile(directory: string): string {
  return join(directory, 'demo.json');
}

/** tree-kill asks `ps` who is a child of whom, and cannot bear it to be missing. */
function treesCanBeKilled(): boolean {
  const path = (process.env['PATH'] ?? '').split(delimiter);
  return path.some((directory) => {
    try {
      accessSync(join(directory, 'ps'), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

async function killTree(pid: number): Promise<void> {
  // An error means that a process has ended meanwhile; the next look says what is left.
  await new Promise<void>((resolve) => treeKill(pid, 'SIGKILL', () => resolve()));
}

async function killOne(pid: number): Promise<void> {
  killQuietly(pid);
}
