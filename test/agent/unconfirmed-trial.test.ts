// Goal: C12 a removal that cannot be confirmed stays a question through the start that tries it, until somebody knows: a list has us, the
// member is ready, it is proven, or an operator says so.
// Method: the whole agent; nobody answers for 30 s, so etcd is started and hangs in its start, as one that was removed and has no quorum.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AgentMachine, others, says, us } from './agent-machine.ts';

const [n1] = others;

let machine: AgentMachine;
beforeEach(async () => {
  machine = new AgentMachine();
  machine.boot();
  machine.child.says(says.permanentlyRemoved);
  machine.child.ends({ kind: 'code', code: 0 });
  await machine.until(() => machine.child.starts === 1, 'the trial', 60_000);
  await machine.pass(5_000);
});
afterEach(async () => {
  await machine.endAgent();
});

const settle = (verdict: 'confirmed' | 'rejected') => machine.parts.operator.settleRemoval('a3', verdict);
const removal = () => machine.parts.agent.latest?.seen.removal.kind;
const alarms = () => machine.parts.alarms.all().map(({ alarm }) => alarm);
const settled = () => machine.plan === 'blocked removedByOthers';

describe('while the trial hangs in its start', () => {
  test('the alarm stands, and a confirmation ends it: it is stopped, archived and never started again', async () => {
    expect(machine.child.view().phase).toBe('starting');
    expect(alarms()).toContain('removalUnconfirmed');
    await settle('confirmed');
    await machine.until(settled, 'it is settled', 20_000);
    expect(machine.child.view().phase).toBe('down');
    expect(machine.factsOf('member.removed')).toMatchObject([{ data: { self: true } }]);
    await machine.pass(70_000);
    expect(machine.child.starts).toBe(1);
  });

  test('the next agent still asks', async () => {
    await machine.endAgent();
    machine.boot();
    await machine.pass(5_000);
    expect(removal()).toBe('suspected');
    await settle('confirmed');
    await machine.until(settled, 'it is settled', 20_000);
  });

  test('a stop does not take the question back', async () => {
    await machine.parts.operator.stop({ force: true, dryRun: false });
    await machine.until(() => machine.plan === 'blocked stoppedByOperator', 'it is stopped');
    expect(machine.parts.ends.last?.class).toBe('stopped');
    await settle('confirmed');
    await machine.until(settled, 'it is settled', 20_000);
  });

  test('a rejection ends it, for this start and the next', async () => {
    await settle('rejected');
    await machine.pass(5_000);
    expect(removal()).toBe('none');
    expect(alarms()).not.toContain('removalUnconfirmed');
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    await machine.until(() => machine.child.starts === 2, 'it is started again');
    await machine.pass(5_000);
    expect(removal()).toBe('none');
  });

  test('a list that has us ends it', async () => {
    machine.answer([n1, [...others, us]]);
    await machine.until(() => removal() === 'none', 'it is over', 10_000);
    await expect(settle('confirmed')).rejects.toMatchObject({ code: 'ORDER_REFUSED' });
  });

  test('a list that lacks us is no proof, and leaves it a question', async () => {
    machine.answer([n1, [n1]]);
    await machine.pass(10_000);
    expect(removal()).toBe('suspected');
    expect(machine.child.view().phase).toBe('starting');
  });
});

test('a list that lacks a member which no agent has started yet is a question as well', async () => {
  await machine.endAgent();
  machine = new AgentMachine();
  machine.child.neverRan();
  machine.answer([n1, [n1]]);
  machine.boot();
  await machine.until(() => machine.plan === 'blocked removalUnconfirmed', 'it is blocked', 10_000);
  expect(machine.child.starts).toBe(0);
});

test('a question about one member is none about the next on this node', async () => {
  await machine.parts.operator.stop({ force: true, dryRun: false });
  await machine.until(() => machine.plan === 'blocked stoppedByOperator', 'it is stopped');
  machine.lists.clear();
  machine.dataMember = 0xa4n;
  await machine.parts.operator.adopt({ dryRun: false, newClusterId: 'c1' });
  await machine.until(() => machine.child.starts === 2, 'the new member is started', 10_000);
  expect(removal()).toBe('none');
});

describe('once the member is ready there is no question', () => {
  beforeEach(async () => {
    expect(suspicions()).toBe(1);
    machine.child.becomesReady();
    await machine.pass(5_000);
    expect(removal()).toBe('none');
  });

  const suspicions = () => machine.factsOf('member.removalUnconfirmed').length;

  test('also when it ends for another reason', async () => {
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    await machine.until(() => machine.child.starts === 2, 'it is started again');
    await machine.pass(5_000);
    expect(removal()).toBe('none');
  });

  test('also for the next agent, which has to ask etcd anew', async () => {
    await machine.endAgent();
    machine.child.isAskedAnew();
    machine.boot();
    await machine.pass(5_000);
    expect(removal()).toBe('none');
    expect(suspicions()).toBe(1);
  });
});
