// Goal: the panic that this project exists for is real, on an unpatched etcd with its default flags, and so is the clean
// end of the same removal; what we read of either is what etcd does.
// Method: three members that have been connected for longer than etcd's own 5 s; Status of the leader is asked by eight
// callers at once while another member is told to remove it. It is a race: a bounded number of tries, and the number said.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { EtcdCallError } from '../../src/etcd/call.ts';
import type { MemberId } from '../../src/etcd/member.ts';
import { testVersions } from '../support/etcd-binaries.ts';
import { clientOf, leaderAndFollowers } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { type EtcdExit, type RealCluster, type RealEtcd, test } from '../support/real-etcd.ts';

const maxTries = 12;
const callers = 8;

describe.each(testVersions())('etcd $version', (binary) => {
  test('C31 removed while Status calls are in flight, it panics with code 2', { timeout: 240_000 }, async ({
    etcd,
  }) => {
    const ends: string[] = [];
    let cluster = await etcd({ binary, size: 3 });
    for (let tries = 1; tries <= maxTries; tries++) {
      const { exit, log } = await removeLeader(cluster, callers);
      ends.push(exit.code === 2 ? 'panic' : `code ${exit.code}`);
      if (exit.code === 2) {
        process.stderr.write(
          `etcd ${binary.version}: the panic came at try ${tries} of ${maxTries} (${ends.join(', ')})\n`,
        );
        expect(exit.signal).toBeNull();
        expect(log).toMatch(/^panic: failed to find local ID in cluster members$/m);
        expect(log).toMatch(/^goroutine \d+ \[running\]:$/m);
        expect(log).toMatch(/\(\*RaftCluster\)\.IsLocalMemberLearner/);
        expect(log).toMatch(/\(\*maintenanceServer\)\.Status/);
        expect(log).toMatch(/"msg":"removed member"/);
        return;
      }
      await cluster.close();
      cluster = await etcd({ binary, size: 3 });
    }
    expect.fail(`no panic in ${maxTries} tries: ${ends.join(', ')}`);
  });

  test('removed while nobody asks for its Status, it ends with code 0', async ({ etcd }) => {
    const cluster = await etcd({ binary, size: 3 });
    const { exit, log } = await removeLeader(cluster, 0);
    expect(exit).toEqual({ code: 0, signal: null });
    expect(log).toMatch(/"msg":"removed member"/);
    expect(log).not.toMatch(/^panic:/m);
  });
});

/** Removes the leader through another member, with so many callers of its Status, and waits for its end. */
async function removeLeader(cluster: RealCluster, statusCallers: number): Promise<{ exit: EtcdExit; log: string }> {
  const { leader, followers } = await leaderAndFollowers(cluster);
  const [other] = followers;
  if (other === undefined) throw new Error('three members have two followers');
  using remover = clientOf(cluster, other);
  const victim = (await remover.memberList({ linearizable: true })).members.find(({ name }) => name === leader.name);
  if (victim === undefined) throw new Error(`${leader.name} is not in the list`);
  const giveUp = new AbortController();
  const hammers = Array.from({ length: statusCallers }, () => hammer(cluster, leader, giveUp.signal));
  await removeOnceHealthy(remover.removeMember.bind(remover), victim.id);
  const exit = await leader.exited();
  giveUp.abort();
  await Promise.all(hammers);
  return { exit, log: leader.log() };
}

/** etcd's default refuses a change until the members have been connected for 5 s; only that refusal is asked again. */
async function removeOnceHealthy(remove: (id: MemberId) => Promise<unknown>, id: MemberId): Promise<void> {
  await eventually(
    async () => {
      try {
        await remove(id);
        return true;
      } catch (error) {
        if (error instanceof EtcdCallError && error.details === 'etcdserver: unhealthy cluster') return false;
        if (error instanceof EtcdCallError && /leader changed|server stopped|member not found/.test(error.details))
          return true;
        throw error;
      }
    },
    { withinMs: 30_000, everyMs: 250, what: 'a removal that etcd accepts' },
  );
}

/** One caller with a connection of its own that asks for Status back to back until the member is gone. */
async function hammer(cluster: RealCluster, member: RealEtcd, signal: AbortSignal): Promise<void> {
  using client = clientOf(cluster, member);
  while (!signal.aborted) {
    try {
      await client.status({ signal });
    } catch {
      await sleep(1); // the member is ending; do not spin on ECONNREFUSED
    }
  }
}
