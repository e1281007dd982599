// Goal: the last good configuration is used where it can be trusted, and completed with defaults that an older agent did not know.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/agent/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { encodeRecord } from '../../src/base/record.ts';
import { parseConfig } from '../../src/cli/config-file.ts';
import { lastGoodPath, readLastGood, saveLastGood } from '../../src/cli/last-good.ts';

function node(): { readonly stateDir: string; readonly config: Config; readonly text: string } {
  const stateDir = mkdtempSync(join(tmpdir(), 'last-good-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
  const text = [
    'node: {id: n1}',
    'dataRoot: /srv/etcd',
    `stateDir: ${stateDir}`,
    "etcd: {binary: /usr/bin/etcd, peerUrl: 'http://10.0.0.1:2380', clientUrl: 'http://10.0.0.1:2379'}",
    'role: {file: /etc/role.json}',
    'timing: {probeMisses: 7}',
  ].join('\n');
  return { stateDir, config: parseConfig(text, '/etc/a.yaml'), text };
}

test('what was written is read back, frozen, as it was compiled', () => {
  const { config, text } = node();
  saveLastGood(realDisk, config, silentLog);
  const read = readLastGood(realDisk, '/etc/a.yaml', `${text}\nbogus: 1`);
  expect(read.config).toEqual(config);
  expect(Object.isFrozen(read.config?.timing)).toBe(true);
});

test.each([
  ['broken YAML', (text: string) => `${text}\n\t: [}`],
  ['quotes', (text: string) => `${text.replace(/stateDir: (.*)/, "stateDir: '$1' # here")}\n\t: [}`],
])('the state directory is found in %s', (_what, broken) => {
  const { config, text } = node();
  saveLastGood(realDisk, config, silentLog);
  expect(readLastGood(realDisk, '/etc/a.yaml', broken(text)).config).toEqual(config);
});

test('a record of an agent that knew fewer settings gets the defaults of this one', () => {
  const { config, text, stateDir } = node();
  const { archives: _archives, timing, ...older } = config;
  const { idleTurnMs: _idleTurnMs, ...olderTiming } = timing;
  writeFileSync(lastGoodPath(stateDir), encodeRecord({ ...older, timing: olderTiming, ofTomorrow: 1 }, 1));
  const read = readLastGood(realDisk, '/etc/a.yaml', text).config;
  expect(read?.archives).toEqual(config.archives);
  expect(read?.timing).toEqual(config.timing);
});

test.each<[string, (config: Config, path: string) => void, RegExp]>([
  ['none', () => {}, /there is no/],
  ['one of another file', (config) => saveLastGood(realDisk, { ...config, file: '/etc/b.yaml' }, silentLog), /b\.yaml/],
  ['a damaged one', (_config, path) => writeFileSync(path, 'xx'), /is damaged/],
  ['a newer one', (config, path) => writeFileSync(path, encodeRecord(config, 2)), /is newer/],
  ['another form', (config, path) => writeFileSync(path, encodeRecord({ ...config, timing: 3 }, 1)), /is no section/],
])('%s is not used', (_what, write, because) => {
  const { config, text, stateDir } = node();
  write(config, lastGoodPath(stateDir));
  const read = readLastGood(realDisk, '/etc/a.yaml', text);
  expect(read.config).toBeUndefined();
  expect(read.config === undefined && read.because).toMatch(because);
});
