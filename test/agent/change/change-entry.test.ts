import { expect, test } from 'vitest';
import { isChangeEntry } from '../../../src/agent/change/cluster-change.ts';

// A step that was interrupted may have left its change record in etcd; only these are looked after by the next agent.
test.each([
  ['addLearner', true],
  ['promoteSelf', true],
  ['cancelJoin', true],
  ['removeSelf', true],
  ['updatePeerUrl', true],
  ['change.down', true],
  ['startMember', false],
  ['archiveData', false],
])('an interrupted %s may have left a change record: %s', (what, expected) => {
  expect(isChangeEntry(what)).toBe(expected);
});
