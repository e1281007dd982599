import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ReportedExit } from '../../src/agent/events.ts';
import { AgentMetrics } from '../../src/agent/metrics.ts';
import { exampleStatus } from '../support/fake-control.ts';

const exit: ReportedExit = { class: 'crash', code: 2, signal: null, panicSeen: false, because: '' };

async function samplesOf(metrics: AgentMetrics, status = exampleStatus()): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.render(status)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

test('the status is shown as it is at the moment of the scrape', async () => {
  const metrics = new AgentMetrics();
  const first = await samplesOf(metrics);
  expect(first.get('etcd_node_agent_etcd_up')).toBe(1);
  expect(first.get('etcd_node_agent_plan{kind="converged"}')).toBe(1);
  expect(first.get('etcd_node_agent_cluster_fault_tolerance')).toBe(1);
  const status = exampleStatus();
  const later = await samplesOf(metrics, {
    ...status,
    process: { ...status.process, phase: 'down' },
    plan: { ...status.plan, kind: 'blocked' },
    outbox: { ...status.outbox, waiting: 7, parked: { seq: 1, because: '' } },
    supervision: { kind: 'superviseOnly', because: 'newer state' },
  });
  expect(later.get('etcd_node_agent_etcd_up')).toBe(0);
  expect(later.get('etcd_node_agent_plan{kind="converged"}')).toBe(0);
  expect(later.get('etcd_node_agent_plan{kind="blocked"}')).toBe(1);
  expect(later.get('etcd_node_agent_outbox_waiting')).toBe(7);
  expect(later.get('etcd_node_agent_outbox_parked')).toBe(1);
  expect(later.get('etcd_node_agent_supervise_only')).toBe(1);
});

test('what is unknown has no value, which is not the same as 0', async () => {
  const status = exampleStatus();
  const samples = await samplesOf(new AgentMetrics(), {
    ...status,
    member: null,
    cluster: null,
    role: { ...status.role, known: false },
    process: { ...status.process, life: null },
  });
  const names = [...samples.keys()].join('\n');
  for (const unknown of ['etcd_leader', 'etcd_learner', 'db_size', 'cluster_', 'role{', 'etcd_life', 'alarm']) {
    expect(names).not.toContain(unknown);
  }
  expect(samples.get('etcd_node_agent_role_known')).toBe(0);
});

test('exits and restarts are counted by class, events by kind, and go on counting over scrapes', async () => {
  const metrics = new AgentMetrics();
  metrics.count({ kind: 'process.exited', life: 1, exit });
  metrics.count({ kind: 'process.restarting', class: 'crash', delayMs: 0, restarts: 1 });
  await samplesOf(metrics);
  metrics.count({ kind: 'process.exited', life: 2, exit: { ...exit, class: 'removed' } });
  metrics.count({ kind: 'process.exited', life: 3, exit });
  const samples = await samplesOf(metrics);
  expect(samples.get('etcd_node_agent_etcd_exits_total{class="crash"}')).toBe(2);
  expect(samples.get('etcd_node_agent_etcd_exits_total{class="removed"}')).toBe(1);
  expect(samples.get('etcd_node_agent_etcd_restarts_total{class="crash"}')).toBe(1);
  expect(samples.get('etcd_node_agent_events_total{kind="process.exited"}')).toBe(3);
});

test('label values from other members are escaped', async () => {
  const status = exampleStatus();
  const text = await new AgentMetrics().render({
    ...status,
    alarms: [{ alarm: 'a"\nforged 1', detail: '', since: '' }],
  });
  expect(text).toContain('etcd_node_agent_alarm{alarm="a\\"\\nforged 1"} 1');
});

test('docs/metrics.md names every metric, and no other', async () => {
  const metrics = new AgentMetrics();
  metrics.count({ kind: 'process.exited', life: 1, exit });
  metrics.count({ kind: 'process.restarting', class: 'crash', delayMs: 0, restarts: 1 });
  const status = { ...exampleStatus(), alarms: [{ alarm: 'NOSPACE', detail: '', since: '' }] };
  const names = [...(await metrics.render(status)).matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]);
  const documented = [
    ...readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8').matchAll(/^\| `(\w+)/gm),
  ];
  expect(documented.map((match) => match[1]).sort()).toEqual(names.sort());
});
