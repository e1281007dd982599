import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { decodeRecord } from '../../src/base/record.ts';
import type { CloudEvent } from '../../src/upstream/cloud-event.ts';
import { eventually } from './eventually.ts';
import type { Fleet, FleetNode } from './fleet.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** How an etcd ended, as the agent reports it. */
export interface ReportedEnd {
  readonly class: string;
  readonly code: number | null;
  readonly signal: string | null;
  readonly panicSeen: boolean;
}

/** What a removed node must look like once it has settled. */
export interface ExpectedRemoval {
  /** How many starts of etcd there were in all. Default 1: the first one. */
  readonly lives?: number;
  /** What the report of the removal must say of etcd's end; left out where the end was no removal. */
  readonly exit?: Partial<ReportedEnd>;
}

/**
 * Waits until the removal of `victim` has settled, then demands all that belongs to it: no process, no further start, one
 * complete archive with its reason, the tombstone, the intent, one report of its own and one of each other member; and
 * that a new agent on the same state starts nothing either.
 */
export async function expectRemoved(
  fleet: Fleet,
  victim: FleetNode,
  receiver: WebhookReceiver,
  expected: ExpectedRemoval = {},
): Promise<void> {
  const lives = expected.lives ?? 1;
  const { process, member } = await victim.until(
    ({ plan }) => plan.what === 'removedByOthers',
    'it is blocked as removed',
  );
  const memberId = member?.memberId ?? '';
  expect(process.intent).toBe('removed');
  expect(victim.processes()).toEqual([]);
  expect(victim.lives()).toBe(lives);
  expectArchived(victim, memberId);
  const [own] = await eventually(() => some(removalsOf(receiver, victim, memberId, true)));
  expect(own?.certainty).toBe('observed');
  expect(own?.data['evidence']).not.toHaveLength(0);
  if (expected.exit !== undefined) expect(own?.data['exit']).toMatchObject(expected.exit);
  for (const other of fleet.nodes.filter((node) => node !== victim && node.agentRuns())) {
    if ((await other.status()).process.phase !== 'ready') continue;
    await eventually(() => some(removalsOf(receiver, other, memberId, false)), {
      what: `the report of ${other.name} of the removal of ${victim.name}`,
    });
  }
  await victim.endAgent('SIGKILL');
  await victim.startAgent();
  await victim.until(({ plan }) => plan.what === 'removedByOthers', 'a new agent knows it too');
  await drained(victim);
  expect(victim.lives()).toBe(lives);
  expect(victim.processes()).toEqual([]);
  expectToldOnce(fleet, victim, receiver, memberId);
}

/** One report of each kind, of the victim and of each other that told it, however often anything was sent. */
export function expectToldOnce(fleet: Fleet, victim: FleetNode, receiver: WebhookReceiver, memberId: string): void {
  expect(receiver.forks).toEqual([]);
  expect(removalsOf(receiver, victim, memberId, true)).toHaveLength(1);
  expect(removalsOf(receiver, victim, memberId, false)).toHaveLength(0);
  expect(eventsOf(receiver, victim, 'data.archived')).toHaveLength(1);
  const ends = eventsOf(receiver, victim, 'process.exited').map((event) => event.data['life']);
  expect(ends).toEqual([...new Set(ends)]);
  for (const other of fleet.nodes.filter((node) => node !== victim)) {
    expect(removalsOf(receiver, other, memberId, false).length, `reports of ${other.name}`).toBeLessThan(2);
    expect(removalsOf(receiver, other, memberId, true)).toHaveLength(0);
  }
}

/** What is on disk of a removal that is complete: one archive, whole, and the tombstone that names it. */
export function expectArchived(victim: FleetNode, memberId: string): void {
  const archives = archivesOf(victim);
  expect(archives).toHaveLength(1);
  const [path = ''] = archives;
  expect(existsSync(join(path, 'data', 'member', 'wal'))).toBe(true);
  expect(existsSync(victim.dataDir)).toBe(false);
  const reason: unknown = JSON.parse(readFileSync(join(path, 'reason.json'), 'utf8'));
  const clusterId = expect.stringMatching(/^[0-9a-f]{1,16}$/);
  const evidence = expect.arrayContaining([expect.stringMatching(/./)]);
  const reasonText = expect.stringMatching(/removed/);
  expect(reason).toMatchObject({ nodeId: victim.name, clusterId, memberId, reason: reasonText, evidence });
  expect(tombstonesOf(victim)).toMatchObject([{ memberId, clusterId, archive: path, evidence }]);
}

/** The tombstones on disk. */
export function tombstonesOf(node: FleetNode): readonly Record<string, unknown>[] {
  const path = join(node.stateDir, 'tombstones');
  if (!existsSync(path)) return [];
  const reading = decodeRecord(readFileSync(path), 1);
  return reading.kind === 'ok' ? (reading.value as Record<string, unknown>[]) : [];
}

/** The archives on disk, complete or not. */
export function archivesOf(node: FleetNode): readonly string[] {
  const directory = join(node.memberDir, 'archive');
  return existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : [];
}

/** What arrived of one node and kind, each event once. */
export function eventsOf(receiver: WebhookReceiver, node: FleetNode, kind: string): readonly CloudEvent[] {
  return receiver.events.filter((event) => event.type === `etcd-node-agent.${kind}` && event.node === node.name);
}

/** Waits for the report of the end of one life, and says when the agent knew its class (wall time, ms since 1970). */
export async function reportedEnd(
  receiver: WebhookReceiver,
  node: FleetNode,
  life = 1,
): Promise<{ readonly end: ReportedEnd; readonly atMs: number }> {
  const event = await eventually(
    () => eventsOf(receiver, node, 'process.exited').find(({ data }) => data['life'] === life),
    { what: `the report of the end of life ${life} of ${node.name}` },
  );
  return { end: (event.data as unknown as { readonly exit: ReportedEnd }).exit, atMs: Date.parse(event.time) };
}

/** All that was accepted has arrived. */
async function drained(node: FleetNode): Promise<void> {
  await node.until(({ outbox }) => outbox.waiting === 0, 'its reports have arrived');
}

function removalsOf(
  receiver: WebhookReceiver,
  node: FleetNode,
  memberId: string,
  self: boolean,
): readonly CloudEvent[] {
  return eventsOf(receiver, node, 'member.removed').filter(({ data }) => {
    const { member, self: own } = data as unknown as { member: { memberId: string }; self: boolean };
    return member.memberId === memberId && own === self;
  });
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length > 0 ? list : undefined;
}

/** Median and worst of durations, for people. Unit: ms. */
export function spread(durations: readonly number[]): { readonly median: number; readonly worst: number } {
  const sorted = durations.map((ms) => Math.round(ms)).sort((a, b) => a - b);
  return { median: sorted[Math.floor((sorted.length - 1) / 2)] ?? 0, worst: sorted.at(-1) ?? 0 };
}
