// Goal: A24 I18 a name that was changed in the configuration of a node that is a member hides no living etcd and loses no data: it is
// refused at boot, as it is by a reload, and the agent runs on what the node was called so far.
// Method: the records of a member on a real file system, and a configuration that differs from them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { layoutOf } from '../../src/agent/layout.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { ConfigError } from '../../src/cli/config-error.ts';
import { parseConfig } from '../../src/cli/config-file.ts';
import { checkMachine } from '../../src/cli/config-machine.ts';
import { saveLastGood } from '../../src/cli/last-good.ts';
import { recordedOtherwise } from '../../src/cli/recorded-node.ts';
import { bootConfig } from '../../src/cli/run.ts';

function member() {
  const directory = mkdtempSync(join(tmpdir(), 'recorded-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const text = [
    'node: {id: node-1}',
    'cluster: {name: main}',
    `dataRoot: ${directory}/data`,
    `stateDir: ${directory}/state`,
    "etcd: {name: n1, binary: /usr/bin/etcd, peerUrl: 'http://10.0.0.1:2380', clientUrl: 'http://10.0.0.1:2379'}",
    'role: {file: /etc/role.json}',
  ].join('\n');
  const file = join(directory, 'a.yaml');
  writeFileSync(file, text);
  const config = parseConfig(text, file);
  const { stateDir, dataRoot } = config;
  const layout = layoutOf({ stateDir, dataRoot, clusterName: 'main', memberName: 'n1' });
  for (const path of [stateDir, dataRoot]) mkdirSync(path);
  const state = new AgentState({ disk: realDisk, layout });
  writeFileSync(layout.volumeMarker, 'marker\n');
  state.volume.write({ marker: 'marker', dataRoot, ownVolume: false });
  state.recordIdentity({
    nodeId: 'node-1',
    clusterName: 'main',
    clusterId: 0xc1n,
    memberId: 0xa1n,
    name: 'n1',
    peerUrl: 'http://10.0.0.1:2380',
    grantId: '',
    initialCluster: 'n1=http://10.0.0.1:2380',
    initialClusterToken: 't',
    lastVoters: [],
    lastMembers: [],
  });
  saveLastGood(realDisk, config, silentLog);
  const changed = (from: string, to: string) => {
    writeFileSync(file, text.replace(from, to));
    return parseConfig(text.replace(from, to), file);
  };
  return { directory, file, text, config, changed, read: () => parseConfig(text, file) };
}

const names = [
  ['node.id', 'node-1', 'node-2'],
  ['cluster.name', 'name: main', 'name: other'],
  ['etcd.name', 'name: n1', 'name: n2'],
] as const;

test.each(names)('%s is compared with the record, by boot and by config check', (path, from, to) => {
  const { changed, config } = member();
  expect(recordedOtherwise(config)).toEqual([]);
  const other = changed(from, to);
  expect(recordedOtherwise(other)).toMatchObject([{ path }]);
  expect(checkMachine(other)).toContainEqual(recordedOtherwise(other)[0]);
});

test.each(names)(
  'a changed %s: the agent boots on the last good configuration and says which field',
  (path, from, to) => {
    const { changed, config, file } = member();
    const other = changed(from, to);
    const boot = bootConfig(file, () => other);
    expect(boot.config).toEqual(config);
    expect(boot.refused).toBeInstanceOf(ConfigError);
    expect(boot.refused?.message).toContain(`${path}: `);
    expect(boot.refused?.message).toContain('node-1');
  },
);

test('without a last good one, or with one that was renamed as well, it is refused as a whole', () => {
  const { changed, file, directory } = member();
  const other = changed('name: n1', 'name: n2');
  saveLastGood(realDisk, other, silentLog);
  expect(() => bootConfig(file, () => other)).toThrow(ConfigError);
  rmSync(`${directory}/state/config.last-good`);
  expect(() => bootConfig(file, () => other)).toThrow(/etcd\.name/);
});

test('a data root that moved with its marker is right, and one that left it behind is not', () => {
  const { changed, directory } = member();
  const other = changed(`dataRoot: ${directory}/data`, `dataRoot: ${directory}/moved`);
  mkdirSync(`${directory}/moved`);
  expect(recordedOtherwise(other)).toMatchObject([{ path: 'dataRoot' }]);
  writeFileSync(`${directory}/moved/.etcd-node-agent-volume`, 'marker\n');
  expect(recordedOtherwise(other)).toEqual([]);
  rmSync(`${directory}/moved/.etcd-node-agent-volume`);
  rmSync(`${directory}/data`, { recursive: true });
  // Neither has it: the volume is missing, which the agent says.
  expect(recordedOtherwise(other)).toEqual([]);
});

test('a node that is no member yet may be called anything, and records that cannot be read say nothing', () => {
  const { changed, directory } = member();
  const other = changed('name: n1', 'name: n2');
  writeFileSync(`${directory}/state/identity`, 'xx');
  expect(recordedOtherwise(other)).toEqual([]);
  rmSync(`${directory}/state`, { recursive: true });
  expect(recordedOtherwise(other)).toEqual([]);
});
