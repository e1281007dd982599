import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { FleetNode } from './fleet.ts';

/** How a command of the agent ended. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const root = join(import.meta.dirname, '../..');

/** `etcd-node-agent ARGUMENTS` against one node: the bundle where there is one, else from source. */
export async function command(node: FleetNode, ...args: readonly string[]): Promise<CommandResult> {
  const bundle = process.env['ETCD_NODE_AGENT_BUNDLE'];
  return bundle === undefined
    ? await script(node, ...args)
    : await run(process.execPath, [bundle, ...args, '--config', node.configFile]);
}

/** The same through `scripts/etcd-node-agent`, as a person at a clone calls it. */
export async function script(node: FleetNode, ...args: readonly string[]): Promise<CommandResult> {
  return await run(join(root, 'scripts/etcd-node-agent'), [...args, '--config', node.configFile]);
}

function run(program: string, args: readonly string[]): Promise<CommandResult> {
  const env = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' };
  return new Promise((resolve, reject) => {
    execFile(program, args, { env, encoding: 'utf8', timeout: 60_000 }, (error, stdout, stderr) => {
      if (error === null) resolve({ code: 0, stdout, stderr });
      else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
      else reject(error);
    });
  });
}
