// Goal: a survivor of three says by itself that the quorum is lost, how many answer, and when it is over.
// Method: agent and etcd of the two others are killed; nothing else asks the survivor anything.
import { describe, expect } from 'vitest';
import { alarmOf } from '../support/crash-node.ts';
import { fullRun, newestBinary } from '../support/etcd-binaries.ts';
import { eventually } from '../support/eventually.ts';
import { killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';

for (const binary of [newestBinary()]) {
  describe(`a lost quorum on etcd ${binary.version}`, () => {
    test.runIf(fullRun)(
      'is an alarm within 25 s, and is over once one of the others is back',
      { timeout: 180_000 },
      async ({ fleet: make }) => {
        const fleet = await make({ binary });
        const [n1, n2, n3] = [fleet.node('n1'), fleet.node('n2'), fleet.node('n3')];
        const whole = await n1.until(({ cluster }) => cluster?.answering === 3, 'all three answer');
        expect(whole.sentence).toMatch(/^etcd is ready \(pid \d+\); 3 voters, 1 may fail$/);
        const from = performance.now();
        await Promise.all([killAll(n2), killAll(n3)]);
        const lost = await n1.until((seen) => alarmOf(seen, 'noQuorum') !== undefined, 'the alarm', 25_000);
        process.stderr.write(`lost quorum: alarm after ${Math.round((performance.now() - from) / 100) / 10} s\n`);
        expect(lost.sentence).toMatch(
          /^etcd runs without a quorum \(pid \d+\): no quorum has confirmed a read for \d+ s/,
        );
        expect(lost).toMatchObject({ plan: { kind: 'waiting' }, member: { quorum: false, leader: false } });
        expect(lost.process.phase).toBe('ready');
        const alone = await n1.until(({ cluster }) => cluster?.answering === 1, 'nobody else answers', 60_000);
        expect(alone.sentence).toMatch(/3 voters, 1 answers, 2 are needed$/);
        const told = async () => (await n1.events()).filter(({ data }) => data['alarm'] === 'noQuorum').length;
        await eventually(async () => (await told()) === 1);

        await n2.startAgent();
        await n1.until((seen) => alarmOf(seen, 'noQuorum') === undefined, 'it is over', 60_000);
        const two = await n1.until(({ cluster }) => cluster?.answering === 2, 'two answer', 60_000);
        expect(two.sentence).toMatch(/3 voters, 2 answer, none may fail$/);
        expect(two.plan.kind).toBe('converged');
      },
    );
  });
}
