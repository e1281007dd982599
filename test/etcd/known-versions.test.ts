// Goal: versions are read and compared as etcd means them, and what is known of each is told.
import { describe, expect, test } from 'vitest';
import {
  capabilitiesOf,
  compareVersions,
  type EtcdVersion,
  formatVersion,
  knownProblems,
  lineOf,
  parseVersion,
  sinceOneOf,
} from '../../src/etcd/known-versions.ts';

const version = (text: string): EtcdVersion => parseVersion(text) ?? { major: 0, minor: 0, patch: 0, pre: '' };

test('versions in all their forms', () => {
  expect(parseVersion('etcd Version: 3.5.30\nGit SHA: x\nGo Version: go1.26')).toMatchObject({ minor: 5, patch: 30 });
  expect(formatVersion(version('v3.7.0-rc.1'))).toBe('3.7.0-rc.1');
  expect(parseVersion('3.6')).toMatchObject({ minor: 6, patch: 0 });
  expect(parseVersion('three')).toBeUndefined();
});

test('order: numbers, not text; a pre-release before its release', () => {
  const sorted = ['3.5.9', '3.5.30', '3.7.0', '3.7.0-rc.1', '3.4.23'].map(version).sort(compareVersions);
  expect(sorted.map(formatVersion)).toEqual(['3.4.23', '3.5.9', '3.5.30', '3.7.0-rc.1', '3.7.0']);
});

test('a patch that came to two lines is in all later lines', () => {
  const since = ['3.4.29', '3.5.11'];
  const has = (text: string) => sinceOneOf(version(text), since);
  expect(['3.4.29', '3.5.11', '3.6.0', '3.7.3'].every(has)).toBe(true);
  expect(['3.4.28', '3.5.10', '3.3.27'].some(has)).toBe(false);
});

test('capabilities of the versions that we test with', () => {
  expect(capabilitiesOf(version('3.4.23'))).toMatchObject({ livez: false, linearizableMemberList: false });
  expect(capabilitiesOf(version('3.5.16'))).toMatchObject({ livez: true, exitsOneWhenRemoved: false });
  expect(capabilitiesOf(version('3.5.30'))).toMatchObject({ readyzAsksLearner: true, majorityHealthRule: true });
  expect(capabilitiesOf(version('3.7.3'))).toMatchObject({ featureGates: true, learnerUpdateSafe: true });
});

describe('known problems', () => {
  const concerns = (text: string) =>
    knownProblems(version(text)).map((problem) => `${problem.severity} ${problem.concerns}`);

  test.each(['3.5.1', '3.5.16', '3.5.19'])('%s does not persist a promotion', (text) => {
    expect(concerns(text)).toEqual(expect.arrayContaining(['warn join', 'refuse upgradeTo', 'refuse upgradeFrom']));
  });

  test('3.5.20 does; 3.4 and the newest have nothing against them', () => {
    expect(concerns('3.5.20')).not.toContain('warn join');
    for (const text of ['3.4.23', '3.6.16', '3.7.3']) expect(concerns(text)).toEqual([]);
  });

  test('a line that we do not know is refused', () => {
    expect(lineOf(version('3.8.0'))).toBeUndefined();
    expect(concerns('3.8.0')).toEqual(['refuse any']);
    expect(concerns('2.3.8')).toEqual(['refuse any']);
  });
});
