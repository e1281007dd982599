// Goal: a command that was refused has changed nothing, and one that has changed something says so, whatever the disk refuses beside it;
// A19 a history that cannot be written keeps no etcd from being stopped or started.
// Method: the whole agent on a disk in memory that refuses the outbox, or one file of the state.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { apiErrorOf } from '../../src/agent/api/api-error.ts';
import { DiskRefusedError } from '../../src/agent/disk-refused.ts';
import { OrderRefusedError } from '../../src/agent/order-refused.ts';
import { AgentState } from '../../src/agent/state/agent-state.ts';
import { StateNotOursError, StateNotWrittenError } from '../../src/agent/state/durable-value.ts';
import { OutboxRefusedError } from '../../src/upstream/outbox-errors.ts';
import { AgentMachine, others, says } from './agent-machine.ts';

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

const stop = () => machine.parts.operator.stop({ force: true, dryRun: false });
const start = () => machine.parts.operator.start({ dryRun: false });
const intent = () => {
  const reading = machine.parts.state.runIntent();
  return reading.kind === 'ok' ? reading.value.intent : reading.kind;
};
const refuse = (path: string) => {
  for (const step of ['write', 'create', 'rename'] as const)
    machine.disk.fail({ step, errno: 'EIO', path, times: Number.POSITIVE_INFINITY });
};
const commands = () => machine.factsOf('operator.command').map(({ data, at }) => ({ command: data['command'], at }));

describe('an outbox that refuses', () => {
  test('A19 keeps no etcd from being stopped, started or paused; the commands are told later, in order, as of their time', async () => {
    machine.boot();
    await machine.pass(1_000);
    refuse(machine.layout.outboxDir);
    const at: string[] = [];
    const now = () => at.push(new Date(machine.clock.wallMs()).toISOString());
    now();
    await expect(stop()).resolves.toMatchObject({ done: true });
    await machine.until(() => machine.child.view().phase === 'down', 'it is stopped');
    expect(intent()).toBe('stopped');
    now();
    await expect(start()).resolves.toMatchObject({ done: true });
    await machine.until(() => machine.child.starts === 1, 'it is started');
    now();
    await expect(machine.parts.operator.pause({ forMs: 60_000, reason: 'a test' })).resolves.toMatchObject({
      done: true,
    });
    expect(commands()).toEqual([]);
    machine.disk.heal();
    await machine.until(() => commands().length === 3, 'they are told');
    await machine.pass(30_000);
    expect(commands()).toEqual(['stop', 'start', 'pause'].map((command, index) => ({ command, at: at[index] })));
  });

  test('does not undo an adoption half', async () => {
    machine.disk.wipe(machine.layout.stateDir);
    machine.disk.vanish(machine.layout.identityCopy);
    machine.child.ends({ kind: 'signal', name: 'SIGTERM' });
    machine.boot();
    await machine.until(() => machine.plan === 'blocked dataNotOurs', 'it is nobodys');
    refuse(machine.layout.outboxDir);
    await machine.parts.operator.adopt({ dryRun: false, newClusterId: undefined });
    await machine.until(() => machine.child.starts === 1, 'it is started');
    machine.disk.heal();
    await machine.until(() => machine.factsOf('data.adopted').length === 1, 'it is told');
  });
});

describe('a run intent', () => {
  test('whose copy beside the data is refused is written all the same, and no stale copy is left', async () => {
    machine.boot();
    await machine.pass(1_000);
    refuse(machine.layout.runIntentCopy);
    await expect(stop()).resolves.toMatchObject({ done: true });
    expect(intent()).toBe('stopped');
    expect(machine.disk.read(machine.layout.runIntentCopy)).toBeUndefined();
  });

  test('that is refused leaves everything as it was: what held a start holds it', async () => {
    machine.boot();
    machine.child.says(
      '{"level":"fatal","ts":"2026-01-01T00:00:00.000000Z","caller":"a.go:1","msg":"invalid downgrade"}',
    );
    machine.child.ends({ kind: 'code', code: 1 });
    await machine.until(() => machine.plan === 'blocked held', 'it is held');
    refuse(`${machine.layout.stateDir}/run-intent`);
    await expect(start()).rejects.toBeInstanceOf(StateNotWrittenError);
    await machine.pass(30_000);
    expect(machine.child.starts).toBe(0);
  });

  test('that is refused orders no founding', async () => {
    machine.becomeNobody();
    machine.boot();
    await machine.until(() => machine.plan === 'blocked notAMember', 'it is nobody');
    refuse(`${machine.layout.stateDir}/run-intent`);
    await expect(machine.parts.operator.found('alone', false)).rejects.toBeInstanceOf(StateNotWrittenError);
    expect(machine.parts.state.founding.read().kind).toBe('absent');
  });
});

describe('I04 a removal is final for its member', () => {
  beforeEach(async () => {
    machine.boot();
    machine.child.says(says.ownRemoval);
    machine.child.ends({ kind: 'code', code: 0 });
    await machine.until(() => machine.plan === 'blocked removedByOthers', 'it is settled');
  });

  test('stop has nothing to do, start is refused, and the hint names a way that there is', async () => {
    await expect(stop()).resolves.toMatchObject({ done: false });
    expect(intent()).toBe('removed');
    const refusal = await start().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(OrderRefusedError);
    expect(refusal).toMatchObject({ hint: expect.stringContaining('etcd-node-agent join') });
    expect(intent()).toBe('removed');
    expect(machine.parts.agent.latest?.plan).toMatchObject({ kind: 'blocked', by: { kind: 'removedByOthers' } });
  });

  test('no record replaces it but one of another member', () => {
    const state = new AgentState({ disk: machine.disk, layout: machine.layout });
    const other = { intent: 'run', clusterId: 'c1', memberId: 'a3', because: '', at: '' } as const;
    state.recordRunIntent(other);
    state.recordRunIntent({ ...other, intent: 'held' });
    expect(intent()).toBe('removed');
    state.recordRunIntent({ ...other, memberId: others[0].toString(16) });
    expect(intent()).toBe('run');
  });
});

test('the API tells what was refused from what failed and may be done in part', () => {
  const cause = new Error('ENOSPC');
  for (const error of [
    new StateNotWrittenError('/state/pause', cause),
    new OutboxRefusedError('it', '/state/outbox', cause),
    new DiskRefusedError('the command', cause),
  ])
    expect(apiErrorOf(error)).toMatchObject({ status: 500, body: { code: error.code, hint: error.hint } });
  for (const error of [new OrderRefusedError('no'), new StateNotOursError('/state/pause', 'it is newer')])
    expect(apiErrorOf(error).status).toBe(409);
});
