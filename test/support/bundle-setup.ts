import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../../scripts/bundle.ts';

/** Bundles the agent once for all tests on real etcd: from source each start would cost seconds. */
export async function setup(): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'agent-bundle-'));
  const file = join(directory, 'etcd-node-agent.mjs');
  await bundle(join(import.meta.dirname, '../../src/cli/agent.ts'), file);
  process.env['ETCD_NODE_AGENT_BUNDLE'] = file;
  process.env['NODE_COMPILE_CACHE'] = join(directory, 'compile-cache');
  return () => rmSync(directory, { recursive: true, force: true });
}
