import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FleetNode } from './fleet.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/runbook.md'), 'utf8');

/** The commands of one chapter for one place (the word after `sh` at the fence), in their order. Throws if there are none. */
export function commandsOf(chapter: string, place: string): string {
  const body = page.split(/^## /m).find((part) => part.startsWith(`${chapter}\n`));
  const fence = new RegExp(`^( *)\`\`\`sh ${place}\\n([\\s\\S]*?)^ *\`\`\`$`, 'gm');
  const blocks = [...(body ?? '').matchAll(fence)].map(([, indent = '', text = '']) =>
    text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
  if (blocks.length === 0) throw new Error(`the runbook has no commands for ${place} in "${chapter}"`);
  return blocks.join('');
}

/**
 * Runs commands of the runbook at one node, as an operator types them: the examples (addresses, paths, ids) are replaced,
 * `etcd-node-agent` and `etcdctl` are the ones under test. Gives back what was printed. Throws if a command fails.
 */
export function runCommands(
  node: FleetNode,
  commands: string,
  examples: Readonly<Record<string, string>>,
): Promise<string> {
  let script = commands;
  for (const [example, own] of Object.entries(examples)) {
    if (!script.includes(example)) throw new Error(`${example} does not stand in the commands\n${commands}`);
    script = script.replaceAll(example, own);
  }
  const bin = join(node.directory, 'bin');
  mkdirSync(bin, { recursive: true });
  const agent = join(bin, 'etcd-node-agent');
  const bundle = process.env['ETCD_NODE_AGENT_BUNDLE'] ?? join(import.meta.dirname, '../../src/cli/agent.ts');
  writeFileSync(agent, `#!/bin/sh\nexec '${process.execPath}' '${bundle}' "$@" --config '${node.configFile}'\n`);
  chmodSync(agent, 0o755);
  const env = {
    PATH: `${bin}:${node.binary.directory}:${process.env['PATH'] ?? ''}`,
    ETCDCTL_API: '3',
    ETCDCTL_ENDPOINTS: node.clientUrl,
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
  };
  return new Promise((resolve, reject) => {
    execFile('sh', ['-eu', '-c', script], { env, encoding: 'utf8', timeout: 120_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`the commands failed\n${script}\n${stdout}\n${stderr}`, { cause: error }));
    });
  });
}
