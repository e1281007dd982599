/** @pure file: facts as they are reported, and as they stand on disk. */

import { decodeRecord, encodeRecord } from '../base/record.ts';

/** Something that happened, as the agent hands it over. What kinds there are is the agent's affair (docs/reports.md lists them). */
export interface Fact {
  /** Dotted, for example `member.removed`. */
  readonly kind: string;
  /** Seen itself, or concluded where etcd cannot prove it. */
  readonly certainty: 'observed' | 'inferred';
  /** When it was noticed. ISO 8601, UTC. */
  readonly at: string;
  /** What belongs to it. Plain JSON: no bigint, no undefined. */
  readonly data: JsonObject;
  /** True for changes of membership: when the outbox is full they are given up last. */
  readonly important: boolean;
  /** Id of the cluster that the node belonged to when it happened. Hex; absent before it belongs to one. */
  readonly cluster?: string;
  /** Id of this node's own member then. Hex; absent before it has one. */
  readonly member?: string;
}

/** An object of plain JSON values. */
export type JsonObject = { readonly [key: string]: unknown };

/** A fact that has its place in the history of this node. */
export interface StoredFact extends Fact {
  /** The random number of the history that {@link seq} counts in. 16 hex digits. */
  readonly stream: string;
  /** Its number in the stream, from 1, without a gap. */
  readonly seq: number;
  /** The first number it stands for. Equal to {@link seq}, except for a gap that stands for several. */
  readonly from: number;
  /** Random, 32 hex digits; never changes, however often the fact is sent. */
  readonly id: string;
  /** Size of the data before it was cut to the limit; absent if it was not cut. Unit: bytes. */
  readonly cutFromBytes?: number;
}

/** A place in the history: everything of `stream` up to and including `seq`, and all older streams. */
export interface Place {
  readonly stream: string;
  readonly seq: number;
}

/** Numbers that cannot be sent. `to` is null when nobody knows how far the history went. */
export interface Missing {
  readonly stream: string;
  readonly from: number;
  readonly to: number | null;
}

/** The kind of the fact that takes the place of facts that are gone, and that opens every stream but the first. */
export const gapKind = 'outbox.gap';

/** The data of a fact of {@link gapKind}. */
export interface GapData {
  /** In words for an operator. */
  readonly because: string;
  /** What is gone; empty if the stream was changed without a loss. */
  readonly missing: readonly Missing[];
  /** How many facts of which kind were given up, where it is known. */
  readonly dropped?: Readonly<Record<string, number>>;
  /** Only in the first fact of a stream: the stream before it and its last number. */
  readonly previous?: Place;
}

/** The version of all records of the outbox. A newer one is never read, never written over. */
export const outboxVersion = 1;

/** @pure One line of a segment. */
export function encodeFact(fact: StoredFact): string {
  return encodeRecord(fact, outboxVersion);
}

/** One line of a segment, read: a fact, damage, or a record of a newer agent. */
export type FactReading =
  | { readonly kind: 'fact'; readonly fact: StoredFact }
  | { readonly kind: 'damaged'; readonly why: string }
  | { readonly kind: 'newer'; readonly version: number };

/** @pure The reverse of {@link encodeFact}. */
export function decodeFact(line: Uint8Array): FactReading {
  const reading = decodeRecord(line, outboxVersion);
  if (reading.kind === 'newer' || reading.kind === 'damaged') return reading;
  const value = reading.kind === 'ok' ? reading.value : undefined;
  return isStoredFact(value) ? { kind: 'fact', fact: value } : { kind: 'damaged', why: 'it is no fact' };
}

/** @pure The gap data of a fact, or undefined if it is no gap. */
export function gapDataOf(fact: StoredFact): GapData | undefined {
  return fact.kind === gapKind && isGapData(fact.data) ? fact.data : undefined;
}

/** @pure Gap data as the data of a fact. */
export function gapData(data: GapData): JsonObject {
  return { ...data };
}

function isStoredFact(value: unknown): value is StoredFact {
  if (!isObject(value)) return false;
  const { kind, certainty, at, data, important, stream, seq, from, id, cutFromBytes, cluster, member } = value;
  return (
    typeof kind === 'string' &&
    (certainty === 'observed' || certainty === 'inferred') &&
    typeof at === 'string' &&
    isObject(data) &&
    typeof important === 'boolean' &&
    typeof stream === 'string' &&
    isNumber(seq) &&
    isNumber(from) &&
    from <= seq &&
    typeof id === 'string' &&
    (cluster === undefined || typeof cluster === 'string') &&
    (member === undefined || typeof member === 'string') &&
    (cutFromBytes === undefined || isNumber(cutFromBytes))
  );
}

function isGapData(value: unknown): value is GapData {
  if (!isObject(value) || typeof value['because'] !== 'string' || !Array.isArray(value['missing'])) return false;
  const previous = value['previous'];
  return value['missing'].every(isMissing) && (previous === undefined || isPlace(previous));
}

/** @pure True if `value` is a {@link Missing}. */
export function isMissing(value: unknown): value is Missing {
  if (!isObject(value)) return false;
  return (
    typeof value['stream'] === 'string' && isNumber(value['from']) && (value['to'] === null || isNumber(value['to']))
  );
}

/** @pure True if `value` is a {@link Place}; `seq` may be 0, which is before the first fact. */
export function isPlace(value: unknown): value is Place {
  if (!isObject(value) || typeof value['stream'] !== 'string') return false;
  return value['seq'] === 0 || isNumber(value['seq']);
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}

/** @pure True for a JSON object, not for an array or null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
