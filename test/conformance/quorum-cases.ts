/** Without a quorum, and with answers that leave the outcome open. */
import { expect } from 'vitest';
import { type ConformanceCase, gaveUp, leaderOf, memberNamed, refusal, since, two } from './lab.ts';

const voters = ['n1', 'n2', 'n3'];

export const quorumCases: readonly ConformanceCase[] = [
  {
    title: 'without a quorum changes hang, reads are given up after 7 s, local views still answer',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [one, other] = two(followers);
      const client = lab.client(leader);
      const asIfNewer = lab.client(leader, { etcdVersion: '3.5.0' });
      const own = (await memberNamed(client, leader)).id;
      const oneId = (await memberNamed(client, one)).id;
      await lab.kill(other);
      // On a slow machine the election may take longer than the 7 s that a read is worth to etcd.
      await lab.eventually(async () => {
        await lab.kill(one);
        await lab.eventually(async () => (await client.status()).leaderId === undefined);
        const waiting = refusal(client.linearizableRead({ deadlineMs: 6_500 }));
        lab.restart(one);
        return (await waiting) === '14 etcdserver: leader changed';
      }, 60_000);
      await lab.eventually(() => client.keys.put('/a', 'again', { deadlineMs: 2_000 }));
      expect((await client.memberList({ linearizable: true })).members).toHaveLength(3);
      await lab.kill(one);
      await lab.eventually(async () => (await client.status()).leaderId === undefined);
      expect((await client.status()).errors).toContain('etcdserver: no leader');
      expect((await client.memberList({ linearizable: false })).members).toHaveLength(3);
      expect((await client.serializableRead()).memberId).toBe(own);
      expect(await refusal(client.moveLeader(oneId))).toBe('9 etcdserver: not leader');
      const startedMs = lab.nowMs();
      const first = refusal(client.linearizableRead({ deadlineMs: 8_000 }));
      await lab.rest(50);
      const [list, put, add, remove, promote] = await Promise.all([
        refusal(asIfNewer.memberList({ linearizable: true, deadlineMs: 8_000 })),
        refusal(client.keys.put('/a', 'x', { deadlineMs: 8_000 })),
        refusal(client.addLearner('http://127.0.0.1:9', { deadlineMs: 8_000 })),
        refusal(client.removeMember(oneId, { deadlineMs: 8_000 })),
        refusal(client.promoteMember(oneId, { deadlineMs: 8_000 })),
      ]);
      const tookMs = lab.nowMs() - startedMs;
      expect(await first).toBe('14 etcdserver: request timed out');
      // 3.4 answers every list from its own view.
      // It came after the read, and waits until that is given up.
      if (since(lab, '3.5.0')) expect(list).toMatch(gaveUp);
      else expect(list).toBe('it was not refused');
      expect(put).toMatch(since(lab, '3.5.0') ? /^4 context deadline exceeded/ : /^2 context deadline exceeded/);
      expect(add).toMatch(gaveUp);
      expect(remove).toMatch(gaveUp);
      expect(promote).toBe('14 etcdserver: no leader');
      expect(tookMs).toBeGreaterThan(7_900);
    },
  },
  {
    title: 'a change that timed out is applied later',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const client = lab.client(leader);
      for (const name of followers) lab.freeze(name);
      expect(await refusal(client.addLearner('http://127.0.0.1:9', { deadlineMs: 300 }))).toMatch(gaveUp);
      expect((await client.memberList({ linearizable: false })).members).toHaveLength(3);
      for (const name of followers) lab.thaw(name);
      const late = await lab.eventually(async () => {
        const { members } = await client.memberList({ linearizable: true });
        return members.find(({ isLearner }) => isLearner);
      });
      expect(late).toMatchObject({ name: '', peerUrls: ['http://127.0.0.1:9'] });
    },
  },
  {
    title: 'a second change before the first is applied is swallowed: it hangs and is never applied',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const client = lab.client(leader);
      const own = await memberNamed(client, leader);
      for (const name of followers) lab.freeze(name);
      const first = refusal(client.addLearner('http://127.0.0.1:9', { deadlineMs: 4_000 }));
      await lab.rest(100);
      const moved = refusal(client.updateMember(own.id, ['http://127.0.0.1:10'], { deadlineMs: 3_000 }));
      await lab.rest(100);
      for (const name of followers) lab.thaw(name);
      expect(await first).toBe('it was not refused');
      expect(await moved).toMatch(gaveUp);
      const { members } = await client.memberList({ linearizable: true });
      expect(members).toHaveLength(4);
      expect(members.find(({ id }) => id === own.id)?.peerUrls).toEqual(own.peerUrls);
    },
  },
  {
    title: 'a voter that is added and never started ends a cluster of one',
    etcdAtOnce: 1,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      const id = await lab.addVoter('n1', 'http://127.0.0.1:9');
      const [read, remove] = await Promise.all([
        refusal(client.linearizableRead({ deadlineMs: 2_000 })),
        refusal(client.removeMember(id, { deadlineMs: 2_000 })),
      ]);
      expect(read).toMatch(gaveUp);
      expect(remove).toMatch(gaveUp);
      expect((await client.memberList({ linearizable: false })).members).toHaveLength(2);
    },
  },
  {
    title: 'a key is created once, replaced and removed by whoever read it last',
    etcdAtOnce: 1,
    run: async (lab) => {
      await lab.found(['n1']);
      const { keys } = lab.client('n1');
      expect(await keys.get('/change')).toBeUndefined();
      const created = await keys.create('/change', 'one');
      expect(created.applied).toBe(true);
      expect((await keys.create('/change', 'two')).applied).toBe(false);
      const first = await keys.get('/change');
      if (first === undefined) expect.fail('it was written');
      expect(first).toEqual({
        key: '/change',
        value: 'one',
        createRevision: created.header.revision,
        modRevision: created.header.revision,
      });
      const replaced = await keys.replace(first, 'three');
      expect(replaced).toMatchObject({ applied: true, header: { revision: created.header.revision + 1n } });
      expect((await keys.replace(first, 'late')).applied).toBe(false);
      expect((await keys.remove(first)).applied).toBe(false);
      const second = await keys.get('/change');
      if (second === undefined) expect.fail('it is there');
      expect(second.createRevision).toBe(first.createRevision);
      expect((await keys.remove(second)).applied).toBe(true);
      expect(await keys.get('/change')).toBeUndefined();
      const again = await keys.create('/change', 'new');
      expect(again).toMatchObject({ applied: true, header: { revision: replaced.header.revision + 2n } });
      await keys.put('/change/a', 'x');
      await keys.put('/other', 'x');
      expect((await keys.list('/change')).map(({ key }) => key)).toEqual(['/change', '/change/a']);
    },
  },
];
