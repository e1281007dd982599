// Goal: an agent that is killed at any moment leaves at most one child, which the next one adopts, and no end unknown.
// Method: a real agent process in small that starts and stops a child over and over; SIGKILL at moments around its acts.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { delay } from '../../src/base/clock.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import type { LifeEnd } from '../../src/supervisor/life.ts';
import { directLauncher } from '../../src/supervisor/run.ts';
import { eventually } from '../support/eventually.ts';
import { Harness, keeperPath } from './harness.ts';

let at: Harness;
const agents: ChildProcess[] = [];
beforeEach(() => {
  at = new Harness();
});
afterEach(async () => {
  for (const agent of agents.splice(0)) if (agent.exitCode === null) agent.kill('SIGKILL');
  await at.dispose();
});

/** Runs the agent until `marker` has been said `count` times, then `afterMs` more, then kills it. */
async function killAgentAfter(marker: string, count: number, afterMs: number): Promise<readonly string[]> {
  const agent = spawn(process.execPath, [join(import.meta.dirname, 'agent-process.ts'), at.root, 'cycle'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  agents.push(agent);
  let said = '';
  const reached = Promise.withResolvers<void>();
  agent.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
    if (said.split(marker).length > count) reached.resolve();
  });
  const ended = new Promise<void>((resolve) => agent.once('close', () => resolve()));
  void ended.then(() => reached.resolve());
  await reached.promise;
  await delay(systemClock, afterMs);
  agent.kill('SIGKILL');
  await ended;
  return said.trim().split('\n');
}

/** It ended by the TERM that the killed agent had recorded. */
function expectAsked(end: LifeEnd | undefined): void {
  expect(end?.stop?.reason).toBe('cycle');
  expect(JSON.stringify(end?.exit)).toMatch(/"code":7|SIGTERM/);
}

// What the agent says, how often it has said so, and how long after that it is killed (ms).
const moments: readonly (readonly [string, number, number])[] = [
  ...[0, 2, 5, 8, 11, 14, 18, 23, 30].map((ms) => ['starting', 1, ms] as const),
  ...[0, 6, 12, 18, 25, 40].map((ms) => ['starting', 2, ms] as const),
  ...[0, 3, 10].map((ms) => ['started', 1, ms] as const),
  ...[0, 2, 5, 9, 14, 20, 27, 35, 45, 60, 80].map((ms) => ['stopping', 1, ms] as const),
  ...[0, 4, 15].map((ms) => ['stopped', 1, ms] as const),
];

test(`A08 A01 the agent is killed at ${moments.length} moments around spawn, stop and exit: never two children, each end known`, async () => {
  const outcomes: Record<string, number> = {};
  const story: string[] = [];
  let adoptions = 0;
  for (const [marker, count, ms] of moments) {
    const said = await killAgentAfter(marker, count, ms);
    expect(at.living().length).toBeLessThanOrEqual(1);
    // What the agent was told of ends: all by our own TERM.
    for (const line of said) {
      const fact: unknown = JSON.parse(line);
      if (typeof fact === 'object' && fact !== null && 'exit' in fact)
        expect(JSON.stringify(fact)).toMatch(/"code":7|SIGTERM/);
    }
    story.push(`${marker}${count}+${ms}`);
    const check = at.supervisor();
    const found = await check.recover();
    outcomes[found.kind] = (outcomes[found.kind] ?? 0) + 1;
    if (found.kind === 'adopted') adoptions += 1;
    if (found.kind === 'ended') expectAsked(found.end);
    const alive = at.living();
    if (found.kind !== 'adopted') expect(alive).toEqual([]);
    if (found.kind === 'adopted' && alive.length === 0) {
      // The TERM that the killed agent had sent was still at work when the child was adopted.
      await eventually(() => at.ends.some(({ life }) => life.number === found.life.number), { what: 'its end' });
      expectAsked(at.ends.find(({ life }) => life.number === found.life.number)?.end);
    }
    at.letGo();
    // TERM before the stub's trap was set leaves its marker behind; only that.
    if (alive.length === 0 && existsSync(`${at.identity}.running`)) rmdirSync(`${at.identity}.running`);
  }
  expect(existsSync(`${at.identity}.seconds`)).toBe(false);
  expect(adoptions).toBeGreaterThan(5);
  // biome-ignore lint/suspicious/noConsole: a figure for the record
  console.info(`agent killed ${moments.length} times (${story.join(' ')}): ${JSON.stringify(outcomes)}`);
}, 300_000);

test('A08 a keeper that was spawned and has not begun when its agent died never runs beside the next child', async () => {
  // The keeper of life 1 is held back until a new agent has recovered and started life 2.
  const gate = join(at.root, 'gate');
  const slow = directLauncher(join(import.meta.dirname, 'slow-keeper.sh'));
  const first = at.supervisor({
    launcher: {
      launch: (request) =>
        slow.launch({ ...request, environment: { ...request.environment, GATE: gate, KEEPER: keeperPath } }),
    },
  });
  const starting = first.start(at.script('echo FIRST; while :; do sleep 0.05; done'));
  await eventually(() => at.lifeDir(1).waitsForKeeper);
  at.letGo();
  await expect(starting).rejects.toMatchObject({ code: 'SUPERVISOR_CLOSED' });
  const next = at.supervisor();
  expect(await next.recover()).toEqual({ kind: 'nothing' });
  const life = await next.start(at.script('while :; do sleep 0.05; done'));
  expect(life.number).toBe(2);
  await next.stop({ graceMs: 5000, by: 'test', reason: 'free the lock' });
  writeFileSync(gate, '');
  await eventually(() => existsSync(`${gate}.ended`));
  expect(at.living()).toEqual([]);
  expect(at.lifeDir(1).pid()).toEqual({ kind: 'blank' });
  expect(at.logText(1)).toBe('');
});

test('A08 a keeper that holds the lock and has recorded nothing yet is waited for, and its child is adopted', async () => {
  const gate = join(at.root, 'gate');
  const slow = directLauncher(join(import.meta.dirname, 'slow-keeper.sh'));
  const slowTool = {
    launch: (request: Parameters<typeof slow.launch>[0]) =>
      slow.launch({
        ...request,
        environment: { ...request.environment, GATE: gate, KEEPER: keeperPath, SLOW_TOOL: at.root },
      }),
  };
  const first = at.supervisor({ launcher: slowTool });
  const starting = first.start(at.script('while :; do sleep 0.05; done'));
  await eventually(() => existsSync(join(at.root, 'in-stat')));
  at.letGo();
  await expect(starting).rejects.toMatchObject({ code: 'SUPERVISOR_CLOSED' });
  const next = at.supervisor();
  const recovering = next.recover();
  writeFileSync(gate, '');
  expect(await recovering).toMatchObject({ kind: 'adopted', life: { number: 1 } });
  expect(at.living()).toHaveLength(1);
});

test('a start that finds the lock held by a life of ours adopts that one', async () => {
  const first = at.supervisor();
  const life = await first.start(at.script('while :; do sleep 0.05; done'));
  at.letGo();
  const second = at.supervisor(); // it was not asked to recover
  const again = await second.start(at.script('while :; do sleep 0.05; done'));
  expect(again).toMatchObject({ number: 1, pid: life.pid, adopted: true });
  expect(second.view().phase).toBe('starting');
  const end = await second.stop({ graceMs: 5000, by: 'test', reason: 'enough' });
  expect(end?.exit).toMatchObject({ name: 'SIGTERM' });
  expect((await second.start(at.script('exit 0'))).number).toBe(3); // 2 was refused, and its number is not used again
});

test('a child that ends while no agent runs: the end and all its lines are known afterwards', async () => {
  const first = at.supervisor();
  await first.start(at.script(`trap 'echo last words; exit 9' USR1; echo up; while :; do sleep 0.05; done`));
  await eventually(() => at.lines.length > 0);
  const [pid = 0] = at.living();
  at.letGo();
  process.kill(pid, 'SIGUSR1');
  await eventually(() => at.living().length === 0);
  const next = at.supervisor();
  const found = await eventually(async () => {
    const recovered = await next.recover();
    return recovered.kind === 'ended' ? recovered : undefined;
  });
  expect(found).toMatchObject({ number: 1, end: { exit: { kind: 'code', code: 9 }, stop: undefined } });
  const lines: string[] = [];
  await next.replay(1, ({ text }) => lines.push(text));
  expect(lines).toEqual(['up', 'last words']);
});
