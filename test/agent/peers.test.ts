// Goal: before a start the other voters have a while to say who is in the cluster, and no longer than helps: a voter that has
// us and no quorum cannot confirm it, and its quorum may be waiting for us.
// Method: a fake clock, and voters whose confirmed and own lists come when the test says so.
import { describe, expect, test } from 'vitest';
import { Peers } from '../../src/agent/peers.ts';
import type { ClusterPort } from '../../src/agent/ports.ts';
import type { IdentityRecord } from '../../src/agent/state/schemas.ts';
import type { MemberId, MemberList } from '../../src/etcd/member.ts';
import { FakeClock } from '../support/fake-clock.ts';

const us = 1n;
const other = 2n;
const never = undefined;

describe('asking the other voters', () => {
  test('a confirmed list is an answer as soon as it comes', async () => {
    const { askedForMs, answers } = await ask({ confirmed: { afterMs: 40, members: [us, other] }, own: never });
    expect(answers).toMatchObject({ silent: 0, lists: [{ linearizable: true }] });
    expect(askedForMs).toBe(40);
  });

  test('a voter that has us and cannot have it confirmed is waited for half a second', async () => {
    const { askedForMs, answers } = await ask({ confirmed: never, own: { afterMs: 10, members: [us, other] } });
    expect(answers).toMatchObject({ silent: 1, lists: [] });
    expect(askedForMs).toBe(510);
  });

  test('a voter whose own list has us and whose confirmed list lacks us is believed the latter', async () => {
    const own = { afterMs: 10, members: [us, other] };
    const { answers } = await ask({ confirmed: { afterMs: 300, members: [other] }, own });
    expect(answers.lists.map(({ members }) => members.map(({ id }) => id))).toEqual([[other]]);
  });

  test('a voter whose own list lacks us has the whole time to have that confirmed', async () => {
    const { askedForMs, answers } = await ask({
      confirmed: { afterMs: 1_900, members: [other] },
      own: { afterMs: 10, members: [other] },
    });
    expect(answers).toMatchObject({ silent: 0, lists: [{ linearizable: true }] });
    expect(askedForMs).toBe(1_900);
  });

  test('an own list of another cluster shortens nothing', async () => {
    const own = { afterMs: 10, members: [us, other], clusterId: 9n };
    const { askedForMs } = await ask({ confirmed: never, own });
    expect(askedForMs).toBe(2_000);
  });

  test('a voter whose first address is dead is heard at its second', async () => {
    const { askedForMs, answers } = await ask({
      confirmed: { afterMs: 40, members: [us, other] },
      own: never,
      addresses: ['dead', 'living'],
    });
    expect(answers).toMatchObject({ silent: 0, lists: [{ linearizable: true }] });
    expect(askedForMs).toBe(1_040);
  });

  test('an address that refuses at once costs no time', async () => {
    const confirmed = { afterMs: 40, members: [us, other] };
    const { askedForMs } = await ask({ confirmed, own: never, addresses: ['refusing', 'living'] });
    expect(askedForMs).toBe(40);
  });

  test('a slow first address is still listened to while the second is asked', async () => {
    const confirmed = { afterMs: 1_500, members: [other] };
    const { askedForMs, answers } = await ask({ confirmed, own: never, addresses: ['living', 'dead'] });
    expect(answers).toMatchObject({ silent: 0, lists: [{ linearizable: true }] });
    expect(askedForMs).toBe(1_500);
  });

  test('silence ends with the time that was given', async () => {
    const { askedForMs, answers } = await ask({ confirmed: never, own: never });
    expect(answers).toMatchObject({ silent: 1, lists: [] });
    expect(askedForMs).toBe(2_000);
  });
});

test('what was said of one member is no answer about the next member of this node', async () => {
  const { peers } = await ask({ confirmed: { afterMs: 40, members: [other] }, own: never });
  expect(peers.latestAbout(us)?.lists).toHaveLength(1);
  expect(peers.latestAbout(3n)).toBeUndefined();
  expect(peers.latestAbout(undefined)).toBeUndefined();
});

interface Said {
  readonly afterMs: number;
  readonly members: readonly MemberId[];
  readonly clusterId?: bigint;
}

/** Asks one other voter that answers like this, for 2 s. */
async function ask(voter: {
  readonly confirmed: Said | undefined;
  readonly own: Said | undefined;
  readonly addresses?: readonly ('living' | 'dead' | 'refusing')[];
}) {
  const clock = new FakeClock();
  const { addresses = ['living'] } = voter;
  const memberList: ClusterPort['memberList'] = (endpoint, { linearizable, timeoutMs }) =>
    new Promise((resolve, reject) => {
      if (endpoint === 'refusing') return reject(new Error('connection refused'));
      const said = endpoint === 'dead' ? never : linearizable ? voter.confirmed : voter.own;
      const inTime = said !== undefined && said.afterMs < timeoutMs;
      clock.after(inTime ? said.afterMs : timeoutMs, () =>
        inTime ? resolve(listOf(said, linearizable)) : reject(new Error('no answer')),
      );
    });
  const peers = new Peers({ cluster: { memberList } as ClusterPort, clock });
  let askedForMs: number | undefined;
  const asking = peers.ask(identityWith(addresses), 2_000).finally(() => {
    askedForMs = clock.monotonicMs();
  });
  await clock.advance(3_000);
  return { answers: await asking, askedForMs, peers };
}

function listOf(said: Said, linearizable: boolean): MemberList {
  const members = said.members.map((id) => ({ id, name: `n${id}`, peerUrls: [], clientUrls: [], isLearner: false }));
  return { clusterId: said.clusterId ?? 7n, answeredBy: other, members, linearizable };
}

function identityWith(addresses: readonly string[]): IdentityRecord {
  const lastVoters = [
    { id: us, clientUrls: [] },
    { id: other, clientUrls: addresses },
  ];
  return { clusterId: 7n, memberId: us, lastVoters } as unknown as IdentityRecord;
}
