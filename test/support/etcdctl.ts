import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FleetNode } from './fleet.ts';

/** Runs etcdctl (API 3) against one node's etcd and gives its output back. Throws with its stderr if it fails. */
export async function etcdctl(node: FleetNode, ...args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(
    join(node.binary.directory, 'etcdctl'),
    ['--endpoints', node.clientUrl, '--command-timeout', '10s', ...tlsArguments(node), ...args],
    { env: { PATH: process.env['PATH'] ?? '', ETCDCTL_API: '3' }, encoding: 'utf8' },
  );
  return (await run).stdout;
}

function tlsArguments({ tls }: FleetNode): readonly string[] {
  if (tls === undefined) return [];
  const { cert, key, ca } = tls.client;
  return ['--cert', cert, '--key', key, '--cacert', ca];
}
