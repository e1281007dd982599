// Goal: the agent's death, at whatever moment, is a non-event for etcd: one etcd at a time, its pid changes only where the
// story says so, and how it ended is known to the next agent.
// Method: one node; the agent is killed again and again right after a spawn, a stop or an exit of etcd, while a watcher
// looks at /proc all the time. 10 kills in the short run, 50 in the full one.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished } from 'vitest';
import { mayMount, runAgentToEnd, test } from '../support/crash-node.ts';
import { eventually } from '../support/eventually.ts';
import type { FleetNode } from '../support/fleet.ts';
import { ProcessWatch } from '../support/process-watch.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const everything = process.env['ETCD_TEST_VERSIONS'] === 'all';
const kills = everything ? 50 : 10;
/** How long the agent is stopped. Unit: ms. */
const stoppedMs = everything ? 20_000 : 8_000;

/** What the agent is killed after, and which etcd must run then. */
type Moment = 'spawn' | 'exit' | 'stop' | 'quiet' | 'before an exit';

describe('the agent is killed', () => {
  test(`A08 I1 I3 ${kills} times, most of them right after a spawn, a stop or an exit of etcd`, {
    timeout: 30_000 * kills,
  }, async ({ lab: { node } }) => {
    const random = new SeededRandom(Number(process.env['SEED'] ?? 20_261));
    const watch = new ProcessWatch(node.dataDir);
    onTestFinished(() => watch.stop());
    const order: readonly Moment[] = ['spawn', 'exit', 'stop', 'quiet', 'spawn', 'exit', 'stop', 'before an exit'];
    let close = 0;
    for (let round = 0; round < kills; round++) {
      const moment = order[round % order.length] ?? 'quiet';
      node.mark(`kill ${round + 1}: ${moment}`);
      const killedAfterMs = await rounds[moment]({ node, watch, waitMs: Math.floor(random.fraction() * 300) });
      if (killedAfterMs !== undefined && killedAfterMs <= 300) close++;
      const when = killedAfterMs === undefined ? moment : `${Math.round(killedAfterMs)} ms after ${moment}`;
      process.stderr.write(`kill ${round + 1} of ${kills}: ${when}\n`);
      expect(watch.doubled, 'never two etcd on one data directory').toEqual([]);
      await node.post('/v1/start');
      await node.ready();
    }
    process.stderr.write(
      `${close} of ${kills} within 300 ms, ${watch.seen.size} etcd in ${watch.looks} looks at /proc\n`,
    );
    expect(close).toBeGreaterThanOrEqual(kills / 2);
  });

  test.for(['SIGTERM', 'SIGINT'] as const)(
    '%s ends the agent, leaves etcd running, and one line says how to stop it',
    async (signal, { lab: { node } }) => {
      const pid = await node.etcdPid();
      node.mark(signal);
      await node.endAgent(signal);
      const log = node.agentLog().split(`--- test: ${signal}\n`)[1] ?? '';
      expect(log).toMatch(/the agent ends and etcd runs on; to stop etcd as well, run: etcd-node-agent stop/);
      expect(log).not.toMatch(/"level":"error"/);
      expect(isAlive(pid)).toBe(true);
      await node.startAgent();
      const status = await node.ready();
      expect(status.process).toMatchObject({ pid, adopted: true });
    },
  );

  test(`A13 an agent that was stopped for ${stoppedMs / 1000} s looks again before it acts`, async ({
    lab: { node },
  }) => {
    const pid = await node.etcdPid();
    process.kill(node.agentPid, 'SIGSTOP');
    await sleep(stoppedMs); // the fault itself: that long nothing of the agent moves
    process.kill(node.agentPid, 'SIGCONT');
    const status = await node.ready();
    expect(status.process).toMatchObject({ pid, phase: 'ready' });
    expect(status.alarms).toEqual([]);
    expect(node.agentLog().split('A13')[1]).not.toContain('"msg":"step"');
  });
});

describe('two agents', () => {
  test('A22 the second one ends with its code and says why; the first goes on', async ({ lab: { node } }) => {
    const [pid, agentPid] = [await node.etcdPid(), node.agentPid];
    const { code, output } = await runAgentToEnd(node.configFile);
    expect(code).toBe(6);
    expect(output).toContain(`another agent runs on ${node.stateDir}`);
    expect(node.agentPid).toBe(agentPid);
    expect(await node.etcdPid()).toBe(pid);
  });

  test.runIf(mayMount())(
    'A23 nor does it run on the same state directory under another path',
    async ({ lab: { node, config } }) => {
      const pid = await node.etcdPid();
      const other = join(node.directory, 'state-elsewhere');
      mkdirSync(other);
      execFileSync('mount', ['--bind', node.stateDir, other]);
      onTestFinished(() => void execFileSync('umount', [other]));
      const configFile = join(node.directory, 'second.yaml');
      writeFileSync(
        configFile,
        config
          .replace(`stateDir: ${node.stateDir}`, `stateDir: ${other}`)
          .replace(`runDir: ${join(node.directory, 'run')}`, `runDir: ${join(node.directory, 'run-2')}`),
      );
      const { code, output } = await runAgentToEnd(configFile);
      expect(output).toContain(`another agent runs on ${other}`);
      expect(code).toBe(6);
      expect(await node.etcdPid()).toBe(pid);
    },
  );
});

interface Round {
  readonly node: FleetNode;
  readonly watch: ProcessWatch;
  /** From the moment to the kill. Unit: ms. */
  readonly waitMs: number;
}

/** Each kills the agent, starts the next one, checks what became of etcd, and tells how long after its moment it killed. */
const rounds: Readonly<Record<Moment, (round: Round) => Promise<number | undefined>>> = {
  /** etcd has just been started: the next agent finds and keeps it. */
  async spawn({ node, watch, waitMs }) {
    const before = await node.etcdPid();
    process.kill(before, 'SIGKILL');
    const born = await eventually(() => watch.after(before)[0], { everyMs: 2, what: 'the next etcd' });
    const afterMs = await killLater(node, watch.seen.get(born) ?? 0, waitMs);
    const status = await nextAgent(node);
    expect(status.process.pid, `the etcd that had just been started; ${watch.describe()}`).toBe(born);
    expect(watch.after(before), `no other was started; ${watch.describe()}`).toEqual([born]);
    expect(status.process.lastExit).toMatchObject({ class: 'killed', signal: 'SIGKILL' });
    return afterMs;
  },

  /** etcd has just ended: it is started once, by the old agent or by the new one. */
  async exit({ node, watch, waitMs }) {
    // Ready: one that has only just been started may die of the signal itself, before Go has taken it over.
    const { process: before } = await node.ready();
    const pid = before.pid ?? 0;
    process.kill(pid, 'SIGABRT');
    await eventually(() => !isAlive(pid), { everyMs: 2, what: 'its end' });
    const afterMs = await killLater(node, performance.now(), waitMs);
    const status = await nextAgent(node);
    expect(watch.after(pid), `started once; ${watch.describe()}`).toEqual([status.process.pid]);
    expect(status.process.lastExit).toMatchObject({ class: 'crash', code: 2, life: before.life });
    return afterMs;
  },

  /** etcd has just been asked to stop: it is stopped and stays so, or the order never arrived and it runs on. */
  async stop({ node, watch, waitMs }) {
    const { process: before } = await node.status();
    const pid = before.pid ?? 0;
    const asked = performance.now();
    const answer = node.post('/v1/stop').then(
      () => true,
      () => false,
    );
    const afterMs = await killLater(node, asked, waitMs);
    const answered = await answer;
    await node.startAgent();
    const { process: after } = await node.until(
      ({ process }) =>
        process.intent === 'stopped'
          ? process.phase === 'down' && process.lastExit?.life === before.life
          : process.phase === 'ready',
      'it is stopped, or runs on',
    );
    if (answered) expect(after.intent).toBe('stopped');
    if (after.intent === 'stopped') {
      expect(after.lastExit).toMatchObject({ class: 'stopped', life: before.life });
      expect(watch.after(pid), 'nothing was started').toEqual([]);
    } else {
      expect(after).toMatchObject({ pid, adopted: true });
    }
    return afterMs;
  },

  /** Nothing happens to etcd, so nothing happens to etcd. */
  async quiet({ node, watch }) {
    const pid = await node.etcdPid();
    await node.endAgent('SIGKILL');
    const status = await nextAgent(node);
    expect(status.process).toMatchObject({ pid, adopted: true });
    expect(watch.after(pid)).toEqual([]);
    return undefined;
  },

  /** etcd dies while no agent runs: how it died is known all the same. */
  async 'before an exit'({ node, watch }) {
    const { process: before } = await node.status();
    const pid = before.pid ?? 0;
    await node.endAgent('SIGKILL');
    process.kill(pid, 'SIGSEGV');
    await eventually(() => !isAlive(pid), { what: 'its end' });
    const status = await nextAgent(node);
    expect(status.process.lastExit).toMatchObject({ class: 'crash', code: 2, life: before.life });
    expect(watch.after(pid), `started once; ${watch.describe()}`).toEqual([status.process.pid]);
    return undefined;
  },
};

/** Kills the agent `waitMs` after `moment`, or as soon as that is possible; tells how long after it was. */
async function killLater(node: FleetNode, moment: number, waitMs: number): Promise<number> {
  const leftMs = moment + waitMs - performance.now();
  if (leftMs > 0) await sleep(leftMs);
  const afterMs = performance.now() - moment;
  await node.endAgent('SIGKILL');
  return afterMs;
}

async function nextAgent(node: FleetNode) {
  await node.startAgent();
  return await node.ready();
}

/** A zombie is dead. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
