/** @pure file: the membership history, and the three things that can be done to it: enter, confirm, change. */

import { confirmedBy, type HistoryEntry, type HistoryWitness } from './history-entry.ts';
import { settled } from './history-order.ts';
import type { MembershipFact } from './membership-fact.ts';
import { operationBehind } from './operation-behind.ts';
import type { OperationRecord } from './records.ts';

/** The history of one cluster. */
export interface History {
  /** Random. Another one for each history, and a new one when somebody accepts a restored cluster: cursors carry it. */
  readonly id: string;
  readonly clusterId: string;
  /** The highest number that was given out; none is used twice. */
  readonly last: number;
  /** In the order of commitment, as far as it is known. */
  readonly entries: readonly HistoryEntry[];
  /** Members whose entries were dropped, oldest first. A late report of one of them is no news; their ids never come again. */
  readonly forgotten: readonly string[];
}

/** What the curator knows besides when it takes a fact. */
export interface HistoryContext {
  /** Now. ISO 8601, UTC. */
  readonly storedAt: string;
  /** The operations that may have made the change. */
  readonly operations: readonly OperationRecord[];
}

/** A history under way. */
export interface Draft {
  readonly history: History;
  readonly context: HistoryContext;
}

/** What is new about an entry that is entered. The rest is the fact's. */
export interface NewEntry {
  readonly transition: HistoryEntry['transition'];
  readonly learner: boolean;
  readonly witness: HistoryWitness;
  /** Default 0. */
  readonly occurrence?: number;
  /** The entry that it goes before, whatever else is proven. Default: none. */
  readonly beforeNumber?: number;
}

/** @pure One entry more, with the next number: where it is proven to belong, else at the end. */
export function enter({ history, context }: Draft, fact: MembershipFact, entry: NewEntry): Draft {
  const { transition, learner, witness, occurrence = 0 } = entry;
  const { clusterId, memberId, peerUrls } = fact;
  const number = history.last + 1;
  const owner = history.entries.find((one) => one.memberId === memberId && one.nodeId !== '')?.nodeId ?? '';
  const made: HistoryEntry = {
    number,
    clusterId,
    memberId,
    transition,
    occurrence,
    nodeId: fact.nodeId === '' ? owner : fact.nodeId,
    peerUrls,
    certainty: witness.certainty,
    first: witness,
    confirmed: [],
    operationId: '',
    before: 0,
    learner,
    storedAt: context.storedAt,
  };
  const at = history.entries.findIndex((one) => one.number === entry.beforeNumber);
  const entries = history.entries.toSpliced(at === -1 ? history.entries.length : at, 0, attributed(made, context));
  return { history: { ...history, last: number, entries: settled(entries, number) }, context };
}

/** @pure The entry `number` is reported once more. What it lacked is taken from the fact. */
export function confirm(draft: Draft, number: number, fact: MembershipFact): Draft {
  const entry = draft.history.entries.find((one) => one.number === number);
  if (entry === undefined) return draft;
  const witnessed = confirmedBy(entry, fact.witness);
  return change(draft, number, {
    ...witnessed,
    nodeId: entry.nodeId === '' ? fact.nodeId : entry.nodeId,
    peerUrls: entry.peerUrls.length === 0 ? fact.peerUrls : entry.peerUrls,
  });
}

/** @pure The entry `number` with `news`, at the place where it belongs then. The same draft if that is no news. */
export function change(draft: Draft, number: number, news: Partial<HistoryEntry>): Draft {
  const { history, context } = draft;
  const at = history.entries.findIndex((one) => one.number === number);
  const entry = history.entries[at];
  if (entry === undefined) return draft;
  const changed = attributed({ ...entry, ...news }, context);
  const isSame = (key: keyof HistoryEntry) => changed[key] === entry[key];
  if (Object.keys(changed).every((key) => isSame(key as keyof HistoryEntry))) return draft;
  return { history: { ...history, entries: settled(history.entries.with(at, changed), number) }, context };
}

/** @pure A witness of something that it did not report itself. */
export function inferred(witness: HistoryWitness): HistoryWitness {
  return { ...witness, certainty: 'inferred', order: 0 };
}

/** @pure The entry with the operation that made it, if one of those is it. */
export function attributed(entry: HistoryEntry, { operations }: HistoryContext): HistoryEntry {
  if (entry.operationId !== '') return entry;
  const operationId = operationBehind(entry, operations);
  return operationId === '' ? entry : { ...entry, operationId };
}
