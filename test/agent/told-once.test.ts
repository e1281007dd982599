// Goal: upstream is told a thing when it changes, and neither again by the next agent nor never.
// Method: the whole agent on a disk in memory, ended and booted again with a cause that is gone, stays or comes back.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nothingReported, withFact } from '../../src/agent/reported.ts';
import { AgentMachine, knownRole, others, says, us } from './agent-machine.ts';

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

const told = (...kinds: readonly string[]) =>
  machine.facts
    .filter(
      ({ kind, data }) => kinds.some((start) => kind.startsWith(start)) && !aboutOthers.has(String(data['alarm'])),
    )
    .map(({ kind }) => kind);

/** Alarms that this machine, whose etcd is alone, raises besides. */
const aboutOthers = new Set(['noQuorum', 'diskLost']);

async function nextAgent(): Promise<void> {
  await machine.endAgent();
  machine.boot();
}

describe('an alarm', () => {
  const raise = (detail: string | undefined) => machine.parts.alarms.set('configurationRefused', detail);

  beforeEach(async () => {
    machine.boot();
    raise('line 3');
    await machine.until(() => told('alarm').length === 1, 'it is raised');
    await nextAgent();
  });

  test('whose cause is gone with the agent is cleared by the next', async () => {
    await machine.until(() => told('alarm').length === 2, 'it is cleared', 180_000);
    expect(told('alarm')).toEqual(['alarm.raised', 'alarm.cleared']);
    await nextAgent();
    await machine.pass(120_000);
    expect(told('alarm')).toHaveLength(2);
  });

  test('whose cause is still there is not raised again', async () => {
    // Some causes are seen only after a while: it is not cleared at once.
    await machine.pass(30_000);
    raise('line 3');
    await machine.pass(180_000);
    expect(told('alarm')).toEqual(['alarm.raised']);
    raise(undefined);
    await machine.until(() => told('alarm').length === 2, 'it is cleared');
  });
});

test('a volume that returned while no agent ran is told of, and one that is still missing is not told of again', async () => {
  const { disk, layout } = machine;
  machine.boot();
  await machine.pass(1_000);
  disk.vanish(layout.volumeMarker);
  await machine.until(() => told('volume').length === 1, 'it is missing');
  await nextAgent();
  await machine.pass(60_000);
  expect(told('volume')).toEqual(['volume.missing']);
  await machine.endAgent();
  disk.put(layout.volumeMarker, 'marker\n');
  disk.fail({ step: 'read', errno: 'EIO', path: layout.volumeMarker, times: 1 });
  machine.boot();
  await machine.until(() => told('volume').length === 2, 'it is back');
  expect(machine.factsOf('volume.returned')).toMatchObject([{ data: { path: layout.dataRoot } }]);
});

test('that the role is fulfilled, or why not, is told once for all agents, and again after a change', async () => {
  machine.boot();
  await machine.until(() => told('role.').length === 1, 'it is told');
  await nextAgent();
  await machine.pass(60_000);
  expect(told('role.')).toEqual(['role.converged']);
  machine.role = { ...knownRole, role: 'none' };
  await machine.until(() => told('role.').length === 2, 'the change is told');
  await nextAgent();
  await machine.pass(60_000);
  expect(told('role.')).toEqual(['role.converged', 'role.blocked']);
  machine.role = knownRole;
  await machine.until(() => told('role.').length === 3, 'and the change back');
});

test('what became of the role document is folded from what was reported', () => {
  const accepted = { kind: 'role.accepted', role: 'none', epoch: 1, generation: 2 } as const;
  const refused = { kind: 'role.refused', because: 'it is older' } as const;
  const one = withFact(nothingReported, accepted);
  expect(one.roleDocument).toBe(withFact(one, accepted).roleDocument);
  expect(withFact(one, refused).roleDocument).not.toBe(one.roleDocument);
  expect(withFact(withFact(one, refused), accepted).roleDocument).toBe(one.roleDocument);
  expect(withFact(one, { ...accepted, generation: 3 }).roleDocument).not.toBe(one.roleDocument);
});

describe('an unconfirmed removal', () => {
  const [n1] = others;
  const suspicions = () => machine.factsOf('member.removalUnconfirmed').length;

  async function isSuspected(): Promise<void> {
    machine.answer([n1, [n1]]);
    machine.child.says(says.permanentlyRemoved);
    machine.child.ends({ kind: 'code', code: 0 });
  }

  test('is told once for one question, and again when it comes back after the member was ready', async () => {
    machine.boot();
    await isSuspected();
    await machine.until(() => suspicions() === 1, 'it is told');
    await nextAgent();
    await machine.pass(60_000);
    expect(suspicions()).toBe(1);
    machine.answer([n1, [...others, us]]);
    await machine.until(() => machine.child.starts === 1, 'it is tried', 180_000);
    machine.child.becomesReady();
    await machine.pass(5_000);
    await isSuspected();
    await machine.until(() => suspicions() === 2, 'it is told again');
  });

  test('is told again after an operator has rejected the first', async () => {
    machine.boot();
    await isSuspected();
    await machine.until(() => suspicions() === 1, 'it is told');
    await machine.parts.operator.settleRemoval('a3', 'rejected');
    await machine.until(() => machine.child.starts === 1, 'it is tried', 180_000);
    await isSuspected();
    await machine.until(() => suspicions() === 2, 'it is told again');
  });
});
