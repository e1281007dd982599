import { expect, test } from 'vitest';
import { flagDrift } from '../../src/agent/flag-drift.ts';

const ours = ['--name=n1', '--data-dir=/srv/etcd/default/n1/data', '--heartbeat-interval=100', '--pre-vote=true'];

test.each<[string, readonly string[], readonly string[]]>([
  ['the same flags', ['/usr/bin/etcd', '--name=n1', '--pre-vote'], []],
  ['where its data lies and how it began', ['etcd', '--data-dir', '/var/lib/etcd', '--initial-cluster-token', 'x'], []],
  [
    'a flag that nobody configured here',
    ['etcd', '--name', 'n1', '--quota-backend-bytes', '8589934592'],
    ['it runs with --quota-backend-bytes=8589934592, which is not in etcd.flags'],
  ],
  [
    'another value, and one dash',
    ['etcd', '-name=n1', '-heartbeat-interval=300'],
    ['it runs with --heartbeat-interval=300, and would be started with --heartbeat-interval=100'],
  ],
  ['a switch before another flag', ['etcd', '--pre-vote', '--name=n1'], []],
  ['the last of two', ['etcd', '--name=old', '--name=n1'], []],
  [
    'a file that etcd reads in place of all flags',
    ['etcd', '--config-file=/etc/etcd.yaml', '--name=other'],
    ['its flags stand in /etc/etcd.yaml, which is not compared'],
  ],
])('flag drift: %s', (_title, theirs, expected) => {
  expect(flagDrift(theirs, ours)).toEqual(expected);
});
