// Goal: what an order answers is so, and what was refused is remembered for `why`.
// Method: agent-machine.ts, asked through NodeControl; the founding by itself, on a disk in memory.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClusterFounding, type ClusterFoundingOptions } from '../../src/agent/founder.ts';
import { layoutOf } from '../../src/agent/layout.ts';
import { NodeControl, type NodeControlOptions } from '../../src/agent/node-control.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import { MemoryDisk } from '../support/memory-disk.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { AgentMachine, others, us } from './agent-machine.ts';

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

const no = { dryRun: false };

function control(): NodeControl {
  const role = { view: () => ({ problem: 'it is for cluster abc' }) };
  return new NodeControl({
    parts: machine.parts,
    child: machine.child,
    clock: machine.clock,
    role,
  } as unknown as NodeControlOptions);
}

/** The agent's own steps go on while an order is answered. */
async function answered<T>(order: Promise<T>): Promise<T> {
  const settled = order.finally(() => {});
  for (let turns = 0; turns < 30; turns++) await machine.pass(100);
  return await settled;
}

describe('start says what is so', () => {
  test('of an etcd that runs', async () => {
    machine.answer([us, [...others, us]]);
    machine.boot();
    await machine.pass(1_000);
    expect((await answered(control().start(no))).lines).toEqual(['etcd runs already, and may go on']);
  });

  test('of one that was stopped, with the step that comes next; a dry run says the same and does nothing', async () => {
    machine.boot();
    await machine.pass(1_000);
    await answered(control().stop({ force: true, dryRun: false }));
    await machine.until(() => machine.plan === 'blocked stoppedByOperator', 'it is stopped');
    const dry = await answered(control().start({ dryRun: true }));
    expect(dry).toMatchObject({ done: false, lines: [expect.stringMatching(/^etcd may run; next: /)] });
    expect(machine.plan).toBe('blocked stoppedByOperator');
    const real = await answered(control().start(no));
    expect(real.lines[0]).toMatch(/^etcd may run; /);
    await machine.until(() => machine.child.starts === 1, 'the start');
  });

  test('of one that cannot be started: the blocker and what helps', async () => {
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    machine.disk.rename(machine.layout.dataDir, '/gone');
    machine.boot();
    await machine.until(() => machine.plan === 'blocked diskLost', 'it is seen');
    const { lines } = await answered(control().start(no));
    expect(lines).toEqual([
      expect.stringMatching(
        /^etcd may run, and is not started: blocked diskLost: member a3 ran on this node and its data is gone/,
      ),
      expect.stringContaining('"a lost disk"'),
    ]);
  });
});

test('resume without a pause changes nothing and reports nothing', async () => {
  machine.boot();
  await machine.pass(1_000);
  expect(await answered(control().resume())).toMatchObject({
    done: false,
    lines: ['there is no pause; nothing was changed'],
  });
  expect(machine.factsOf('operator.command')).toEqual([]);
  await answered(control().pause({ forMs: 60_000, reason: 'work' }));
  expect(await answered(control().resume())).toMatchObject({ done: true, lines: ['the pause is over'] });
  expect(await answered(control().resume())).toMatchObject({ done: false });
});

test('why knows refused orders, each once, and what stands against the role', async () => {
  machine.boot();
  await machine.pass(1_000);
  for (let times = 0; times < 2; times++)
    await expect(control().pause({ forMs: 0, reason: '' })).rejects.toThrow(/from 1 s to 7 days/);
  await expect(control().confirmRemoved({ memberId: 'a1' })).rejects.toThrow(/this node is member a3/);
  expect(control().why()).toMatchObject({
    roleProblem: 'it is for cluster abc',
    refusals: [
      { what: 'confirm-removed', because: expect.stringContaining('not a1') },
      { what: 'pause', hint: 'Pause again when it ends.' },
    ],
  });
});

describe('found alone', () => {
  const layout = layoutOf({ stateDir: '/state', dataRoot: '/root', clusterName: 'default', memberName: 'n1' });
  const empty = { kind: 'absent' } as const;

  function founding(): ClusterFounding {
    const random = new SeededRandom(1);
    const disk = new MemoryDisk(random.fork());
    disk.ensureDirectory(layout.stateDir);
    const about = {
      nodeId: 'n1',
      clusterName: 'default',
      name: 'n1',
      peerUrl: 'http://a:2380',
      clientUrl: 'http://a:2379',
    };
    const state = new AgentState({ disk, layout });
    return new ClusterFounding({ ...about, state, layout, disk, random } as unknown as ClusterFoundingOptions);
  }

  test('is refused on a node that was prepared to found with others, unless that is meant', () => {
    const node = founding();
    const line = node.prepare(empty);
    expect(() => node.check('alone', empty)).toThrow(/was prepared to found together with others/);
    expect(node.check('aloneAfterAll', empty).lines).toEqual([line]);
    expect(node.check([line], empty).lines).toEqual([line]);
  });

  test('needs no word on a node that was not prepared', () => {
    expect(founding().check('alone', empty).lines).toHaveLength(1);
  });
});
