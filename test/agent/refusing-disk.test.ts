// Goal: C14 A19 A21 a disk that refuses the agent's records keeps no etcd down and loses no fact in silence; what is told late is
// told in order.
// Method: the whole agent on a disk in memory that refuses writes below the state directory, or what a step does below the data root.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AgentMachine, others, says, us } from './agent-machine.ts';

const killed = { kind: 'signal', name: 'SIGKILL' } as const;

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

describe.each(['ENOSPC', 'EROFS', 'EIO'])('a state directory that answers %s', (errno) => {
  const refuse = () => {
    for (const step of ['write', 'create', 'rename'] as const)
      machine.disk.fail({ step, errno, path: '/state', times: Number.POSITIVE_INFINITY });
  };

  test('etcd is restarted, and its ends are told once it can be written again', async () => {
    machine.boot();
    await machine.pass(1_000);
    refuse();
    for (let end = 1; end <= 3; end++) {
      const before = machine.child.starts;
      machine.child.ends(killed);
      await machine.until(() => machine.child.starts > before, `start ${end}`);
    }
    expect(machine.died).toBeUndefined();
    expect(machine.factsOf('process.exited')).toEqual([]);
    machine.disk.heal();
    await machine.until(() => machine.factsOf('process.exited').length === 3, 'all ends are told');
    const lives = machine.factsOf('process.exited').map(({ data }) => data['life']);
    expect(lives).toEqual([...lives].sort());
  });

  test('an alarm that was raised meanwhile is known at once and told later, once', async () => {
    machine.answer([us, [...others, us]]);
    machine.boot();
    await machine.pass(1_000);
    refuse();
    machine.parts.alarms.set('configurationRefused', 'line 3');
    await machine.pass(30_000);
    expect(machine.parts.alarms.all()).toMatchObject([{ alarm: 'configurationRefused', detail: 'line 3' }]);
    machine.disk.heal();
    await machine.until(() => machine.factsOf('alarm.raised').length > 0, 'it is told');
    await machine.pass(30_000);
    expect(machine.factsOf('alarm.raised').map(({ data }) => data['alarm'])).toEqual(['configurationRefused']);
    machine.parts.alarms.set('configurationRefused', undefined);
    await machine.until(() => machine.factsOf('alarm.cleared').length > 0, 'so is its end');
  });

  test('a new agent boots on it, says that it only supervises, and is whole once it can be written', async () => {
    machine.boot();
    await machine.pass(1_000);
    await machine.endAgent();
    refuse();
    machine.boot();
    await machine.until(() => machine.parts.state.supervision().kind === 'superviseOnly', 'it only supervises');
    const before = machine.child.starts;
    machine.child.ends(killed);
    await machine.until(() => machine.child.starts > before, 'etcd is restarted');
    machine.disk.heal();
    await machine.until(() => machine.parts.state.supervision().kind === 'full', 'it is whole');
    expect(machine.died).toBeUndefined();
  });
});

describe.each(['ENOSPC', 'EROFS', 'EIO'])('a data root that answers %s', (errno) => {
  test('a founding waits for it, says why, and goes on', async () => {
    machine.becomeNobody();
    machine.boot();
    await machine.until(() => machine.plan === 'blocked notAMember', 'it is nobody');
    await machine.parts.operator.found('alone', false);
    for (const step of ['write', 'create', 'makeDirectory'] as const)
      machine.disk.fail({ step, errno, path: machine.layout.dataDir, times: Number.POSITIVE_INFINITY });
    await machine.until(() => machine.parts.agent.failing !== undefined, 'the step has failed');
    await machine.pass(120_000);
    expect(machine.died).toBeUndefined();
    expect(machine.parts.agent.failing).toMatchObject({ what: 'beginFounding' });
    expect(machine.parts.agent.failing?.because).toContain(errno);
    machine.disk.heal();
    await machine.until(() => machine.child.starts === 1, 'the founder is started');
  });

  test('an order to found is no bug of the agent, and is repeated with success', async () => {
    machine.becomeNobody();
    machine.boot();
    await machine.until(() => machine.plan === 'blocked notAMember', 'it is nobody');
    for (const step of ['write', 'create', 'makeDirectory'] as const)
      machine.disk.fail({ step, errno, path: machine.layout.dataRoot, times: Number.POSITIVE_INFINITY });
    await expect(machine.parts.operator.found('alone', false)).rejects.toMatchObject({ code: 'DISK_REFUSED' });
    machine.disk.heal();
    await machine.parts.operator.found('alone', false);
    await machine.until(() => machine.child.starts === 1, 'the founder is started');
  });

  test('old archives that cannot be listed keep no removal from being settled', async () => {
    machine.boot();
    machine.disk.fail({ step: 'read', errno, path: machine.layout.archiveDir, times: 3 });
    machine.child.says(says.ownRemoval);
    machine.child.ends({ kind: 'code', code: 0 });
    await machine.until(() => machine.plan === 'blocked removedByOthers', 'it is settled');
    expect(machine.died).toBeUndefined();
    expect(machine.factsOf('data.archived')).toHaveLength(1);
  });
});

describe('an empty data directory', () => {
  beforeEach(() => {
    machine.becomeNobody();
    machine.disk.ensureDirectory(machine.layout.dataDir);
  });

  test('whose founding mark cannot be read is not known, which is no end of the agent', async () => {
    machine.disk.fail({ step: 'read', errno: 'EIO', path: machine.layout.foundingMark, times: 10 });
    machine.boot();
    await machine.until(() => machine.plan === 'blocked dataUnknown', 'it is said');
    await machine.until(() => machine.plan === 'blocked notAMember', 'it can be read', 120_000);
    expect(machine.died).toBeUndefined();
  });

  test('beside a damaged record of a founding: it is only supervised', async () => {
    machine.disk.put(`${machine.layout.stateDir}/founding`, 'xx');
    machine.boot();
    await machine.until(() => machine.plan === 'blocked superviseOnly', 'it is said');
    expect(machine.died).toBeUndefined();
  });
});
