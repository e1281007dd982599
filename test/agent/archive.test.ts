// Goal: data is never deleted, only archives beyond their bound are: what counts as an archive is a whole data directory, and its end
// is told once.
// Method: archives on a disk in memory; the whole agent where it is about what is told.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Archives } from '../../src/agent/archive.ts';
import { AgentMachine, says } from './agent-machine.ts';

const day = 86_400_000;
const bound = { keep: 1, minDays: 1 };

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

function reasonAt(at: string) {
  return { nodeId: 'node-3', clusterId: 'c1', memberId: 'a3', at, reason: 'a test', evidence: [] };
}

describe('the bound', () => {
  const names = (archives: Archives, nowMs: number) => archives.expired(bound, nowMs).map(({ name }) => name);

  function archivesOn(): Archives {
    const { disk, layout } = machine;
    const exists = (path: string) => disk.read(path) !== undefined || disk.list(path) !== undefined;
    return new Archives({ disk, layout, host: { exists, removeTree: (path) => disk.wipeTree(path) } });
  }

  test('a log without any record pushes out no data, and goes when it is old enough', () => {
    const archives = archivesOn();
    const { disk, layout } = machine;
    disk.put(`${layout.archiveDir}/20260101T000000Z-a1/data/member/wal/0.wal`, 'evidence');
    archives.moveEmptyLog(reasonAt('2026-01-02T00:00:00.000Z'));
    expect(archives.list().map(({ name }) => name)).toEqual(['20260101T000000Z-a1']);
    expect(names(archives, Date.UTC(2026, 0, 2, 12))).toEqual([]);
    expect(names(archives, Date.UTC(2026, 0, 4))).toEqual(['20260102T000000Z-a3']);
    disk.put(`${layout.archiveDir}/20260103T000000Z-a3/data/member/wal/0.wal`, 'evidence');
    expect(names(archives, Date.UTC(2026, 0, 4) + day)).toEqual(['20260101T000000Z-a1', '20260102T000000Z-a3']);
  });

  test('an archiving that was interrupted before its data was moved is no archive', () => {
    const archives = archivesOn();
    machine.disk.fail({ step: 'rename', errno: 'EIO', path: '-a3/', skip: 1 });
    expect(() => archives.moveEmptyLog(reasonAt('2026-01-02T00:00:00.000Z'))).toThrow();
    expect(archives.list()).toEqual([]);
    expect(names(archives, Date.UTC(2026, 5))).toEqual([]);
  });
});

test('an old archive that cannot be removed is told of once, and the others go all the same', async () => {
  const { disk, layout } = machine;
  const paths = ['20200101T000000Z-a1', '20200102T000000Z-a1', '20200103T000000Z-a1'].map(
    (name) => `${layout.archiveDir}/${name}`,
  );
  for (const path of paths) disk.put(`${path}/data/member/wal/0.wal`, 'evidence');
  const [stuck = '', goes = '', stays = ''] = paths;
  machine.unremovable.add(stuck);
  const there = (path: string) => disk.list(path) !== undefined;
  const told = () => machine.factsOf('data.archiveRemoved').map(({ data }) => data['path']);
  machine.boot();
  await isRemoved();
  expect(machine.died).toBeUndefined();
  expect([stuck, goes, stays].map(there)).toEqual([true, false, true]);
  expect(told()).toEqual([stuck, goes]);
  // Another removal, by the next agent.
  await machine.endAgent();
  for (const name of ['tombstones', 'run-intent']) disk.vanish(`${layout.stateDir}/${name}`);
  disk.vanish(layout.runIntentCopy);
  disk.put(`${layout.dataDir}/member/snap/db`, 'data');
  machine.unremovable.clear();
  machine.boot();
  await machine.until(() => !there(stuck), 'it is gone');
  expect(told()).toEqual([stuck, goes, stays]);
});

async function isRemoved(): Promise<void> {
  machine.child.says(says.ownRemoval);
  machine.child.ends({ kind: 'code', code: 0 });
  await machine.until(() => machine.plan === 'blocked removedByOthers', 'it is settled');
}
