// Goal: what would go wrong on this machine is named before anything is started; looking changes nothing.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseConfig } from '../../src/cli/config-file.ts';
import { checkMachine } from '../../src/cli/config-machine.ts';

function machine(extra = '', dataRoot?: string, cluster = 'blue') {
  const directory = mkdtempSync(join(tmpdir(), 'machine-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const binary = join(directory, 'etcd');
  writeFileSync(binary, '#!/bin/sh\n', { mode: 0o755 });
  const text = `
node: { id: n1 }
cluster: { name: ${cluster} }
dataRoot: ${dataRoot ?? `${directory}/data`}
etcd: { binary: ${binary}, peerUrl: 'http://127.0.0.1:2380', clientUrl: 'http://127.0.0.1:2379' }
role: { file: ${directory}/role.json }
${extra.replaceAll('DIR', directory)}`;
  const check = () => checkMachine(parseConfig(text, 'a.yaml')).map(({ path, message }) => `${path}: ${message}`);
  return { directory, binary, memberDir: join(directory, 'data', cluster, 'n1'), check };
}

test('a machine that has all, or no data yet, is fine, and nothing is made', () => {
  const { directory, check } = machine();
  expect(check()).toEqual([]);
  expect(readdirSync(directory)).toEqual(['etcd']);
});

test('a binary that is absent, a directory, or not executable', () => {
  const { binary, check } = machine();
  rmSync(binary);
  expect(check()).toEqual([`etcd.binary: ${binary} does not exist; want an executable etcd`]);
  mkdirSync(binary);
  expect(check()).toEqual([`etcd.binary: ${binary} is no file; want an executable etcd`]);
  rmSync(binary, { recursive: true });
  writeFileSync(binary, '', { mode: 0o644 });
  expect(check()).toEqual([`etcd.binary: ${binary} may not be used by this user; want an executable etcd`]);
});

const https = `upstream: { kind: webhook, url: 'https://h.example.com/', tls: { ca: DIR/up.crt }, tokenFile: DIR/token }`;

test('TLS and token files that are absent, or open to everybody', () => {
  const { directory, check } = machine(https);
  expect(check()).toEqual([
    `upstream.tls.ca: ${directory}/up.crt does not exist`,
    `upstream.tokenFile: ${directory}/token does not exist`,
  ]);
  writeFileSync(join(directory, 'up.crt'), '', { mode: 0o644 });
  writeFileSync(join(directory, 'token'), '', { mode: 0o600 });
  expect(check()).toEqual([]);
  chmodSync(join(directory, 'token'), 0o644);
  chmodSync(join(directory, 'up.crt'), 0o666);
  expect(check()).toEqual([
    `upstream.tls.ca: ${directory}/up.crt may be written by every user; want mode 0644`,
    `upstream.tokenFile: ${directory}/token is open to every user; want mode 0600 or 0640`,
  ]);
});

test.each(['', 'data', 'archive', 'data/member', 'data/member/wal'])(
  'X11: a link at "%s" below the member directory is refused: the archive would move the link and leave the data',
  (below) => {
    const { directory, memberDir, check } = machine();
    mkdirSync(join(directory, 'elsewhere'));
    const link = join(memberDir, below);
    mkdirSync(join(link, '..'), { recursive: true });
    symlinkSync(join(directory, 'elsewhere'), link);
    const problems = check();
    expect(problems[0]).toMatch(/^dataRoot: .* is a link; want a plain directory$/);
  },
);

// /dev/shm is a mount point of its own below /dev on every Linux; the cluster directory plays it here.
test.runIf(statSync('/dev/shm').dev !== statSync('/dev').dev)('a mount point below the data root is refused', () => {
  expect(machine('', '/dev', 'shm').check()).toEqual([
    'dataRoot: /dev/shm is a mount point of its own; want it on the file system of dataRoot',
  ]);
});

test('mustBeMount demands a mount point', () => {
  const { directory, check } = machine('mustBeMount: true');
  mkdirSync(join(directory, 'data'));
  expect(check()).toEqual([`mustBeMount: ${directory}/data is no mount point`]);
  expect(machine('mustBeMount: true', '/dev/shm').check()).toEqual([]);
});
