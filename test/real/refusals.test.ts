// Goal: rows K08 to K15 of the catalogue: what is refused, waits or goes a longer way is said by `plan` and `why` in one sentence with
// its numbers; and a voter that lost its power a second ago is not counted, though etcd itself would still count it.
// Method: three agents with real etcd go through their lives by role files and commands; at each point both commands are asked.
import { describe, expect } from 'vitest';
import { command } from '../support/command.ts';
import { fullRun, newestBinary } from '../support/etcd-binaries.ts';
import { etcdctl } from '../support/etcdctl.ts';
import { eventually } from '../support/eventually.ts';
import { type FleetNode, killAll } from '../support/fleet.ts';
import { test } from '../support/fleet-test.ts';
import { acceptance, votes } from '../support/memberships.ts';

for (const binary of [newestBinary()]) {
  describe(`etcd ${binary.version}`, () => {
    test.runIf(fullRun)(
      'K08 K09 K10 K11 K12 K13 K14 K15 plan and why explain each refusal in one sentence with numbers',
      {
        timeout: 300_000,
      },
      async ({ fleet: make }) => {
        const fleet = await make({ binary, founded: false });
        const [n1, n2, n3] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
        for (const node of fleet.nodes) await node.startAgent();
        await n1.post('/v1/found');
        await n1.ready();
        grant(n1, 'consensus-member', []);

        // A second voter that dies would end the cluster, so it has to be in sync for a while.
        grant(n2, 'consensus-member', [n1]);
        await says(
          n2,
          'K15',
          /promoting n2 \(\w+\) is refused: it has been in sync for [\d.]+ s and must be for 10\.0 s/,
        );
        await votes(n2, 2);
        grant(n3, 'consensus-member', [n1, n2]);
        await votes(n3, 3);
        await Promise.all(fleet.nodes.map((node) => node.knowsEverybody(3)));

        n3.writeRole({ role: 'consensus-member', grantId: 'first', stopped: true });
        await says(n3, 'K08', /role\.yaml:1:\d+: stopped is no field of a role document/);
        n3.writeRole({ nodeId: 'n9', role: 'leaving', grantId: 'first' });
        await says(n3, 'K09', /it is for node n9, and this is n3/);
        n3.writeRole({ clusterId: 'abc', role: 'leaving', grantId: 'first' });
        await says(n3, 'K09', /it is for cluster abc, and this node belongs to \w+/);
        grant(n3, 'consensus-member', [n1, n2]);
        await n3.until(({ role }) => role.problem === '', 'its role is good again');

        const leader = await fleet.leader();
        const dry = await command(leader, 'leave', '--accept-zero-tolerance', '--dry-run');
        expect(dry.stdout, 'K11').toMatch(
          /removing n\d \(\w+\) is allowed: 3 voters \(quorum 2, 1 may fail, 3 answer now\) become 2 voters \(quorum 2, none may fail, 2 answer now\); it leads, so leadership is moved first/,
        );

        // Somebody else is about to change something. Its record is written as docs/change-record.md says.
        const accept = await acceptance(n3);
        const clusterId = (await n1.status()).member?.clusterId ?? '';
        const foreign = {
          clusterId,
          operation: 'f'.repeat(16),
          kind: 'remove',
          target: 'abc',
          by: 'n9',
          phase: 'sending',
        };
        const record = JSON.stringify({ ...foreign, waitMs: 600_000, at: new Date().toISOString() });
        await etcdctl(n1, 'put', '/etcd-node-agent/v1/change', record);
        grant(n3, 'leaving', [n1, n2], accept);
        await says(n3, 'K14', /n9 has begun a change \(remove abc, .*\)/);
        expect((await n1.status()).cluster?.members).toHaveLength(3);
        grant(n3, 'consensus-member', [n1, n2]);
        await n3.until(({ plan }) => plan.kind === 'converged', 'it stays');
        await etcdctl(n1, 'del', '/etcd-node-agent/v1/change');

        // One of three loses its power, and at the same moment another is told to go. etcd's own check is 5 s behind.
        const dead = (await n2.memberId()).toString(16);
        await killAll(n2);
        const from = performance.now();
        grant(n3, 'leaving', [n1, n2], accept);
        const numbers =
          /removing n3 \(\w+\) is refused: (2 voters would remain, of which 2 must answer now and 1 does|no leader among the 3 voters answers|2 of 3 voters must answer)/;
        await n3.until(({ plan }) => numbers.test(plan.because), 'K12', 5_000);
        process.stderr.write(
          `refused ${Math.round(performance.now() - from)} ms after the power of another was lost\n`,
        );
        await says(
          n3,
          'K12',
          /2 voters would remain, of which 2 must answer now and 1 does \(n2 \(\w+\) does not answer\)/,
        );
        expect((await n3.status()).cluster?.members).toHaveLength(3);
        grant(n3, 'consensus-member', [n1, n2]);
        await n3.until(({ plan }) => plan.kind === 'converged', 'it stays');

        // The dead one may go: no voter is connected to it.
        const evict = await eventually(
          async () => {
            const result = await command(n1, 'members', 'evict', dead, '--dry-run');
            if (result.code !== 0) throw new Error(result.stderr);
            return result;
          },
          { withinMs: 30_000, what: 'K13' },
        );
        expect(evict.stdout, 'K13').toMatch(
          /removing n2 \(\w+\) is allowed: 3 voters \(quorum 2, 1 may fail, 2 answer now\) become 2 voters \(quorum 2, none may fail, 2 answer now\)/,
        );
        await eventually(async () => (await command(n1, 'members', 'evict', dead)).code === 0, { withinMs: 30_000 });

        grant(n3, 'leaving', [n1], await acceptance(n3));
        await n3.until(({ process }) => process.intent === 'removed', 'it has left', 60_000);
        await n1.until(({ cluster }) => cluster?.members.length === 1, 'one is left');
        grant(n1, 'leaving', []);
        await says(
          n1,
          'K10',
          /removing n1 \(\w+\) is refused: it is the last voter, and a cluster without a voter is lost/,
        );
        expect(await n1.leads()).toBe(true);
      },
    );
  });
}

/** `plan` and `why` say it, each in one line. */
async function says(node: FleetNode, row: string, wanted: RegExp): Promise<void> {
  for (const name of ['plan', 'why']) {
    await eventually(
      async () => {
        const { stdout } = await command(node, name);
        if (!stdout.split('\n').some((line) => wanted.test(line))) throw new Error(stdout);
        return true;
      },
      { withinMs: 20_000, what: `${row}: ${name} of ${node.name} says ${String(wanted)}` },
    );
  }
}

function grant(
  node: FleetNode,
  role: 'consensus-member' | 'leaving',
  through: readonly FleetNode[],
  accept: readonly unknown[] = [],
): void {
  const endpoints = through.map(({ clientUrl }) => clientUrl);
  node.writeRole({ role, grantId: 'first', endpoints, accept });
}
