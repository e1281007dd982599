// Goal: the whole agent, on a disk and with an etcd that do what the test says: a removal by others is proven, suspected or unknown as it
// should be (exit classes 1 and 2), decides about starts, and survives a crash at any write.
// Method: agent-machine.ts; a kill or a power loss at each step of the disk, then a new agent on what is left.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AgentMachine, others, says, us } from './agent-machine.ts';

const [n1, n2] = others;
const withUs = [n1, n2, us];
const withoutUs = [n1, n2];
const zero = { kind: 'code', code: 0 } as const;
const two = { kind: 'code', code: 2 } as const;

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

const settled = () => machine.plan === 'blocked removedByOthers';
const ownRemovals = () => machine.factsOf('member.removed').filter(({ data }) => data['self'] === true);
const lastClass = () => machine.parts.ends.last?.class;

function expectComplete(): void {
  const stones = machine.parts.state.tombstones.read();
  expect(stones).toMatchObject({ kind: 'ok', value: [{ memberId: us, grantId: 'g1' }] });
  const [stone] = stones.kind === 'ok' ? stones.value : [];
  expect(stone?.evidence).not.toHaveLength(0);
  const archives = machine.disk.list(machine.layout.archiveDir) ?? [];
  expect(archives.map((name) => `${machine.layout.archiveDir}/${name}`)).toEqual([stone?.archive]);
  const reason: unknown = JSON.parse(new TextDecoder().decode(machine.disk.read(`${stone?.archive}/reason.json`)));
  expect(reason).toMatchObject({ nodeId: 'node-3', clusterId: 'c1', memberId: 'a3', evidence: stone?.evidence });
  expect(machine.disk.list(`${stone?.archive}/data/member`)).toEqual(['snap', 'wal']);
  expect(machine.disk.list(machine.layout.dataDir)).toBeUndefined();
  expect(machine.parts.state.runIntent()).toMatchObject({ kind: 'ok', value: { intent: 'removed' } });
  expect(ownRemovals()).toHaveLength(1);
  expect(machine.factsOf('process.exited')).toHaveLength(1);
  expect(machine.factsOf('data.archived')).toHaveLength(1);
}

describe('proof', () => {
  test('C31 in its own log: the panic is named, the data archived, nothing started', async () => {
    machine.boot();
    machine.child.says(says.ownRemoval, ...says.panic);
    machine.child.ends(two);
    await machine.until(settled, 'it is settled');
    expect(lastClass()).toBe('removed');
    expect(ownRemovals()).toMatchObject([
      { certainty: 'observed', data: { exit: { class: 'removed', code: 2, panicSeen: true } } },
    ]);
    expectComplete();
    await machine.pass(70_000);
    expect(machine.child.starts).toBe(0);
  });

  test('the end of etcd is waited for a moment, so that it stands in the report', async () => {
    machine.boot();
    machine.child.says(says.ownRemoval);
    await machine.pass(2_000);
    expect(ownRemovals()).toEqual([]);
    machine.child.ends(zero);
    await machine.until(settled, 'it is settled');
    expect(ownRemovals()).toMatchObject([{ data: { exit: { class: 'removed', code: 0 } } }]);
  });

  test('what only the others say is reported after a second, with etcd still starting', async () => {
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    machine.boot();
    await machine.until(() => machine.child.starts === 1, 'the start');
    machine.answer([n1, withoutUs], [n2, withoutUs]);
    await machine.until(() => ownRemovals().length === 1, 'it is reported', 4_000);
    expect(machine.child.view().phase).toBe('starting');
    await machine.until(settled, 'it is settled', 10_000);
  });

  test('C28 an etcd that does not leave by itself is reported, then stopped after 5 s', async () => {
    machine.boot();
    machine.child.says(says.ownRemoval);
    await machine.until(() => ownRemovals().length === 1, 'it is reported', 4_000);
    expect(machine.child.view().phase).toBe('ready');
    await machine.until(settled, 'it is settled', 6_000);
    expectComplete();
  });

  test('C10 in the lists of a majority, although the log has nothing: removed while both were down', async () => {
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    machine.answer([n1, withoutUs], [n2, withoutUs]);
    machine.boot();
    await machine.until(settled, 'it is settled', 5_000);
    expect(machine.child.starts).toBe(0);
    expectComplete();
  });

  test('found slowly for a member that an operator has stopped', async () => {
    machine.boot();
    await machine.parts.operator.stop({ force: true, dryRun: false });
    await machine.until(() => machine.plan === 'blocked stoppedByOperator', 'it is stopped');
    machine.answer([n1, withoutUs], [n2, withoutUs]);
    await machine.until(settled, 'it is settled', 90_000);
    expectComplete();
  });

  test('N01 found for a member that runs and is cut off from the others, who answer its agent', async () => {
    machine.boot();
    await machine.pass(150_000);
    expect(machine.child.view().phase).toBe('ready');
    expect(ownRemovals()).toEqual([]);
    machine.answer([n1, withoutUs], [n2, withoutUs]);
    await machine.until(settled, 'it is settled', 90_000);
    expect(lastClass()).toBe('removed');
    expectComplete();
    expect(machine.child.starts).toBe(0);
  });

  test('of an end that was taken for an unconfirmed removal corrects its class', async () => {
    machine.boot();
    machine.child.says(says.permanentlyRemoved);
    machine.child.ends(zero);
    await machine.until(() => lastClass() === 'removalUnconfirmed', 'a first verdict');
    machine.answer([n1, withoutUs], [n2, withoutUs]);
    await machine.until(settled, 'it is settled', 10_000);
    expect(lastClass()).toBe('removed');
    expect(machine.child.starts).toBe(0);
  });
});

describe('no proof', () => {
  const suspected = () => machine.plan === 'blocked removalUnconfirmed';

  async function toldToGo(): Promise<void> {
    machine.boot();
    machine.child.says(says.permanentlyRemoved);
    machine.child.ends(zero);
    await machine.until(() => lastClass() === 'removalUnconfirmed', 'a verdict', 10_000);
  }

  function expectUntouched(): void {
    expect(machine.parts.state.tombstones.read().kind).toBe('absent');
    expect(machine.disk.list(machine.layout.archiveDir)).toBeUndefined();
    expect(ownRemovals()).toEqual([]);
  }

  test('one list that lacks us forbids a start for as long as it is given, and is reported as inferred', async () => {
    machine.answer([n1, [n1]]);
    await toldToGo();
    await machine.until(suspected, 'it is blocked');
    expect(machine.factsOf('member.removalUnconfirmed')).toMatchObject([{ certainty: 'inferred' }]);
    const said = machine.parts.alarms.all().find(({ alarm }) => alarm === 'removalUnconfirmed')?.detail;
    expect(said?.split('lacks us')).toHaveLength(2); // said once
    await machine.pass(100_000);
    expect(machine.child.starts).toBe(0);
    expectUntouched();
  });

  test('30 s of silence allow one start; each further one waits for silence again', async () => {
    await toldToGo();
    await machine.pass(25_000);
    expect(machine.child.starts).toBe(0);
    await machine.until(() => machine.child.starts === 1, 'the start', 10_000);
    machine.child.says(says.permanentlyRemoved);
    machine.child.ends({ kind: 'code', code: 1 });
    await machine.pass(25_000);
    expect(machine.child.starts).toBe(1);
    await machine.until(() => machine.child.starts === 2, 'the next start', 15_000);
    expectUntouched();
  });

  test('a list that has us allows a start at once', async () => {
    machine.answer([n1, [n1]]);
    await toldToGo();
    await machine.until(suspected, 'it is blocked');
    machine.answer([n2, withUs]);
    await machine.until(() => machine.child.starts === 1, 'the start', 5_000);
    expectUntouched();
  });

  test('I11 a list that lacks us forbids the first start as well, and its silence does not take that back at once', async () => {
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    machine.answer([n1, [n1]]);
    machine.boot();
    await machine.until(suspected, 'it is blocked');
    machine.answer();
    await machine.pass(25_000);
    expect(machine.child.starts).toBe(0);
    await machine.until(() => machine.child.starts === 1, 'the start after 30 s of silence', 15_000);
    expectUntouched();
  });

  test('silence alone forbids nothing', async () => {
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    machine.boot();
    await machine.until(() => machine.child.starts === 1, 'the start', 5_000);
    expect(lastClass()).toBe('killed');
  });

  test('an operator confirms it', async () => {
    machine.answer([n1, [n1]]);
    await toldToGo();
    await machine.until(suspected, 'it is blocked');
    await expect(machine.parts.operator.settleRemoval('a1', 'confirmed')).rejects.toThrow(/this node is member a3/);
    await expect(machine.parts.operator.settleRemoval('not-hex', 'rejected')).rejects.toThrow(/this node is member/);
    expectUntouched();
    await machine.parts.operator.settleRemoval('a3', 'confirmed');
    await machine.until(settled, 'it is settled');
    expect(JSON.stringify(ownRemovals()[0]?.data['evidence'])).toContain('an operator confirmed it');
    expectComplete();
  });

  test('an operator rejects it: one start, and told again, the question comes back', async () => {
    machine.answer([n1, [n1]]);
    await toldToGo();
    await machine.until(suspected, 'it is blocked');
    await machine.parts.operator.settleRemoval('a3', 'rejected');
    await machine.until(() => machine.child.starts === 1, 'the start', 5_000);
    machine.child.says(says.permanentlyRemoved);
    machine.child.ends(zero);
    await machine.until(suspected, 'it is blocked again');
    await machine.pass(60_000);
    expect(machine.child.starts).toBe(1);
    expectUntouched();
  });

  test('an operator cannot confirm what is over: etcd is back', async () => {
    machine.answer([n1, [n1]]);
    await toldToGo();
    await machine.until(suspected, 'it is blocked');
    machine.answer([n1, withUs], [n2, withUs]);
    await machine.until(() => machine.child.starts === 1, 'the start', 5_000);
    machine.child.becomesReady();
    await expect(machine.parts.operator.settleRemoval('a3', 'confirmed')).rejects.toThrow(/no removal is waiting/);
    await machine.pass(20_000);
    expect(machine.child.view().phase).toBe('ready');
    expectUntouched();
  });
});

describe('one verdict for one end', () => {
  test('also when a plan is asked for while a turn waits for the others', async () => {
    machine.boot();
    machine.child.says(says.permanentlyRemoved);
    machine.child.ends(zero);
    for (let times = 0; times < 20; times++) {
      const asked = machine.parts.agent.planNow();
      await machine.pass(200);
      await asked;
    }
    expect(machine.parts.ends.all).toHaveLength(1);
    expect(machine.factsOf('process.exited')).toHaveLength(1);
    expect(machine.factsOf('process.restarting')).toHaveLength(1);
  });

  test('R10 a full disk neither ends the agent nor loses the report of the end', async () => {
    machine.boot();
    await machine.until(() => machine.plan !== '', 'the first turn');
    machine.disk.fail({ step: 'write', errno: 'ENOSPC', path: 'outbox', times: 1_000 });
    machine.child.ends({ kind: 'signal', name: 'SIGSEGV' });
    await machine.until(() => machine.child.starts === 1, 'the restart', 10_000);
    expect(machine.parts.reports.reported.exitedLife).toBe(0);
    machine.disk.heal();
    await machine.until(() => machine.factsOf('process.exited').length === 1, 'the report', 30_000);
  });

  test('an archive that the disk refuses is tried again', async () => {
    machine.boot();
    machine.disk.fail({ step: 'rename', errno: 'EIO', path: 'archive', times: 3 });
    machine.child.says(says.ownRemoval);
    machine.child.ends(zero);
    await machine.until(settled, 'it is settled');
    expectComplete();
  });
});

/** A short run takes every third step, each test another third; a full one takes all. */
const stride = process.env['ETCD_TEST_VERSIONS'] === 'all' ? 1 : 3;
const patience = { timeout: 120_000 };

describe('R09 I27 A04 a crash at any write of a removal', () => {
  /** A member whose removal is known by `how`; the agent lives, and all that it writes until it is settled is to come. */
  function scene(how: 'log' | 'lists'): AgentMachine {
    const made = new AgentMachine();
    if (how === 'log') made.child.says(says.ownRemoval, ...says.panic);
    else made.answer([n1, withoutUs], [n2, withoutUs]);
    made.child.ends(how === 'log' ? two : { kind: 'signal', name: 'SIGKILL' });
    return made;
  }

  async function stepsOf(how: 'log' | 'lists'): Promise<number> {
    machine = scene(how);
    const before = machine.disk.steps;
    machine.boot();
    await machine.until(settled, 'it is settled');
    const steps = machine.disk.steps - before;
    await machine.endAgent();
    return steps;
  }

  /** Crashes within the `step`th step of the disk; false if the removal was settled before it came to that. */
  async function crash(step: number, kind: 'kill' | 'powerLoss'): Promise<boolean> {
    machine.disk.crashAtStep(step);
    machine.boot();
    while (!machine.disk.down && !settled()) await machine.pass(100);
    const { down } = machine.disk;
    await machine.endAgent(kind);
    return down;
  }

  const kinds = ['kill', 'powerLoss'] as const;
  test.each(kinds)('%s, with the proof in the log: one report, one archive, no start', patience, async (kind) => {
    const steps = await stepsOf('log');
    let crashes = 0;
    for (let step = kind === 'kill' ? 1 : 2; step <= steps; step += stride) {
      machine = scene('log');
      if (await crash(step, kind)) crashes++;
      machine.boot();
      await machine.until(settled, `it is settled after a crash at step ${step} of ${steps}`);
      expectComplete();
      expect(machine.child.starts).toBe(0);
      await machine.endAgent();
    }
    expect(crashes).toBeGreaterThan(150 / stride);
  });

  test('with the proof in lists that nobody gives again: what was recorded is never started', patience, async () => {
    const steps = await stepsOf('lists');
    let [tried, forgotten] = [0, 0];
    for (let step = 3; step <= steps; step += stride) {
      machine = scene('lists');
      if (!(await crash(step, 'powerLoss'))) break;
      machine.answer();
      machine.boot();
      const decided = () => settled() || machine.child.starts > 0;
      await machine.until(decided, `it has decided after a crash at step ${step} of ${steps}`);
      tried++;
      if (machine.child.starts === 0) expectComplete();
      else {
        // The proof was not written down yet, and silence forbids no start.
        forgotten++;
        expect(ownRemovals()).toEqual([]);
        expect(machine.parts.state.tombstones.read().kind).toBe('absent');
      }
      await machine.endAgent();
    }
    expect(forgotten).toBeGreaterThan(0);
    expect(forgotten).toBeLessThan(tried);
  });
});
