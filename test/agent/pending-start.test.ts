// Goal: what the etcd that runs has not got of the configuration, or of the role's version, is seen.
// Method: the pure parts by themselves; then the whole agent of agent-machine.ts, whose last command line is changed on disk.
import { expect, test } from 'vitest';
import { commandLine, readCommandLine } from '../../src/agent/command-line.ts';
import { flagChanges } from '../../src/agent/flag-drift.ts';
import { unfulfilledVersion } from '../../src/agent/version-wish.ts';
import { AgentMachine } from './agent-machine.ts';

test('a command line is read as it was written', () => {
  const words = ['/usr/bin/etcd', '--name=n1', "--a=it's", '--b=two words', '--c=', '', '--d=$HOME;*', "'"];
  const [binary = '', ...flags] = words;
  expect(readCommandLine(`${commandLine({ binary, arguments: flags })}\n`)).toEqual(words);
});

test('flags that were changed, added or taken away are named; how a member begins is not', () => {
  const running = ['--name=n1', '--initial-cluster-state=new', '--quota-backend-bytes=1', '--max-txn-ops=5'];
  const next = ['--name=n1', '--initial-cluster-state=existing', '--quota-backend-bytes=2', '--snapshot-count=7'];
  expect(flagChanges(running, next)).toEqual([
    '--quota-backend-bytes is 1 and becomes 2',
    '--max-txn-ops is 5 and becomes not set',
    '--snapshot-count is not set and becomes 7',
  ]);
  expect(flagChanges(running, running)).toEqual([]);
});

test('the agent shows them while etcd runs, and nothing once it was started anew', async () => {
  const machine = new AgentMachine();
  machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
  machine.boot();
  await machine.until(() => machine.child.starts === 1, 'the start');
  const pending = () => machine.parts.pendingStart.look();
  expect(pending()).toEqual([]);
  const { commandLine: file } = machine.layout;
  const line = new TextDecoder().decode(machine.disk.read(file)).trim();
  machine.disk.put(file, `${line.replace('/usr/bin/etcd', '/old/etcd')} --max-txn-ops=5\n`);
  expect(pending()).toEqual([
    'it was started from /old/etcd, and would be from /usr/bin/etcd',
    '--max-txn-ops is 5 and becomes not set',
  ]);
  machine.parts.state.usedVersion.write({ version: '3.5.16' });
  expect(pending()).toContain('etcd 3.5.16 runs, and the binary is 3.5.30');
  machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
  expect(pending()).toEqual([]);
  await machine.until(() => machine.child.starts === 2, 'the next start');
  expect(pending()).toEqual([]);
  machine.disk.vanish(file);
  expect(pending()).toEqual([]);
  await machine.endAgent();
});

test.each([
  [undefined, '3.5.30', '3.5.30', undefined],
  ['3.5.30', '3.5.30', '3.5.30', undefined],
  ['3.5.30', '3.5.30', undefined, undefined],
  ['3.5.30', undefined, undefined, undefined],
  ['3.7.4', '3.6.16', '3.6.16', /asks for etcd 3\.7\.4, and the configured binary is 3\.6\.16; .*etcd\.binary/],
  ['3.7.4', '3.7.4', '3.6.16', /the configured binary is that, and 3\.6\.16 still runs: `stop`, then `start`/],
])('a role that asks for %s, with a binary of %s and %s running', (wanted, configured, running, says) => {
  const told = unfulfilledVersion({ wanted, configured, running });
  if (says === undefined) expect(told).toBeUndefined();
  else expect(told).toMatch(says);
});

test('a version that the role asks for and that is not there is an alarm, told upstream, until it is there', async () => {
  const machine = new AgentMachine();
  machine.roleVersion = '3.7.4';
  machine.boot();
  await machine.until(
    () => machine.factsOf('alarm.raised').some(({ data }) => data['alarm'] === 'etcdVersionDiffers'),
    'told',
  );
  machine.roleVersion = '3.5.30';
  await machine.until(
    () => machine.factsOf('alarm.cleared').some(({ data }) => data['alarm'] === 'etcdVersionDiffers'),
    'over',
  );
  await machine.endAgent();
});

test('a lost disk is an alarm', async () => {
  const machine = new AgentMachine();
  machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
  machine.disk.rename(machine.layout.dataDir, '/gone');
  machine.boot();
  await machine.until(() => machine.factsOf('alarm.raised').some(({ data }) => data['alarm'] === 'diskLost'), 'told');
  expect(machine.parts.alarms.all()).toMatchObject([
    { alarm: 'diskLost', detail: expect.stringContaining('member a3') },
  ]);
  await machine.endAgent();
});
