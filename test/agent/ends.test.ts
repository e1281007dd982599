// Goal: what is remembered of an end of etcd is what was so: no time that nobody recorded, no readiness by a clock that was set, and
// what etcd was started with, not what lay there when its end was judged.
// Method: the whole agent with an etcd that ends as the test says; new agents on what the ones before have left.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { processStatus } from '../../src/agent/views.ts';
import { statusText } from '../../src/cli/views.ts';
import { exampleStatus } from '../support/fake-control.ts';
import { AgentMachine } from './agent-machine.ts';

const killed = { kind: 'signal', name: 'SIGKILL' } as const;
const minutes = 60_000;

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

/** etcd ends, and is started again. */
async function crashes(): Promise<void> {
  const before = machine.child.starts;
  machine.child.ends(killed);
  await machine.until(() => machine.child.starts > before, 'the next start', 10 * minutes);
}

describe('an end that nobody recorded', () => {
  const unknown = { kind: 'unknown', because: 'the machine was restarted' } as const;

  test('has no time, only that of the notice', async () => {
    machine.child.ends(unknown, null);
    machine.boot();
    await machine.until(() => machine.parts.ends.last !== undefined, 'it is judged');
    const { last } = machine.parts.ends;
    expect(last).toMatchObject({ class: 'unknown', endedAtMs: null });
    expect(last?.noticedAtMs).toBeGreaterThan(Date.UTC(2025));
    const { lastExit } = statusOf();
    expect(lastExit).toMatchObject({ at: null, noticedAt: expect.stringMatching(/^2026-/) });
    const text = statusText({ ...exampleStatus(), process: statusOf() });
    expect(text).toMatch(/in life 1, noticed at 2026-\S+: /);
    expect(text).not.toContain('1970');
  });

  test('of a good run resets the budget all the same', async () => {
    machine.boot();
    for (let end = 1; end <= 12; end++) await crashes();
    expect(machine.parts.ends.decision.exhausted).toBe(true);
    machine.child.becomesReady();
    await machine.pass(11 * minutes);
    machine.child.ends(unknown, null);
    await machine.pass(1_000);
    expect(machine.parts.ends.decision.exhausted).toBe(false);
  });

  const statusOf = () =>
    processStatus({
      view: machine.child.view(),
      health: machine.parts.health.look(),
      pending: [],
      intent: 'run',
      version: '',
      restarts: 0,
      lastEnd: machine.parts.ends.last,
      nextStartMs: undefined,
    });
});

test('A12 a wall clock that is set forward makes no short run a good one', async () => {
  machine.boot();
  for (let end = 1; end <= 12; end++) await crashes();
  machine.child.becomesReady();
  await machine.pass(2_000);
  machine.clock.jumpWall(60 * minutes);
  machine.child.ends(killed);
  await machine.pass(1_000);
  expect(machine.parts.ends.decision.exhausted).toBe(true);
});

describe('a hold until the configuration changes', () => {
  const refused =
    '{"level":"fatal","ts":"2026-01-01T00:00:00.000000Z","caller":"a.go:1","msg":"failed to verify flags"}';

  function isRefused(): void {
    machine.child.says(refused);
    machine.child.ends({ kind: 'code', code: 1 });
  }

  beforeEach(async () => {
    machine.boot();
    await machine.pass(1_000);
    await crashes();
  });

  test('holds while it is what etcd was started with', async () => {
    isRefused();
    await machine.until(() => machine.plan === 'blocked held', 'it is held');
    await machine.pass(2 * minutes);
    expect(machine.child.starts).toBe(1);
  });

  test('is none if that had changed before etcd ended', async () => {
    machine.fingerprint = 'corrected';
    isRefused();
    await machine.until(() => machine.child.starts === 2, 'it is started');
  });

  test('is none if that was corrected while no agent ran', async () => {
    await machine.endAgent();
    machine.fingerprint = 'corrected';
    isRefused();
    machine.boot();
    await machine.until(() => machine.child.starts === 2, 'it is started');
    isRefused();
    await machine.until(() => machine.plan === 'blocked held', 'it is held');
  });
});
