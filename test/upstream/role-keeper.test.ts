import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { encodeRecord } from '../../src/base/record.ts';
import type { DesiredRole } from '../../src/upstream/role.ts';
import { RoleKeeper, RoleNewerError } from '../../src/upstream/role-keeper.ts';
import type { RoleSourceName } from '../../src/upstream/role-order.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const path = '/state/role';
const file: RoleSourceName = { kind: 'file', name: '/etc/role.yaml' };
const curator: RoleSourceName = { kind: 'curator', name: 'c1' };

function role(generation: number, more: Partial<DesiredRole> = {}): DesiredRole {
  return {
    nodeId: 'n1',
    role: 'consensus-member',
    grantId: 'g1',
    epoch: 1,
    generation,
    endpoints: [],
    accept: [],
    ...more,
  };
}

function setUp(seed = 1) {
  const disk = new MemoryDisk(new SeededRandom(seed));
  disk.ensureDirectory('/state');
  const identity = { nodeId: 'n1', clusterId: undefined as string | undefined };
  const open = () => new RoleKeeper({ path, disk, clock: new FakeClock(), log: silentLog, identity: () => identity });
  return { disk, open, identity };
}

describe('the accepted role', () => {
  test('is on disk before it counts, so that a reboot needs nothing', () => {
    const { disk, open } = setUp();
    expect(open().offer(role(1), file)).toEqual({ kind: 'accepted', role: role(1) });
    disk.reboot('powerLoss');
    const again = open();
    expect(again.accepted).toMatchObject({ source: file, role: role(1) });
    expect(again.offer(role(0), file)).toMatchObject({ kind: 'refused' });
    expect(again.offer(role(1), file)).toMatchObject({ kind: 'accepted' });
  });

  test('A20 a crash at any step leaves the old or the new one', () => {
    for (let seed = 0; seed < 60; seed++) {
      for (const kind of ['kill', 'powerLoss'] as const) {
        const { disk, open } = setUp(seed);
        const keeper = open();
        keeper.offer(role(1), file);
        disk.crashAtStep(1 + (seed % 13));
        keeper.offer(role(2), file);
        disk.reboot(kind);
        const after = open();
        expect(after.lostBecause).toBeUndefined();
        expect([1, 2]).toContain(after.accepted?.role.generation);
      }
    }
  });

  test('A19 A21 a role that cannot be saved is refused, and the old one stays', () => {
    for (const step of ['write', 'sync', 'rename'] as const) {
      const { disk, open } = setUp();
      const keeper = open();
      keeper.offer(role(1), file);
      disk.fail({ step, errno: 'ENOSPC', path: '/state/role', times: 2 });
      expect(keeper.offer(role(2), file)).toMatchObject({ kind: 'refused', why: expect.stringContaining('ENOSPC') });
      expect(keeper.accepted?.role.generation).toBe(1);
      disk.heal();
      expect(keeper.offer(role(2), file)).toMatchObject({ kind: 'accepted' });
    }
  });

  test('A14 A15 a damaged record falls back to the one before', () => {
    for (const damage of ['', '\0\0\0', 'flip']) {
      const { disk, open } = setUp();
      const keeper = open();
      keeper.offer(role(1), file);
      keeper.offer(role(2), file);
      if (damage === 'flip') disk.flipBit(path, 300);
      else disk.put(path, damage);
      const after = open();
      expect(after.accepted?.role.generation).toBe(1);
      expect(after.offer(role(2), file)).toMatchObject({ kind: 'accepted' });
    }
  });

  test('A14 a record that is lost is not a fresh node: only a command sets the role anew', () => {
    const { disk, open } = setUp();
    open().offer(role(5), file);
    disk.put(path, 'rubbish');
    const keeper = open();
    expect(keeper.accepted).toBeUndefined();
    expect(keeper.lostBecause).toContain('is damaged');
    expect(keeper.offer(role(3), file)).toMatchObject({ kind: 'unknown' });
    expect(keeper.switchSource(role(3), file, { force: false })).toMatchObject({ kind: 'refused' });
    expect(keeper.switchSource(role(6), file, { force: true })).toMatchObject({ kind: 'accepted' });
    expect(open().accepted?.role.generation).toBe(6);
  });

  test('A16 a record of a newer agent is refused and not touched', () => {
    const { disk, open } = setUp();
    disk.put(path, encodeRecord({}, 2));
    expect(open).toThrow(RoleNewerError);
    expect(disk.files()).toHaveLength(1);
  });

  test('K09 the record of another node (a copied disk) is not obeyed', () => {
    const { open, identity } = setUp();
    open().offer(role(1), file);
    identity.nodeId = 'n2';
    const keeper = open();
    expect(keeper.accepted).toBeUndefined();
    expect(keeper.lostBecause).toContain('belongs to node n1');
  });

  test('K09 the cluster is compared as soon as it is known', () => {
    const { open, identity } = setUp();
    const keeper = open();
    expect(keeper.offer(role(1, { clusterId: 'abc' }), file)).toMatchObject({ kind: 'accepted' });
    identity.clusterId = 'def';
    expect(keeper.offer(role(2, { clusterId: 'abc' }), file)).toMatchObject({ kind: 'refused' });
  });

  test('sources switch by command, and each keeps its own order over that', () => {
    const { open } = setUp();
    const keeper = open();
    keeper.offer(role(7), file);
    expect(keeper.offer(role(1), curator)).toMatchObject({ kind: 'refused' });
    expect(keeper.switchSource(role(1, { role: 'leaving' }), curator, { force: false })).toMatchObject({
      kind: 'refused',
    });
    expect(keeper.switchSource(role(1), curator, { force: false })).toMatchObject({ kind: 'accepted' });
    expect(keeper.offer(role(8), file)).toMatchObject({ kind: 'refused' });
    const again = open();
    expect(again.switchSource(role(6), file, { force: false })).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining('older'),
    });
    expect(again.switchSource(role(7), file, { force: false })).toMatchObject({ kind: 'accepted' });
  });
});
