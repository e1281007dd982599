import { expect, test } from 'vitest';
import {
  changedFields,
  FixedFieldsError,
  needsEtcdRestart,
  ReadAtStartError,
  refuseFixedFields,
} from '../../src/agent/config-change.ts';
import { parseConfig } from '../../src/cli/config-file.ts';

const smallest = `
node: { id: n1 }
dataRoot: /srv/etcd
etcd: { binary: /usr/bin/etcd, peerUrl: 'http://10.0.0.1:2380', clientUrl: 'http://10.0.0.1:2379' }
role: { file: /etc/role.json }
`;

/** The last column: what a reload does with it. */
const changes: readonly [from: string, to: string, fields: readonly string[], restart: boolean, taken: boolean][] = [
  ['', '', [], false, true],
  ['role: {', 'log: { level: debug }\nrole: {', ['log.level'], false, true],
  ['role: {', 'upstream: { kind: webhook, url: "http://h.example.com/" }\nrole: {', ['upstream'], false, false],
  ['/usr/bin/etcd,', '/usr/bin/etcd, stopGrace: 40s,', ['etcd.stopGraceMs'], false, true],
  ['/usr/bin/etcd,', '/usr/bin/etcd, flags: { a: 1 },', ['etcd.flags'], true, true],
  ['/usr/bin/etcd,', '/opt/etcd,', ['etcd.binary'], true, true],
  ['10.0.0.1:2380', '10.0.0.2:2380', ['etcd.listenPeerUrls', 'etcd.peerUrl'], true, false],
];

test.each(changes)('%j → %j changes %j (a restart of etcd: %s)', (from, to, fields, restart, taken) => {
  const changed = changedFields(parseConfig(smallest, 'a'), parseConfig(smallest.replace(from, to), 'a'));
  expect(changed).toEqual(fields);
  expect(needsEtcdRestart(changed)).toBe(restart);
  if (taken) expect(() => refuseFixedFields(changed)).not.toThrow();
  else expect(() => refuseFixedFields(changed)).toThrow(ReadAtStartError);
});

test.each([
  ['id: n1', 'id: n2', 'etcd.name, node.id'],
  ['/srv/etcd', '/srv/other', 'dataRoot'],
  ['role: {', 'stateDir: /var/lib/x\nrunDir: /run/x\nrole: {', 'runDir, stateDir'],
])('%j → %j is refused while the agent runs', (from, to, named) => {
  const changed = changedFields(parseConfig(smallest, 'a'), parseConfig(smallest.replace(from, to), 'a'));
  expect(() => refuseFixedFields(changed)).toThrow(FixedFieldsError);
  expect(() => refuseFixedFields(changed)).toThrow(named);
});

test('where etcd serves changes with its next start, and the hint says in which order', () => {
  const hintOf = (field: string) => {
    try {
      refuseFixedFields([field]);
      return '';
    } catch (error) {
      return (error as ReadAtStartError).hint;
    }
  };
  for (const field of ['etcd.clientUrl', 'etcd.metricsUrl']) expect(hintOf(field)).toMatch(/stop.*restart.*start/);
  expect(hintOf('upstream')).toBe('Restart the agent; etcd runs on meanwhile.');
});
