/** Leadership: who may move it where, and what happens to a leader that freezes, dies or stops. */
import { expect } from 'vitest';
import { type ConformanceCase, gaveUp, leaderOf, memberNamed, refusal, two } from './lab.ts';

const voters = ['n1', 'n2', 'n3'];

export const handOverCases: readonly ConformanceCase[] = [
  {
    title: 'leadership moves from the leader alone, to a voter alone; and a frozen target costs an election timeout',
    etcdAtOnce: 3,
    alsoShort: true,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [one, other] = two(followers);
      const onLeader = lab.client(leader);
      const onOne = lab.client(one);
      const [oneId, otherId] = [(await memberNamed(onLeader, one)).id, (await memberNamed(onLeader, other)).id];
      expect(await refusal(onOne.moveLeader(otherId))).toBe('9 etcdserver: not leader');
      expect(await refusal(onLeader.moveLeader(0xdeadn))).toBe('9 etcdserver: bad leader transferee');
      expect(await refusal(onLeader.moveLeader(0n))).toBe('9 etcdserver: bad leader transferee');
      const before = await onLeader.status();
      await onLeader.moveLeader(oneId);
      const after = await lab.eventually(async () => {
        const status = await lab.client(other).status();
        return status.leaderId === oneId && status;
      });
      expect(after.raftTerm).toBeGreaterThan(before.raftTerm);
      expect((await onLeader.status()).leaderId).toBe(oneId);
      await onLeader.keys.put('/a', 'by the old leader');

      lab.freeze(other);
      const startedMs = lab.nowMs();
      const move = refusal(onOne.moveLeader(otherId, { deadlineMs: 1_500 }));
      await lab.rest(100);
      expect(await refusal(onOne.keys.put('/a', 'x', { deadlineMs: 500 }))).toBe('2 raft proposal dropped');
      expect(await move).toMatch(gaveUp);
      expect(lab.nowMs() - startedMs).toBeGreaterThan(1_400);
      await lab.eventually(() => onOne.keys.put('/a', 'it has given up', { deadlineMs: 1_000 }));
      expect((await onOne.status()).leaderId).toBe(oneId);
      lab.thaw(other);
      await lab.eventually(() => lab.client(other).linearizableRead({ deadlineMs: 1_000 }));
    },
  },
  {
    title: 'a frozen leader is replaced, calls to it hang, and it follows when it goes on',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [one, other] = two(followers);
      const old = (await lab.client(leader).status()).header.memberId;
      lab.freeze(leader);
      const frozenMs = lab.nowMs();
      const hanging = refusal(lab.client(leader).serializableRead({ deadlineMs: 500 }));
      const replaced = await lab.eventually(async () => {
        const { leaderId, raftTerm } = await lab.client(one).status();
        return leaderId !== undefined && leaderId !== old && { leaderId, raftTerm };
      });
      expect(lab.nowMs() - frozenMs).toBeGreaterThan(700);
      expect(await hanging).toMatch(gaveUp);
      await lab.eventually(() => lab.client(other).keys.put('/a', 'without it', { deadlineMs: 1_000 }));
      lab.thaw(leader);
      await lab.eventually(async () => (await lab.client(leader).status()).leaderId === replaced.leaderId);
      await lab.eventually(async () => (await lab.client(leader).keys.get('/a'))?.value === 'without it');
    },
  },
  {
    title: 'a leader that is told to stop hands over, dies of the signal, and comes back as a follower',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(voters, { strict: false });
      const { leader, followers } = await leaderOf(lab, voters);
      const [one] = two(followers);
      const old = (await lab.client(leader).status()).header.memberId;
      lab.terminate(leader);
      expect(await lab.exited(leader)).toEqual({ code: null, signal: 'SIGTERM' });
      expect(lab.log(leader)).toContain('received signal; shutting down');
      expect(await refusal(lab.client(leader).serializableRead({ deadlineMs: 1_000 }))).toMatch(
        /^14 .*(ECONNREFUSED|ECONNRESET|dropped)/,
      );
      const next = await lab.eventually(async () => {
        const { leaderId } = await lab.client(one).status();
        return leaderId !== undefined && leaderId !== old && leaderId;
      });
      await lab.client(one).keys.put('/a', 'without it', { deadlineMs: 3_000 });
      lab.restart(leader);
      await lab.serving(leader);
      expect(await lab.client(leader).status()).toMatchObject({ leaderId: next, header: { memberId: old } });
      expect((await lab.client(leader).keys.get('/a'))?.value).toBe('without it');
      const { followers: both } = await leaderOf(lab, voters);
      const [follower] = two(both);
      lab.terminate(follower);
      expect(await lab.exited(follower)).toEqual({ code: null, signal: 'SIGTERM' });
    },
  },
];
