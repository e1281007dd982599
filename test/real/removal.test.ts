// Goal: the main job. A member that others removed is known as removed, however its etcd ends, is never started again, its data is
// archived, and the report arrives; the agent itself lives on.
// Method: three agents with real, unpatched etcd on loopback; MemberRemove sent to another member. Each fleet gives two removals:
// the leader of three, then of the two that are left the leader (panic) or the follower (clean end).
// The panic is a race: Status is asked 400 times a second, on four connections, until it comes, a bounded number of times. A follower
// hears of its removal from the others before it has applied it, so it is made sure that the victim leads at that moment.
// The clean ends are made under default probing, so they are also the count of removals by others that panic in everyday use:
// two in a row in a short run, ten in a row for each version in a full one, which are more than thirty in all.
import { afterAll, describe, expect } from 'vitest';
import { testVersions } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import type { Fleet, FleetNode } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { StatusHammer } from '../support/hammer.ts';
import { removeMember } from '../support/remove-member.ts';
import { expectRemoved, type ReportedEnd, reportedEnd, spread } from '../support/removed.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const full = process.env['ETCD_TEST_VERSIONS'] === 'all';
/** So many removals under Status calls are tried at most. */
const maxTries = 8;
/** So many panics are wanted: a median needs more than one. */
const wantedPanics = full ? 3 : 1;
/** So many removals in a row are to end with 0 under default probing. */
const wantedClean = full ? 10 : 2;
/** A panic in between begins the row anew; the bound of all is below. */
const maxQuiet = wantedClean * 2;

/** Of all versions together. */
const underDefaultProbing = { removals: 0, panics: 0 };

for (const binary of testVersions()) {
  describe(`etcd ${binary.version}`, () => {
    test('C31 the leader is removed under Status calls, etcd panics, and nothing else does', {
      timeout: 600_000,
    }, async ({ fleet: make }) => {
      const ends: string[] = [];
      const verdicts: number[] = [];
      let panics = 0;
      while (panics < wantedPanics) {
        await using upstream = await receiving();
        const { receiver } = upstream;
        const fleet = await make({ binary, webhookUrl: receiver.url });
        for (let round = 1; round <= 2 && panics < wantedPanics; round++) {
          expect(ends.length, `tries until ${wantedPanics} panics: ${ends.join(', ')}`).toBeLessThan(maxTries);
          const { victim, end, verdictMs } = await removeUnderStatus(fleet, receiver);
          ends.push(end.panicSeen ? 'panic' : `code ${end.code}`);
          verdicts.push(verdictMs);
          expect(end.class).toBe('removed');
          if (end.panicSeen) {
            panics++;
            expect(end).toMatchObject({ code: 2, signal: null });
            expect(victim.etcdLog()).toMatch(/^panic: failed to find local ID in cluster members/m);
            expect(victim.etcdLog()).toContain('IsLocalMemberLearner');
          }
          await expectRemoved(fleet, victim, receiver, { exit: end });
        }
        await fleet.close();
      }
      const { median, worst } = spread(verdicts);
      process.stderr.write(
        `etcd ${binary.version}: ${panics} panics in ${ends.length} tries (${ends.join(', ')}); verdict median ${median} ms, worst ${worst} ms\n`,
      );
      expect(median).toBeLessThan(2_000);
      expect(worst).toBeLessThan(5_000);
    });

    test('C10 removed and left with 0, leader and follower, in a row: the same verdict', { timeout: 600_000 }, async ({
      fleet: make,
    }) => {
      const verdicts: number[] = [];
      const codes: (number | null)[] = [];
      for (let inRow = 0; inRow < wantedClean; ) {
        expect(codes.length, `ends until ${wantedClean} in a row are 0: ${codes.join(', ')}`).toBeLessThan(maxQuiet);
        await using upstream = await receiving();
        const { receiver } = upstream;
        const fleet = await make({ binary, webhookUrl: receiver.url });
        for (const which of ['leader', 'follower'] as const) {
          const { victim, end, verdictMs } = await removeQuietly(fleet, receiver, which);
          verdicts.push(verdictMs);
          codes.push(end.code);
          underDefaultProbing.removals++;
          inRow = end.panicSeen ? 0 : inRow + 1;
          if (end.panicSeen) underDefaultProbing.panics++;
          else expect(end).toMatchObject({ class: 'removed', code: 0, signal: null });
          await expectRemoved(fleet, victim, receiver, { exit: end });
        }
        await fleet.close();
      }
      const { median, worst } = spread(verdicts);
      process.stderr.write(
        `etcd ${binary.version}: ${codes.length} removals ended with ${codes.join(', ')}; verdict median ${median} ms, worst ${worst} ms\n`,
      );
      expect(median).toBeLessThan(2_000);
      expect(worst).toBeLessThan(5_000);
    });
  });
}

afterAll(() => {
  const { removals, panics } = underDefaultProbing;
  process.stderr.write(`${removals} removals by others under default probing: ${panics} panics\n`);
  expect(panics).toBeLessThan(2);
});

interface Removal {
  readonly victim: FleetNode;
  readonly end: ReportedEnd;
  /** From the accepted call to the verdict. Unit: ms. */
  readonly verdictMs: number;
}

/** Removes the leader of those that are left, under Status calls on several connections. */
async function removeUnderStatus(fleet: Fleet, receiver: WebhookReceiver): Promise<Removal> {
  await acceptsRemovals(fleet);
  const victim = await fleet.leader();
  const hammer = new StatusHammer(victim.clientUrl);
  try {
    await eventually(() => hammer.answered > 100);
    return await remove(fleet, victim, receiver);
  } finally {
    await hammer.stop();
  }
}

/** etcd refuses a removal until its members have been connected for 5 s: nobody is asked for Status during that wait. */
async function acceptsRemovals(fleet: Fleet): Promise<void> {
  for (const node of fleet.nodes.filter((one) => one.processes().length > 0)) {
    const connected = ({ process: { since } }: { process: { since: string | null } }) =>
      since !== null && Date.now() - Date.parse(since) > 5_500;
    await node.until(connected, 'it has been connected for 5 s');
  }
}

/** A receiver for one fleet: the nodes of the next one have the same names. */
async function receiving(): Promise<{ readonly receiver: WebhookReceiver } & AsyncDisposable> {
  const receiver = await WebhookReceiver.start();
  return { receiver, [Symbol.asyncDispose]: () => receiver.close() };
}

async function removeQuietly(fleet: Fleet, receiver: WebhookReceiver, which: 'leader' | 'follower'): Promise<Removal> {
  const leader = await fleet.leader();
  const follower = fleet.nodes.find((node) => node !== leader && node.processes().length > 0);
  const victim = which === 'leader' ? leader : follower;
  if (victim === undefined) throw new Error(`there is no ${which}`);
  return await remove(fleet, victim, receiver);
}

async function remove(fleet: Fleet, victim: FleetNode, receiver: WebhookReceiver): Promise<Removal> {
  const { agentPid } = victim;
  const other = fleet.nodes.find((node) => node !== victim && node.processes().length > 0);
  if (other === undefined) throw new Error('there is no other node');
  const removedAt = await removeMember(other.clientUrl, await victim.memberId());
  await victim.until(({ process: { lastExit } }) => lastExit?.class === 'removed', 'the verdict is removed', 20_000);
  expect(victim.agentPid).toBe(agentPid);
  const { end, atMs } = await reportedEnd(receiver, victim);
  // The agent's own moment of the verdict, on the same clock: asking for it would add to it.
  return { victim, end, verdictMs: atMs - (performance.timeOrigin + removedAt) };
}
