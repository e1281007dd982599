/** @pure file: all lines of one life of etcd, folded into what its end is judged by. */

import { factOf, isOwnRemoval, type LogFact } from './facts.ts';
import type { LogEntry, TextBlock, TraceCause } from './log-assembler.ts';
import { type LogLine, textField } from './log-line.ts';
import { type ClusterId, type MemberId, parseId } from './member.ts';

/** What one life of etcd has said. Bounded: a life of a year is as small as one of a second. */
export interface Evidence {
  readonly entries: number;
  /** etcd's own version, from its first lines; undefined if it did not come that far. */
  readonly version: string | undefined;
  /** The directory that it named when it started. */
  readonly dataDir: string | undefined;
  readonly memberId: MemberId | undefined;
  readonly clusterId: ClusterId | undefined;
  /** The first line that shows that this member applied its own removal: proof. */
  readonly ownRemoval: OwnRemoval | undefined;
  /** It was told that it is no member, and by whom ({@link maxPeers} peers at most); that it ends of it. No proof. */
  readonly permanentlyRemoved: boolean;
  readonly removedSaidBy: readonly MemberId[];
  /** The IsLocalMemberLearner panic was logged, or stands in the trace. */
  readonly learnerPanic: boolean;
  readonly served: boolean;
  /** It waits, or waited to its end, for a directory that another process holds. */
  readonly dbLocked: boolean;
  readonly walRepaired: boolean;
  readonly clusterIdMismatch: boolean;
  /** The signal that it heard and began to stop for (`terminated`, `interrupt`); it says so only once it was ready. */
  readonly signalReceived: string | undefined;
  /** Its last words: the trace of a panic or of a signal. */
  readonly trace: Trace | undefined;
  /** The flag package refused the command line: its first line. */
  readonly usage: string | undefined;
  /** Why it ended by its own words: fatal and panic lines and refusals to start, the last {@link maxReasons}. */
  readonly reasons: readonly Reason[];
  /** The last {@link maxLastLines} lines, cut, for the report. */
  readonly lastLines: readonly string[];
}

export interface OwnRemoval {
  readonly memberId: MemberId;
  readonly clusterId: ClusterId | undefined;
  /** The line's text and time, for the report. */
  readonly text: string;
}

export interface Trace {
  readonly cause: TraceCause;
  /** `panic: …`, cut at {@link maxTextChars}. */
  readonly first: string;
  /** True if it is a panic within IsLocalMemberLearner. */
  readonly inLearnerCheck: boolean;
  /** True if Go's runtime, not a check of etcd's, ended it while it read its data at the start. */
  readonly inBootstrap: boolean;
}

/** A line in which etcd gave up. */
export interface Reason {
  /** `panic` may have been recovered; the others are followed by its end. */
  readonly level: 'fatal' | 'panic' | 'refusal';
  /** Message, then the text of its `error` field, cut at {@link maxTextChars}. */
  readonly text: string;
}

/** How many peers are remembered by name. */
export const maxPeers = 16;
/** How many reasons are kept; more than two have never been seen in one life. */
export const maxReasons = 8;
/** How many lines go into a report. */
export const maxLastLines = 12;
/** Unit: characters. */
export const maxTextChars = 600;

/** @pure Nothing was said. */
export const emptyEvidence: Evidence = {
  entries: 0,
  version: undefined,
  dataDir: undefined,
  memberId: undefined,
  clusterId: undefined,
  ownRemoval: undefined,
  permanentlyRemoved: false,
  removedSaidBy: [],
  learnerPanic: false,
  served: false,
  dbLocked: false,
  walRepaired: false,
  clusterIdMismatch: false,
  signalReceived: undefined,
  trace: undefined,
  usage: undefined,
  reasons: [],
  lastLines: [],
};

/** @pure The evidence with one more entry of the log. */
export function addLine(evidence: Evidence, entry: LogEntry): Evidence {
  const counted: Evidence = { ...evidence, entries: evidence.entries + 1, lastLines: lastLines(evidence, entry) };
  if (entry.kind === 'usage') return { ...counted, usage: evidence.usage ?? cut(entry.block.first) };
  if (entry.kind === 'trace') return addTrace(counted, entry.cause, entry.block);
  const fact = factOf(entry.line);
  const known = addIdentity(counted, entry.line);
  return addReason(fact === undefined ? known : addFact(known, fact, entry.line), entry.line);
}

function addTrace(evidence: Evidence, cause: TraceCause, block: TextBlock): Evidence {
  const frames = cause === 'panic' ? firstGoroutine(block.lines) : [];
  const inLearnerCheck = frames.some((line) => line.includes('.IsLocalMemberLearner('));
  const inBootstrap =
    block.first.startsWith('panic: runtime error') && frames.some((line) => line.includes('/etcdserver.bootstrap('));
  const trace = evidence.trace ?? { cause, first: cut(block.first), inLearnerCheck, inBootstrap };
  return { ...evidence, trace, learnerPanic: evidence.learnerPanic || inLearnerCheck };
}

/** The goroutine that panicked stands first; what the others were doing, as in a dump after a signal, explains nothing. */
function firstGoroutine(lines: readonly string[]): readonly string[] {
  const begins = lines.flatMap((line, index) => (line.startsWith('goroutine ') ? [index] : []));
  return lines.slice(0, begins[1] ?? lines.length);
}

function addFact(evidence: Evidence, fact: LogFact, line: LogLine): Evidence {
  switch (fact.kind) {
    case 'serving':
      return { ...evidence, served: true };
    case 'starting':
      return { ...evidence, version: fact.version, dataDir: fact.dataDir };
    case 'memberRemoved':
      return isOwnRemoval(fact) ? addOwnRemoval(evidence, fact.memberId, fact.clusterId, line) : evidence;
    case 'permanentlyRemoved':
      return addPermanentlyRemoved(evidence, fact.ends, fact.saidBy);
    case 'learnerPanic':
      return { ...evidence, learnerPanic: true };
    case 'dbLocked':
      return { ...evidence, dbLocked: true };
    case 'dbOpened':
      return { ...evidence, dbLocked: false };
    case 'walRepaired':
      return { ...evidence, walRepaired: true };
    case 'clusterIdMismatch':
      return { ...evidence, clusterIdMismatch: true };
    case 'signalReceived':
      return { ...evidence, signalReceived: fact.signal };
    default:
      return evidence;
  }
}

function addOwnRemoval(
  evidence: Evidence,
  memberId: MemberId | undefined,
  clusterId: ClusterId | undefined,
  line: LogLine,
): Evidence {
  if (evidence.ownRemoval !== undefined || memberId === undefined) return evidence;
  return { ...evidence, ownRemoval: { memberId, clusterId, text: cut(`${line.message} (${line.at})`) } };
}

/** A single peer that refuses us does not end etcd yet: only the line with which it ends counts as `permanentlyRemoved`. */
function addPermanentlyRemoved(evidence: Evidence, ends: boolean, saidBy: MemberId | undefined): Evidence {
  const known = evidence.removedSaidBy;
  const isNew = saidBy !== undefined && !known.includes(saidBy) && known.length < maxPeers;
  return {
    ...evidence,
    permanentlyRemoved: evidence.permanentlyRemoved || ends,
    removedSaidBy: isNew ? [...known, saidBy] : known,
  };
}

/** Lines that carry both ids name this member; 0 stands there while it does not know itself yet. */
function addIdentity(evidence: Evidence, line: LogLine): Evidence {
  if (evidence.memberId !== undefined && evidence.clusterId !== undefined) return evidence;
  const memberId = parseId(textField(line, 'local-member-id') ?? '');
  const clusterId = parseId(textField(line, 'cluster-id') ?? '');
  if (!memberId || !clusterId) return evidence;
  return { ...evidence, memberId, clusterId };
}

function addReason(evidence: Evidence, line: LogLine): Evidence {
  const level = reasonLevel(line);
  if (level === undefined) return evidence;
  const error = textField(line, 'error');
  const reason: Reason = { level, text: cut(error === undefined ? line.message : `${line.message}: ${error}`) };
  return { ...evidence, reasons: [...evidence.reasons, reason].slice(-maxReasons) };
}

/** Lines with which etcd gives up. Warnings of a running etcd are no reasons, however bad they sound. */
function reasonLevel(line: LogLine): Reason['level'] | undefined {
  if (line.etcdLevel === 'panic') return 'panic';
  if (line.level === 'fatal') return 'fatal';
  if (line.format === 'capnslog' && line.message.startsWith('error verifying flags')) return 'refusal';
  return refusals.has(line.message) ? 'refusal' : undefined;
}

/** Messages below `fatal` that are followed by etcd's end with code 1. */
const refusals: ReadonlySet<string> = new Set(['failed to verify flags', 'failed to start etcd']);

function lastLines(evidence: Evidence, entry: LogEntry): readonly string[] {
  const text = entry.kind === 'line' ? entry.line.raw : entry.block.first;
  if (text === '') return evidence.lastLines;
  return [...evidence.lastLines, cut(text)].slice(-maxLastLines);
}

/** The end is kept as well: etcd puts the reason behind a long list of members. */
function cut(text: string): string {
  if (text.length <= maxTextChars) return text;
  const tail = Math.floor(maxTextChars / 3);
  return `${text.slice(0, maxTextChars - tail - 1)}…${text.slice(-tail)}`;
}
