/** Join and promote: one voter, one learner. */
import { expect } from 'vitest';
import { type ConformanceCase, caughtUp, gaveUp, type Lab, memberNamed, refusal, since } from './lab.ts';

const notInSync = '9 etcdserver: can only promote a learner member which is in sync with leader';

export const joinCases: readonly ConformanceCase[] = [
  {
    title: 'a single voter: what is refused, and in which words',
    etcdAtOnce: 1,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      const own = await memberNamed(client, 'n1');
      expect(own).toMatchObject({ isLearner: false, peerUrls: [lab.peerUrl('n1')] });
      expect(own.clientUrls).toHaveLength(1);
      const lists = await Promise.all([true, false].map((linearizable) => client.memberList({ linearizable })));
      expect(lists.map(({ members }) => members)).toEqual([[own], [own]]);
      expect(lists[0]?.answeredBy).toBe(own.id);
      expect(await refusal(client.removeMember(own.id))).toBe(
        '2 etcdserver: re-configuration failed due to not enough started members',
      );
      expect(await refusal(client.addLearner(lab.peerUrl('n1')))).toBe('9 etcdserver: Peer URLs already exists');
      for (const url of ['http://nowhere', 'nowhere:2380', 'http://10.0.0.9:2380/path', '']) {
        expect(await refusal(client.addLearner(url)), url).toBe('3 etcdserver: given member URLs are invalid');
      }
      const unknown = '5 etcdserver: member not found';
      expect(await refusal(client.removeMember(0xdeadn))).toBe(unknown);
      expect(await refusal(client.promoteMember(0xdeadn))).toBe(unknown);
      expect(await refusal(client.updateMember(0xdeadn, ['http://10.0.0.9:2380']))).toBe(unknown);
      expect(await refusal(client.promoteMember(own.id))).toBe('9 etcdserver: can only promote a learner member');
      await client.moveLeader(own.id);
      expect(await client.status()).toMatchObject({ isLearner: false, leaderId: own.id, errors: [] });
    },
  },
  {
    title: 'a learner joins at once, is refused until it is in sync, and votes; what it serves until then',
    etcdAtOnce: 2,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      const own = await memberNamed(client, 'n1');
      await lab.prepare('n2');
      const { member, list } = await client.addLearner(lab.peerUrl('n2'));
      expect(member).toEqual({
        id: member.id,
        name: '',
        peerUrls: [lab.peerUrl('n2')],
        clientUrls: [],
        isLearner: true,
      });
      expect(list.members.map(({ id }) => id)).toContain(member.id);
      expect(await refusal(client.addLearner('http://127.0.0.1:9'))).toBe(
        '9 etcdserver: too many learner members in cluster',
      );
      // An id is made of address and second: the same again within one second is the same member.
      expect(await refusal(client.addLearner(lab.peerUrl('n2')))).toMatch(
        /^9 etcdserver: (Peer URLs already exists|member ID already exist)$/,
      );
      expect(await refusal(client.promoteMember(member.id))).toBe(notInSync);
      expect(await refusal(client.moveLeader(member.id))).toBe('9 etcdserver: bad leader transferee');
      await client.keys.put('/a', 'an unstarted learner hinders nobody');

      lab.start('n2', ['n1', 'n2'], 'existing');
      await lab.serving('n2');
      const second = lab.client('n2');
      expect(await second.status()).toMatchObject({ isLearner: true, leaderId: own.id });
      expect((await second.serializableRead()).memberId).toBe(member.id);
      const refused = `${since(lab, '3.6.0') ? 9 : 14} etcdserver: rpc not supported for learner`;
      const calls = {
        linearizableRead: () => second.linearizableRead(),
        memberList: () => second.memberList({ linearizable: false }),
        addLearner: () => second.addLearner('http://127.0.0.1:9'),
        removeMember: () => second.removeMember(own.id),
        promoteMember: () => second.promoteMember(member.id),
        moveLeader: () => second.moveLeader(own.id),
        put: () => second.keys.put('/a', 'x'),
      };
      for (const [name, call] of Object.entries(calls)) expect(await refusal(call()), name).toBe(refused);
      const started = await memberNamed(client, 'n2');
      expect(started).toMatchObject({ id: member.id, isLearner: true });
      expect(started.clientUrls).toHaveLength(1);

      const promoted = await lab.eventually(() => client.promoteMember(member.id));
      expect(promoted.members.every(({ isLearner }) => !isLearner)).toBe(true);
      await lab.eventually(async () => !(await second.status()).isLearner);
      await lab.eventually(() => second.linearizableRead());
      expect(await refusal(second.promoteMember(member.id))).toBe('9 etcdserver: can only promote a learner member');
      expect(await refusal(second.promoteMember(0xdeadn))).toBe('5 etcdserver: member not found');
      expect((await second.keys.get('/a'))?.value).toBe('an unstarted learner hinders nobody');
    },
  },
  {
    title: 'a learner that fell behind is refused until it has caught up; a dead one that had is promoted',
    etcdAtOnce: 2,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      const id = await joinedLearner(lab, 'n2');
      await lab.kill('n2');
      for (let count = 0; count < 40; count++) await client.keys.put(`/k${count}`, 'v');
      expect(await refusal(client.promoteMember(id))).toBe(notInSync);
      lab.restart('n2');
      await lab.serving('n2');
      await caughtUp(lab, 'n2', 'n1');
      await lab.kill('n2');
      // The hazard: nobody is there, and it votes from now on.
      await client.promoteMember(id);
      expect(await refusal(client.keys.put('/a', 'x', { deadlineMs: 1_000 }))).toMatch(gaveUp);
      lab.restart('n2');
      await lab.eventually(() => client.linearizableRead({ deadlineMs: 1_000 }));
    },
  },
  {
    title: 'another address for a learner spoils its flag in older versions',
    etcdAtOnce: 2,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      const { member } = await client.addLearner('http://127.0.0.1:9');
      await client.updateMember(member.id, ['http://127.0.0.1:10']);
      const list = await client.memberList({ linearizable: true });
      const repaired = since(lab, '3.6.0') ? since(lab, '3.6.12') : since(lab, '3.5.31');
      expect(list.members.find(({ id }) => id === member.id)).toMatchObject({
        peerUrls: ['http://127.0.0.1:10'],
        isLearner: repaired,
      });
      await client.removeMember(member.id);
    },
  },
  {
    title:
      'an address that is added again within the second of its removal is refused as removed, later it is a new member',
    etcdAtOnce: 2,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      let met = false;
      for (let round = 0; round < 5 && !met; round++) {
        // Refused until a new second begins, if the last round was in this one.
        const { member } = await lab.eventually(() => client.addLearner('http://127.0.0.1:9'));
        await client.removeMember(member.id);
        const again = await refusal(client.addLearner('http://127.0.0.1:9'));
        met = again === '5 etcdserver: member not found';
        if (met) break;
        expect(again).toBe('it was not refused');
        const list = await client.memberList({ linearizable: true });
        await client.removeMember(list.members.find(({ isLearner }) => isLearner)?.id ?? 0n);
      }
      expect(met).toBe(true);
      await lab.eventually(() => client.addLearner('http://127.0.0.1:9'));
    },
  },
  {
    title: 'arguments that do not fit the cluster end the joiner with 1 and the reason',
    etcdAtOnce: 3,
    run: async (lab) => {
      await lab.found(['n1']);
      const client = lab.client('n1');
      await lab.prepare('n2');
      await lab.prepare('n3');
      lab.start('n2', ['n1', 'n2'], 'existing');
      expect(await lab.exited('n2')).toEqual({ code: 1, signal: null });
      expect(lab.log('n2')).toContain('member count is unequal');
      await client.addLearner(lab.peerUrl('n3'));
      lab.start('n2', ['n1', 'n2'], 'existing');
      expect(await lab.exited('n2')).toEqual({ code: 1, signal: null });
      expect(lab.log('n2')).toContain('no match found for existing member');
      await lab.kill('n1');
      lab.start('n3', ['n1', 'n3'], 'existing');
      expect(await lab.exited('n3')).toEqual({ code: 1, signal: null });
      expect(lab.log('n3')).toContain('could not retrieve cluster information from the given URLs');
    },
  },
];

/** Adds a learner and starts it; gives its id once it serves. */
async function joinedLearner(lab: Lab, name: string): Promise<bigint> {
  await lab.prepare(name);
  const { member } = await lab.client('n1').addLearner(lab.peerUrl(name));
  lab.start(name, ['n1', name], 'existing');
  await lab.serving(name);
  return member.id;
}
