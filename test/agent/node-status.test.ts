// Goal: what an operator reads is so: a lost quorum, a frozen etcd, members that never came or are gone are in the sentence, the
// alarms, the events and the metrics.
// Method: agent-machine.ts, seen through NodeControl, as the local API shows it.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Config } from '../../src/agent/config.ts';
import { AgentMetrics } from '../../src/agent/metrics.ts';
import { NodeControl, type NodeControlOptions } from '../../src/agent/node-control.ts';
import type { Observed } from '../../src/agent/observed.ts';
import { sentence } from '../../src/agent/views.ts';
import { AgentMachine, others, says, us } from './agent-machine.ts';

const [n1, n2] = others;
const all = [n1, n2, us];
const lostLeader =
  '{"level":"info","ts":"2026-01-01T00:00:00.000000Z","logger":"raft","caller":"etcdserver/zap_raft.go:77","msg":"raft.node: a3 lost leader a1 at term 2"}';
const serves =
  '{"level":"info","ts":"2026-01-01T00:00:00.000000Z","caller":"embed/serve.go:187","msg":"serving client traffic insecurely; this is strongly discouraged!","traffic":"grpc+http","address":"127.0.0.1:2379"}';

let machine: AgentMachine;
beforeEach(() => {
  machine = new AgentMachine();
});
afterEach(async () => {
  await machine.endAgent();
});

function control(): NodeControl {
  const outbox = {
    stream: '1',
    upstream: true,
    waiting: 0,
    lastSeq: 0,
    acknowledgedSeq: 0,
    parked: null,
    lastError: '',
  };
  return new NodeControl({
    parts: machine.parts,
    child: machine.child,
    role: { view: () => ({ known: false, role: '', grantId: '', epoch: 0, generation: 0, source: '', problem: '' }) },
    outbox: { status: () => outbox },
    clock: machine.clock,
    config: () => ({ node: { id: 'n3' }, etcd: { clientUrl: 'http://a3:2379' } }) as Config,
    agentVersion: '0',
    pid: 1,
    etcdVersion: () => '3.5.30',
  } as unknown as NodeControlOptions);
}
const raised = () => machine.parts.alarms.all().map(({ alarm }) => alarm);
const metric = async (name: string) =>
  new RegExp(`^etcd_node_agent_${name} (.*)$`, 'm').exec(await new AgentMetrics().render(control().status()))?.[1];

/** A voter of three that serves, and all of them answer. */
async function serving(): Promise<void> {
  machine.answer([n1, all], [n2, all], [us, all]);
  machine.boot();
  machine.child.says(serves);
  await machine.until(() => machine.parts.voters.answering(us)?.size === 2, 'the others answered');
}

describe('a quorum that is lost', () => {
  test('is in sentence, plan, alarm, events and metrics within 15 s of the log line, and gone when it is back', async () => {
    await serving();
    expect(control().status().sentence).toBe('etcd is ready (pid 4711); 3 voters, 1 may fail');
    expect(await metric('etcd_quorum')).toBe('1');
    machine.lists.clear();
    machine.child.says(lostLeader);
    await machine.pass(15_000);
    expect(raised()).toEqual(['noQuorum']);
    const { sentence, plan, member } = control().status();
    expect(sentence).toMatch(
      /^etcd runs without a quorum \(pid 4711\): no quorum has confirmed a read for \d+ s; it knows no leader; 3 voters/,
    );
    expect(plan).toMatchObject({ kind: 'waiting', hint: expect.stringContaining('"a lost quorum"') });
    expect(control().why().plan.kind).toBe('waiting');
    expect(member).toMatchObject({ quorum: false });
    expect(await metric('etcd_quorum')).toBe('0');
    expect(await metric('alarm{alarm="noQuorum"}'.replace(/[{}]/g, '\\$&'))).toBe('1');
    expect(machine.factsOf('alarm.raised')).toMatchObject([{ data: { alarm: 'noQuorum' } }]);

    machine.answer([n1, all], [n2, all], [us, all]);
    await machine.until(() => raised().length === 0, 'it is over', 5_000);
    await machine.until(() => machine.factsOf('alarm.cleared').length === 1, 'that is told', 15_000);
    expect(control().status().plan.kind).toBe('converged');
  });

  test('is seen without a log line as well, by the next list', async () => {
    await serving();
    machine.lists.clear();
    await machine.pass(80_000);
    expect(raised()).toEqual(['noQuorum']);
  });

  test('an election, and a read that waits for one that hangs, are none', async () => {
    await serving();
    machine.lists.clear();
    machine.child.says(lostLeader);
    await machine.pass(8_000);
    machine.answer([n1, all], [n2, all], [us, all]);
    await machine.pass(10_000);
    expect(machine.factsOf('alarm.raised')).toEqual([]);
  });
});

describe('who may fail', () => {
  test('is said of those that answer now', async () => {
    await serving();
    machine.lists.delete('http://a2:2379');
    await machine.pass(25_000);
    const { sentence, cluster } = control().status();
    expect(sentence).toBe('etcd is ready (pid 4711); 3 voters, 2 answer, none may fail');
    expect(cluster).toMatchObject({ voters: 3, quorum: 2, answering: 2, faultTolerance: 0 });
    expect(cluster?.members.map(({ answers }) => answers)).toEqual([true, false, true]);
    expect(await metric('cluster_fault_tolerance')).toBe('0');
    expect(await metric('cluster_voters_answering')).toBe('2');
    machine.lists.delete('http://a1:2379');
    await machine.pass(25_000);
    expect(control().status().sentence).toBe('etcd is ready (pid 4711); 3 voters, 1 answers, 2 are needed');
  });

  test('a list is named as a list before anybody was asked', async () => {
    await serving();
    machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
    expect(control().status().cluster).toMatchObject({ answering: null, faultTolerance: 1 });
  });

  test('a removed node is in no list, and no voter', async () => {
    await serving();
    machine.answer([n1, [n1, n2]], [n2, [n1, n2]]);
    machine.child.says(says.ownRemoval);
    machine.child.ends({ kind: 'code', code: 0 });
    await machine.until(() => machine.plan === 'blocked removedByOthers', 'it is settled');
    const { cluster, member } = control().status();
    expect(member).toMatchObject({ removed: true });
    expect(cluster).toMatchObject({ voters: 2, quorum: 2, faultTolerance: 0 });
    expect(cluster?.members.map(({ memberId }) => memberId)).toEqual(['a1', 'a2']);
  });
});

test('an etcd that does not answer is neither ready nor converged nor up, and says nothing of the quorum', async () => {
  await serving();
  machine.lists.clear();
  for (let misses = 0; misses < 5; misses++) machine.parts.stuck.missed();
  await machine.pass(75_000);
  expect(raised()).toEqual(['etcdUnresponsive']);
  const { sentence, plan, process, member } = control().status();
  expect(sentence).toBe('etcd runs and does not answer (pid 4711)');
  expect(plan).toMatchObject({ kind: 'waiting', hint: expect.stringContaining('docs/runbook.md') });
  expect(process.answers).toBe(false);
  expect(member?.quorum).toBeNull();
  expect(await metric('etcd_up')).toBe('0');
});

test('a founder that waits for the others says how many are needed', () => {
  machine.boot();
  const voter = { name: 'n3', peerUrls: [], clientUrls: [], isLearner: false };
  const lastVoters = [1n, 2n, us].map((id) => ({ ...voter, id }));
  const seen = { founding: 'started', identity: { lastVoters }, paused: false } as unknown as Observed;
  const view = { ...machine.child.view(), phase: 'starting' } as const;
  const health = { answers: true, quorum: undefined, withoutQuorum: '', notReady: '' };
  const waits = (because: string) => sentence({ kind: 'waiting', because, inMs: 1 }, seen, view, null, health);
  expect(waits('etcd is starting')).toBe(
    'etcd is starting (pid 4711); the new cluster is ready once 2 of its 3 founders run',
  );
  expect(waits('the removed etcd is ending')).toBe('etcd is starting (pid 4711); the removed etcd is ending');
});

test('an etcd that starts says why it is not ready, once', async () => {
  machine.child.ends({ kind: 'signal', name: 'SIGKILL' });
  machine.boot();
  await machine.until(() => machine.child.starts === 1, 'the start');
  machine.parts.health.notReady('it knows no leader');
  await machine.pass(40_000);
  expect(control().status().sentence).toBe('etcd is starting (pid 4711): it knows no leader');
  expect(machine.parts.alarms.all()).toMatchObject([
    {
      alarm: 'etcdNotReady',
      detail: expect.stringMatching(/^it has been starting for \d+ s and is not ready: it knows/),
    },
  ]);
});
