// Goal: A14 A15 A16 whatever becomes of a state file, it is never taken for absent, never written over, and named.
// Method: every file of the agent's state on a real file system, every damage.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { layoutOf } from '../../src/agent/layout.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import { StateNotOursError } from '../../src/agent/state/durable-value.ts';
import type { IdentityRecord } from '../../src/agent/state/schemas.ts';
import { realDisk } from '../../src/base/real-disk.ts';
import { damageFile, damages } from '../support/damage.ts';

const identity: IdentityRecord = {
  nodeId: 'n1',
  clusterName: 'default',
  clusterId: 0xc1n,
  memberId: 0xa1n,
  name: 'n1',
  peerUrl: 'http://127.0.0.1:2380',
  grantId: '',
  initialCluster: 'n1=http://127.0.0.1:2380',
  initialClusterToken: 't',
  lastVoters: [],
  lastMembers: [],
};

type FileName = Exclude<keyof typeof writers, never>;

/** Writes something right into each file. */
const writers = {
  founding: (state: AgentState) =>
    state.founding.write({
      state: 'done',
      nonce: '0'.repeat(32),
      lines: [],
      token: 't',
      clusterId: 0xc1n,
      memberId: 0xa1n,
    }),
  identity: (state: AgentState) => state.recordIdentity(identity),
  tombstones: (state: AgentState) => state.tombstones.write([]),
  volume: (state: AgentState) => state.volume.write({ marker: 'm', dataRoot: '/d', ownVolume: false }),
  pause: (state: AgentState) => state.pause.write({ until: new Date(0).toISOString(), reason: '' }),
  verdict: (state: AgentState) =>
    state.verdict.write({ memberId: 0xa1n, verdict: 'rejected', at: new Date(0).toISOString(), life: 1 }),
  reported: (state: AgentState) =>
    state.reported.write({
      place: null,
      members: null,
      leaderId: '',
      exitedLife: 0,
      readyLife: 0,
      removedSelves: [],
      unconfirmed: [],
      archivedPaths: [],
      removedArchives: [],
      foundedClusters: [],
      alarms: [],
      missingVolume: '',
      roleDocument: '',
      rolePlan: '',
    }),
  ends: (state: AgentState) => state.ends.write([]),
  restarts: (state: AgentState) =>
    state.restarts.write({
      inRow: 0,
      last: null,
      endedAt: null,
      delayMs: 0,
      restarts: [],
      exhausted: false,
      lastStart: null,
    }),
  usedVersion: (state: AgentState) => state.usedVersion.write({ version: '3.5.30' }),
} as const;

function node(): { readonly state: AgentState; readonly stateDir: string; readonly identityCopy: string } {
  const directory = mkdtempSync(join(tmpdir(), 'state-damage-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const layout = layoutOf({
    stateDir: join(directory, 'state'),
    dataRoot: join(directory, 'data'),
    clusterName: 'default',
    memberName: 'n1',
  });
  realDisk.ensureDirectory(layout.stateDir);
  const state = new AgentState({ disk: realDisk, layout });
  for (const write of Object.values(writers)) write(state);
  expect(state.supervision()).toEqual({ kind: 'full' });
  return { state, stateDir: layout.stateDir, identityCopy: layout.identityCopy };
}

const files = Object.keys(writers) as FileName[];

describe.each(files)('A14 A15 A16 the file of %s', (file) => {
  test.each(damages)('%s: supervise-only, named, never written over', (damage) => {
    const { state, stateDir } = node();
    const path = state[file].path;
    expect(path.startsWith(stateDir)).toBe(true);
    damageFile(path, damage);
    const before = statSync(path).isDirectory() ? 'directory' : readFileSync(path, 'base64');
    const supervision = state.supervision();
    expect(supervision).toMatchObject({ kind: 'superviseOnly' });
    expect(supervision).toMatchObject({ because: expect.stringContaining(path) });
    expect(() => writers[file](state)).toThrow(StateNotOursError);
    expect(statSync(path).isDirectory() ? 'directory' : readFileSync(path, 'base64')).toBe(before);
    // The member is known all the same: by the file itself, or by its copy beside the data.
    expect(state.knownIdentity()).toMatchObject({ memberId: 0xa1n, clusterId: 0xc1n });
  });
});

test('A14 the identity stays known when either of its copies is damaged, and unknown when both are', () => {
  const { state, identityCopy } = node();
  const repair = damageFile(identityCopy, 'NULs');
  expect(state.knownIdentity()?.memberId).toBe(0xa1n);
  damageFile(state.identity.path, 'bit flip');
  expect(state.knownIdentity()).toBeUndefined();
  repair();
  expect(state.knownIdentity()?.memberId).toBe(0xa1n);
});

test('A14 records that are gone as a whole are lost, not those of a fresh node', () => {
  const { state, stateDir } = node();
  rmSync(stateDir, { recursive: true });
  expect(state.supervision()).toMatchObject({ kind: 'superviseOnly', lost: true });
  expect(state.knownIdentity()?.memberId).toBe(0xa1n);
});

test('a damaged copy beside the data is replaced at the next record, one of a newer agent is not', () => {
  const { state, identityCopy } = node();
  damageFile(identityCopy, 'truncated');
  state.recordIdentity(identity);
  const whole = readFileSync(identityCopy, 'utf8');
  expect(whole).toContain('"memberId":"a1"');
  damageFile(identityCopy, 'newer version');
  const newer = readFileSync(identityCopy, 'utf8');
  state.recordIdentity(identity);
  expect(readFileSync(identityCopy, 'utf8')).toBe(newer);
});
