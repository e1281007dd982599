import type { LabNode } from '../lab/node.ts';
import type { CloudEvent } from '../src/upstream/cloud-event.ts';
import type { Received } from './receiver.ts';

/** What the outboxes hold against what has arrived. */
export interface ReportCount {
  readonly sent: number;
  readonly received: number;
  /** Facts of an outbox that have not arrived. */
  readonly lost: number;
  readonly duplicates: number;
  readonly forks: number;
}

/** What the receiver has now. */
export async function receivedAt(url: string): Promise<Received> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  return (await answer.json()) as Received;
}

/** Compares, fact by fact, what stands in the outboxes of `nodes` with what the receiver at `url` has. */
export async function countReports(nodes: readonly LabNode[], url: string): Promise<ReportCount> {
  const outboxes = await Promise.all(nodes.map(async (node) => ({ node: node.name, facts: await node.events() })));
  const { events, duplicates, forks } = await receivedAt(url);
  const arrived = new Set(events.map((event) => placeOf(event.node, event.stream, event.seq, event.id)));
  const sent = outboxes.flatMap(({ node, facts }) =>
    facts.map((fact) => placeOf(node, fact.stream, fact.seq, fact.id)),
  );
  const lost = sent.filter((place) => !arrived.has(place)).length;
  return { sent: sent.length, received: sent.length - lost, lost, duplicates, forks };
}

/** Events of one node and kind. */
export function eventsOf(events: readonly CloudEvent[], node: LabNode, kind: string): readonly CloudEvent[] {
  return events.filter((event) => event.node === node.name && event.type === `etcd-node-agent.${kind}`);
}

function placeOf(node: string, stream: string, seq: number, id: string): string {
  return `${node} ${stream} ${seq} ${id}`;
}
