/** Leave and remove: what is allowed, how the removed one ends, and what its disk is good for afterwards. */
import { expect } from 'vitest';
import { formatId } from '../../src/etcd/member.ts';
import { type ConformanceCase, caughtUp, gaveUp, type Lab, leaderOf, memberNamed, refusal, since, two } from './lab.ts';

const voters = ['n1', 'n2', 'n3'];
const unhealthy = '14 etcdserver: unhealthy cluster';
const tooFew = '2 etcdserver: re-configuration failed due to not enough started members';
const removed = 'the member has been permanently removed from the cluster';

export const removeCases: readonly ConformanceCase[] = [
  {
    title: 'the 5 s rule: nothing is changed before, and with one of three down only the dead one goes',
    etcdAtOnce: 3,
    run: async (lab) => {
      const startedMs = lab.nowMs();
      await lab.found(voters);
      const { leader, followers } = await leaderOf(lab, voters);
      const [one, dead] = two(followers);
      const client = lab.client(leader);
      const [oneId, deadId] = [(await memberNamed(client, one)).id, (await memberNamed(client, dead)).id];
      // On a slow machine the 5 s may be over before all serve.
      if (lab.nowMs() - startedMs < 4_000) {
        expect(await refusal(client.addLearner('http://127.0.0.1:9'))).toBe(unhealthy);
        expect(await refusal(client.removeMember(oneId))).toBe(unhealthy);
      }
      const learner = await settledLearner(lab, leader);
      await client.removeMember(learner);
      const newcomer = await lab.addVoter(leader, 'http://127.0.0.1:11');
      const second = refusal(lab.addVoter(leader, 'http://127.0.0.1:10'));
      expect(await second).toBe(byMajority(lab) ? 'it was not refused' : unhealthy);
      if (byMajority(lab)) {
        // Three of five have ever been started.
        expect(await refusal(client.removeMember(oneId))).toBe(tooFew);
        const { members } = await client.memberList({ linearizable: true });
        const other = members.find(({ peerUrls }) => peerUrls.includes('http://127.0.0.1:10'));
        await client.removeMember(other?.id ?? 0n);
      }
      await client.removeMember(newcomer);
      expect(await refusal(client.removeMember(newcomer))).toBe('5 etcdserver: member not found');

      await lab.kill(dead);
      // The leader hears of it when the connection breaks, a moment after the process has ended.
      const noticed = new RegExp(`"peer became inactive[^"]*","peer-id":"${formatId(deadId)}"`);
      await lab.eventually(async () => noticed.test(lab.log(leader)));
      expect(await refusal(client.addLearner('http://127.0.0.1:13'))).toBe(unhealthy);
      expect(await refusal(lab.addVoter(leader, 'http://127.0.0.1:13'))).toBe(unhealthy);
      expect(await refusal(client.removeMember(oneId))).toBe(unhealthy);
      expect(await refusal(client.removeMember((await memberNamed(client, leader)).id))).toBe(unhealthy);
      const left = await client.removeMember(deadId);
      expect(left.members).toHaveLength(2);
      await client.addLearner('http://127.0.0.1:12');
    },
  },
  {
    title:
      'the 5 s rule is up to 5 s old: with a voter frozen just now a healthy one is removed, and the quorum with it',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters);
      const { leader, followers } = await leaderOf(lab, voters);
      const [healthy, frozen] = two(followers);
      const client = lab.client(leader);
      const id = (await memberNamed(client, healthy)).id;
      await client.removeMember(await settledLearner(lab, leader));
      lab.freeze(frozen);
      await client.removeMember(id);
      expect([0, 1]).toContain((await lab.exited(healthy)).code);
      expect(await refusal(client.keys.put('/a', 'x', { deadlineMs: 700 }))).toMatch(gaveUp);
      lab.thaw(frozen);
      await lab.eventually(() => client.keys.put('/a', 'again', { deadlineMs: 2_000 }));
    },
  },
  {
    title:
      'a follower that is removed ends as removed; so does a start on its data; one that was down is removed when it comes back',
    etcdAtOnce: 3,
    alsoShort: true,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [one, other] = two(followers);
      const client = lab.client(leader);
      const oneId = (await memberNamed(client, one)).id;
      const list = await lab.client(other).removeMember(oneId);
      expect(list.members.map(({ name }) => name).sort()).toEqual([leader, other].sort());
      expect((await lab.exited(one)).code).toBe(0);
      expect(lab.log(one)).toContain(removed);
      expect(await refusal(client.removeMember(oneId))).toBe('5 etcdserver: member not found');
      expect(await refusal(client.promoteMember(oneId))).toBe('5 etcdserver: member not found');
      await client.keys.put('/a', 'without it', { deadlineMs: 3_000 });
      lab.restart(one);
      expect([0, 1]).toContain((await lab.exited(one)).code);

      // A removal that timed out while one of two was down is applied when it comes back, or is asked for again.
      const otherId = (await memberNamed(client, other)).id;
      await lab.kill(other);
      expect(await refusal(client.removeMember(otherId, { deadlineMs: 1_000 }))).toMatch(gaveUp);
      lab.restart(other);
      await lab.eventually(async () => {
        const { members } = await client.memberList({ linearizable: true });
        if (members.every(({ id }) => id !== otherId)) return true;
        await client.removeMember(otherId);
        return false;
      });
      expect([0, 1]).toContain((await lab.exited(other)).code);
      await lab.eventually(() => client.keys.put('/a', 'alone', { deadlineMs: 3_000 }));
    },
  },
  {
    title: 'a leader that removes itself ends as removed, and the others elect',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [one] = two(followers);
      const client = lab.client(leader);
      const own = (await memberNamed(client, leader)).id;
      const said = await refusal(client.removeMember(own));
      expect(said).toMatch(/it was not refused|^14 etcdserver: server stopped|ECONNRESET|dropped/);
      expect([0, 1]).toContain((await lab.exited(leader)).code);
      expect(lab.log(leader)).toContain(removed);
      const next = await lab.eventually(async () => {
        const { leaderId } = await lab.client(one).status();
        return leaderId !== undefined && leaderId !== own && leaderId;
      });
      expect(next).not.toBe(own);
      await lab.eventually(() => lab.client(one).keys.put('/a', 'without it', { deadlineMs: 2_000 }));
      const list = await lab.client(one).memberList({ linearizable: true });
      expect(list.members.map(({ id }) => id)).not.toContain(own);
    },
  },
  {
    title: 'a lost disk: under its old id it ends with 2, as a founder with 1; removed, it is none of the cluster',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [lost, other] = two(followers);
      const client = lab.client(leader);
      const id = (await memberNamed(client, lost)).id;
      await client.keys.put('/a', 'x');
      await caughtUp(lab, lost, leader);
      await lab.kill(lost);
      lab.wipe(lost);
      lab.start(lost, voters, 'new');
      expect(await lab.exited(lost)).toEqual({ code: 1, signal: null });
      expect(lab.log(lost)).toContain('has already been bootstrapped');
      lab.wipe(lost);
      lab.start(lost, voters, 'existing');
      expect(await lab.exited(lost)).toEqual({ code: 2, signal: null });
      expect(lab.log(lost)).toMatch(/panic: tocommit\(\d+\) is out of range/);
      await client.removeMember(id);
      lab.wipe(lost);
      lab.start(lost, [leader, other, lost], 'existing');
      expect(await lab.exited(lost)).toEqual({ code: 1, signal: null });
      expect(lab.log(lost)).toContain('member count is unequal');
      lab.wipe(lost);
      // The same list and token give the same id again, which is gone for ever.
      lab.start(lost, voters, 'new');
      expect([0, 1]).toContain((await lab.exited(lost)).code);
      lab.wipe(lost);
      const { member } = await client.addLearner(lab.peerUrl(lost));
      expect(member.id).not.toBe(id);
      lab.start(lost, voters, 'existing');
      await lab.serving(lost);
      expect(await lab.client(lost).status()).toMatchObject({ isLearner: true, header: { memberId: member.id } });
    },
  },
  {
    title: 'an old disk put back: it ends with 2, and is filled anew without a word once the leader has changed',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [old, other] = two(followers);
      const client = lab.client(leader);
      const [oldId, otherId] = [(await memberNamed(client, old)).id, (await memberNamed(client, other)).id];
      await lab.kill(old);
      lab.keepDisk(old);
      lab.restart(old);
      await lab.serving(old);
      for (let count = 0; count < 5; count++) await client.keys.put(`/k${count}`, 'v');
      await caughtUp(lab, old, leader);
      await lab.kill(old);
      lab.restoreDisk(old);
      lab.restart(old);
      expect(await lab.exited(old)).toEqual({ code: 2, signal: null });
      expect(lab.log(old)).toMatch(/panic: tocommit\(\d+\) is out of range/);
      await client.moveLeader(otherId);
      await lab.eventually(async () => (await lab.client(other).status()).leaderId === otherId);
      lab.restoreDisk(old);
      lab.restart(old);
      await lab.serving(old);
      expect((await lab.client(old).status()).header.memberId).toBe(oldId);
      expect((await lab.eventually(() => lab.client(old).keys.get('/k4')))?.value).toBe('v');
    },
  },
  {
    title:
      'a stopped voter that is forced into a cluster of its own takes the others with it, and one list is no proof',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [stale, other] = two(followers);
      const before = await lab.client(leader).memberList({ linearizable: true });
      // Stopped, not killed: a killed one has forgotten its newest commits, drops those entries when it is forced, and may
      // panic when the old leader's heartbeat is faster than the removal of the others.
      await caughtUp(lab, stale, leader);
      lab.terminate(stale);
      await lab.exited(stale);
      await lab.client(leader).keys.put('/a', 'without it', { deadlineMs: 3_000 });
      lab.restart(stale, ['--force-new-cluster']);
      for (const name of [leader, other]) {
        expect([0, 1]).toContain((await lab.exited(name)).code);
        expect(lab.log(name)).toContain(removed);
      }
      await lab.serving(stale);
      const alone = await lab.eventually(() => lab.client(stale).memberList({ linearizable: true }));
      expect(alone.clusterId).toBe(before.clusterId);
      expect(alone.members.map(({ name }) => name)).toEqual([stale]);
      await lab.kill(stale);
      for (const name of [leader, other]) lab.restart(name);
      for (const name of [leader, other]) await lab.serving(name);
      expect((await lab.eventually(() => lab.client(other).keys.get('/a')))?.value).toBe('without it');
      const after = await lab.client(leader).memberList({ linearizable: true });
      expect(after.members.map(({ id }) => id)).toEqual(before.members.map(({ id }) => id));
    },
  },
  {
    title: 'a learner is removed at any time and ends as removed',
    etcdAtOnce: 2,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      await lab.prepare('n2');
      const { member } = await client.addLearner(lab.peerUrl('n2'));
      lab.start('n2', ['n1', 'n2'], 'existing');
      await lab.serving('n2');
      await client.removeMember(member.id);
      expect([0, 1]).toContain((await lab.exited('n2')).code);
      expect(lab.log('n2')).toContain(removed);
      expect((await client.memberList({ linearizable: true })).members).toHaveLength(1);
    },
  },
];

/** A learner as soon as etcd allows one: everybody has been connected for 5 s then. */
async function settledLearner(lab: Lab, through: string): Promise<bigint> {
  const { member } = await lab.eventually(() => lab.client(through).addLearner('http://127.0.0.1:9'), 20_000);
  return member.id;
}

/** 3.5.30 and 3.6.11 count a majority with the newcomer as down; before, every voter had to be connected. */
function byMajority(lab: Lab): boolean {
  return since(lab, '3.6.0') ? since(lab, '3.6.11') : since(lab, '3.5.30');
}
