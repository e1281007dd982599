import type { StatusView } from './control.ts';
import type { AgentEvent } from './events.ts';

/**
 * The agent's own metrics. What can be read off the status is read at each scrape; only what is gone by then is counted.
 * prom-client is loaded at the first scrape, so that an agent that nobody scrapes does not carry it.
 */
export class AgentMetrics {
  readonly #exits = new Map<string, number>();
  readonly #restarts = new Map<string, number>();
  readonly #events = new Map<string, number>();

  /** Counts a fact that was recorded. Called once for each, when it is recorded. */
  count(event: AgentEvent): void {
    increase(this.#events, event.kind);
    if (event.kind === 'process.exited') increase(this.#exits, event.exit.class);
    if (event.kind === 'process.restarting') increase(this.#restarts, event.class);
  }

  /** All metrics in Prometheus text format. docs/metrics.md explains each. */
  async render(status: StatusView): Promise<string> {
    const { Counter, Gauge, Registry } = await import('prom-client');
    // A registry of its own for each scrape: nothing is left over of a label value that is gone.
    const registers = [new Registry()];
    for (const { name, help, samples } of gaugesOf(status)) {
      // prom-client would show 0 for it.
      if (samples.length === 0) continue;
      const labelNames = Object.keys(samples[0]?.labels ?? {});
      const gauge = new Gauge({ name: prefix + name, help, labelNames, registers });
      for (const { labels, value } of samples) gauge.set(labels, value);
    }
    for (const { name, help, label, counts } of this.#counters()) {
      const counter = new Counter({ name: prefix + name, help, labelNames: [label], registers });
      for (const [value, count] of counts) counter.inc({ [label]: value }, count);
    }
    return registers[0]?.metrics() ?? '';
  }

  #counters(): readonly CounterValues[] {
    return [
      {
        name: 'etcd_exits_total',
        help: 'Ends of etcd that this agent saw, by exit class.',
        label: 'class',
        counts: this.#exits,
      },
      {
        name: 'etcd_restarts_total',
        help: 'Starts of etcd after an end that was not asked for, by the exit class that was treated.',
        label: 'class',
        counts: this.#restarts,
      },
      { name: 'events_total', help: 'Facts recorded for upstream, by kind.', label: 'kind', counts: this.#events },
    ];
  }
}

const prefix = 'etcd_node_agent_';

interface CounterValues {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  readonly counts: ReadonlyMap<string, number>;
}

/** One gauge; without samples it is left out, which says "unknown" and not "zero". */
interface GaugeValues {
  readonly name: string;
  readonly help: string;
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

function gaugesOf(status: StatusView): readonly GaugeValues[] {
  return [...agentGauges(status), ...etcdGauges(status), ...clusterGauges(status), ...outboxGauges(status)];
}

function agentGauges({ agent, nodeId, supervision, role, paused, plan, alarms }: StatusView): readonly GaugeValues[] {
  return [
    gauge('info', 'Always 1; the labels say who this is.', 1, { node: nodeId, version: agent.version }),
    gauge('start_time_seconds', 'When the agent started, in seconds since 1970.', seconds(agent.startedAt)),
    gauge('supervise_only', '1 while etcd is run and membership is not touched.', supervision.kind === 'superviseOnly'),
    gauge('role_known', '1 if the role of this node is known.', role.known),
    gauge('role', 'Always 1; the label is the role, if it is known.', role.known ? 1 : undefined, { role: role.role }),
    gauge('role_problem', '1 if the role is unknown or its newest document was refused.', role.problem !== ''),
    gauge('paused', '1 while membership changes and health restarts are forbidden.', paused !== null),
    oneOf('plan', 'The label of the current plan is 1.', 'kind', ['converged', 'act', 'blocked', 'waiting'], plan.kind),
    {
      name: 'alarm',
      help: '1 for each alarm that stands.',
      samples: alarms.map(({ alarm }) => ({ labels: { alarm }, value: 1 })),
    },
  ];
}

function etcdGauges({ process: etcd, member }: StatusView): readonly GaugeValues[] {
  const phases = ['down', 'starting', 'ready', 'stopping', 'killing'];
  const intents = ['run', 'stopped', 'held', 'removed'];
  return [
    gauge('etcd_up', '1 while etcd is ready and answers.', etcd.phase === 'ready' && etcd.answers),
    oneOf('etcd_phase', 'The label of the current phase is 1.', 'phase', phases, etcd.phase),
    oneOf('etcd_intent', 'The label of what is wanted of etcd is 1.', 'intent', intents, etcd.intent),
    gauge('etcd_life', 'Number of the current or last life of etcd.', etcd.life),
    gauge('etcd_quorum', '1 if a quorum confirms what this member reads, 0 if none does.', member?.quorum),
    gauge('etcd_learner', '1 if this member is a learner.', member?.learner),
    gauge('etcd_leader', '1 if this member leads.', member?.leader),
    gauge('etcd_db_size_bytes', 'Size of the database of this member.', member?.dbSizeBytes),
  ];
}

function clusterGauges({ cluster }: StatusView): readonly GaugeValues[] {
  return [
    gauge('cluster_voters', 'Voters in the last linearizable member list.', cluster?.voters),
    gauge('cluster_quorum', 'Voters that must agree.', cluster?.quorum),
    gauge('cluster_voters_answering', 'Voters that answer now, this one included.', cluster?.answering),
    gauge('cluster_fault_tolerance', 'Voters that may fail, of those that answer.', cluster?.faultTolerance),
    gauge('cluster_list_time_seconds', 'When that list was read.', cluster === null ? null : seconds(cluster.asOf)),
  ];
}

function outboxGauges({ outbox }: StatusView): readonly GaugeValues[] {
  return [
    gauge('outbox_waiting', 'Facts that upstream has not acknowledged.', outbox.upstream ? outbox.waiting : undefined),
    gauge('outbox_parked', '1 while upstream refuses the oldest fact for ever.', outbox.parked !== null),
    gauge('outbox_last_seq', 'Number of the newest fact.', outbox.lastSeq),
    gauge('outbox_acknowledged_seq', 'Number of the newest acknowledged fact.', outbox.acknowledgedSeq),
    gauge('outbox_failing', '1 if the last attempt to report failed.', outbox.lastError !== ''),
  ];
}

function gauge(
  name: string,
  help: string,
  value: number | boolean | null | undefined,
  labels: Readonly<Record<string, string>> = {},
): GaugeValues {
  const known = value !== null && value !== undefined && !Number.isNaN(value);
  return { name, help, samples: known ? [{ labels, value: Number(value) }] : [] };
}

function oneOf(name: string, help: string, label: string, all: readonly string[], current: string): GaugeValues {
  const values = all.includes(current) ? all : [...all, current];
  return {
    name,
    help,
    samples: values.map((value) => ({ labels: { [label]: value }, value: Number(value === current) })),
  };
}

function seconds(at: string): number {
  return Date.parse(at) / 1000;
}

function increase(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
