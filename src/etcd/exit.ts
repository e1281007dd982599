/** @pure file: how etcd ended → its class, by a table; the first row that matches wins. */

import type { Evidence } from './evidence.ts';
import { type ExitClass, rowOf } from './exit-class.ts';
import { decisiveTexts, type EtcdExit, isFileFailure, panicSeen } from './exit-reasons.ts';
import { bootstrapTexts, configTexts, corruptTexts, hostTexts, memoryTexts, versionTexts } from './exit-texts.ts';
import type { ClusterId, MemberId, MemberList } from './member.ts';
import { type RemovalProof, removalProof } from './removal-proof.ts';

/** Whether and why we ended it. */
export type Asked =
  | { readonly kind: 'none' }
  /** We sent `signal` last; `afterGrace`: the grace was over and we killed it. `why`: a stop (also one for a restart), or because it was stuck or waited for a lock. */
  | {
      readonly kind: 'signalled';
      readonly signal: string;
      readonly afterGrace: boolean;
      readonly why: 'stop' | 'stuck' | 'dataLocked';
    };

/** What the host said at that moment; undefined is unknown. */
export interface HostEvidence {
  /** Free space where the data lies (`statvfs`, for an unprivileged user). Unit: bytes. */
  readonly freeBytes: number | undefined;
  /** How many processes the kernel has killed for memory in etcd's cgroup during this life. */
  readonly oomKills: number | undefined;
}

/** Everything by which an end is judged. */
export interface EndOfEtcd {
  readonly exit: EtcdExit;
  readonly evidence: Evidence;
  readonly asked: Asked;
  readonly host: HostEvidence;
  readonly lists: readonly MemberList[];
  readonly lastKnownVoters: readonly MemberId[];
  readonly ownId: MemberId | undefined;
  readonly clusterId: ClusterId | undefined;
  readonly ownRemovalJournalled: boolean;
}

/** The verdict. */
export interface ExitVerdict {
  readonly class: ExitClass;
  /** The row of the table, from 1. */
  readonly row: number;
  /** One sentence for an operator. */
  readonly because: string;
  /** The IsLocalMemberLearner panic ended etcd, not only stands in its log. */
  readonly panicSeen: boolean;
  /** What is known of a removal, whatever the class. */
  readonly removalProof: RemovalProof;
  /** It was asked to stop, but ended before it had closed its data: by a signal that was not ours, or killed after the grace. */
  readonly dirty: boolean;
}

/** @pure Classifies one end. */
export function classifyExit(end: EndOfEtcd): ExitVerdict {
  const proof = removalProof(end);
  const judged: Judged = { end, proof, texts: decisiveTexts(end.exit, end.evidence) };
  for (const [name, matches] of rows) {
    const because = matches(judged);
    if (because === undefined) continue;
    const dirty = end.asked.kind !== 'none' && end.exit.kind === 'signal' && end.exit.signal === 'SIGKILL';
    return {
      class: name,
      row: rowOf[name],
      because,
      panicSeen: panicSeen(end.exit, end.evidence),
      removalProof: proof,
      dirty,
    };
  }
  const because = judged.texts[0] ?? `it ended ${describeExit(end.exit)} and said nothing that explains it`;
  return { class: 'unknown', row: rowOf.unknown, because, panicSeen: false, removalProof: proof, dirty: false };
}

/** @pure `with code 2`, `by SIGKILL`. */
export function describeExit(exit: EtcdExit): string {
  if (exit.kind === 'code') return `with code ${exit.code}`;
  return exit.kind === 'signal' ? `by ${exit.signal}` : 'in a way that nobody recorded';
}

interface Judged {
  readonly end: EndOfEtcd;
  readonly proof: RemovalProof;
  /** What etcd gave as the reason of its end, last first. */
  readonly texts: readonly string[];
}

/** The reason why a row matches, or undefined. */
type Row = (judged: Judged) => string | undefined;

const rows: readonly (readonly [ExitClass, Row])[] = [
  ['removed', removed],
  ['removalUnconfirmed', removalUnconfirmed],
  ['stopped', stopped],
  ['staleIdentity', ({ texts }) => texts.find((text) => /tocommit\(\d+\) is out of range/.test(text))],
  ['version', byTexts(versionTexts)],
  ['portInUse', byTexts(['address already in use'])],
  ['host', host],
  ['dataCorrupt', dataCorrupt],
  ['bootstrapRefused', byTexts(bootstrapTexts)],
  ['config', config],
  ['dataLocked', dataLocked],
  ['outOfMemory', outOfMemory],
  ['killed', killed],
  ['crash', crash],
  ['stuck', ({ end }) => (isOurs(end.asked, 'stuck') ? 'it was ended because it was stuck' : undefined)],
];

function removed({ proof }: Judged): string | undefined {
  return proof.kind === 'proven' ? `this member was removed: ${proof.evidence.join('; ')}` : undefined;
}

function removalUnconfirmed({ end, proof }: Judged): string | undefined {
  const { evidence, exit, asked } = end;
  const known = proof.kind === 'unknown' ? 'nobody who could confirm it has answered' : proof.evidence.join('; ');
  if (evidence.permanentlyRemoved) return `etcd was told that it is permanently removed, without proof: ${known}`;
  if (panicSeen(end.exit, end.evidence)) return `etcd did not find itself among the members, without proof: ${known}`;
  if (asked.kind === 'none' && exit.kind === 'code' && exit.code === 0) {
    return `it ended with code 0 without being asked, as a removed member does, without proof: ${known}`;
  }
  return undefined;
}

/** A clean end is the signal that it was sent; code 0 only where etcd is process 1. Dying early while it stops is a stop as well. */
function stopped({ end, texts }: Judged): string | undefined {
  const { asked, exit } = end;
  if (asked.kind === 'none' || asked.why !== 'stop') return undefined;
  const why = 'it was asked to stop';
  if (exit.kind === 'unknown') return texts.length === 0 ? `${why}; how it ended was not recorded` : undefined;
  if (exit.kind === 'code') return exit.code === 0 ? why : undefined;
  if (!stopSignals.has(exit.signal)) return undefined;
  if (exit.signal !== 'SIGKILL') return `${why} and ended by ${exit.signal}`;
  return asked.afterGrace
    ? `${why}, did not end within its grace and was killed`
    : `${why} and was killed meanwhile by somebody else`;
}

function host({ end, texts }: Judged): string | undefined {
  const named = byTexts(hostTexts)({ texts });
  if (named !== undefined) return named;
  const { freeBytes } = end.host;
  const gaveUp = texts[0];
  if (freeBytes === undefined || freeBytes >= diskFullBytes || gaveUp === undefined) return undefined;
  const writing = storageTexts.some((text) => gaveUp.includes(text));
  return writing ? `${gaveUp} (${freeBytes} bytes free)` : undefined;
}

/** A log without records ends 3.7 in a nil pointer while it reads its data; older ones say so in words. */
function dataCorrupt({ end, texts }: Judged): string | undefined {
  const named = byTexts(corruptTexts)({ texts });
  if (named !== undefined) return named;
  const { trace } = end.evidence;
  return trace?.inBootstrap ? `${trace.first} (while it read its data)` : undefined;
}

function config(judged: Judged): string | undefined {
  const { usage } = judged.end.evidence;
  if (usage !== undefined) return usage;
  const { dataDir } = judged.end.evidence;
  return byTexts(configTexts)(judged) ?? judged.texts.find((text) => isFileFailure(text, dataDir));
}

/** It waits silently for the lock, so it ends only when somebody ends it. */
function dataLocked({ end }: Judged): string | undefined {
  if (isOurs(end.asked, 'dataLocked')) return 'another process held its data directory, so it was ended';
  const waited = end.evidence.dbLocked && end.exit.kind !== 'code';
  return waited ? 'it waited for its data directory, which another process held, until it ended' : undefined;
}

function outOfMemory({ end, texts }: Judged): string | undefined {
  const { exit, host: seen } = end;
  const named = byTexts(memoryTexts)({ texts });
  if (named !== undefined) return named;
  if (exit.kind !== 'signal' || exit.signal !== 'SIGKILL' || !seen.oomKills) return undefined;
  return `it was killed for memory by the kernel (${seen.oomKills} in its cgroup)`;
}

function killed({ end }: Judged): string | undefined {
  const { exit, asked } = end;
  if (asked.kind !== 'none' || exit.kind !== 'signal' || !killSignals.has(exit.signal)) return undefined;
  return `it was ended by ${exit.signal}, which was not ours`;
}

function crash({ end }: Judged): string | undefined {
  const { evidence, exit, asked } = end;
  if (isOurs(asked, 'stuck')) return undefined;
  if (evidence.trace !== undefined) return evidence.trace.first;
  if (exit.kind === 'signal' && crashSignals.has(exit.signal)) return `it died of ${exit.signal}`;
  const last = evidence.reasons.at(-1);
  return last?.level === 'panic' && exit.kind === 'code' && exit.code === 2 ? last.text : undefined;
}

function isOurs(asked: Asked, why: 'stuck' | 'dataLocked'): boolean {
  return asked.kind === 'signalled' && asked.why === why;
}

function byTexts(parts: readonly string[]): (judged: Pick<Judged, 'texts'>) => string | undefined {
  return ({ texts }) => texts.find((text) => parts.some((part) => text.includes(part)));
}

/** Below this a disk counts as full for a storage failure without a clear text. Unit: bytes. */
const diskFullBytes = 1024 * 1024;

/** Failures that a full disk causes without naming it. */
const storageTexts = [
  'unexpected fault address',
  'fatal error: fault',
  'SIGBUS',
  'failed to save',
  'failed to commit',
  'WAL',
];

const stopSignals: ReadonlySet<string> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL']);
const killSignals: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']);
const crashSignals: ReadonlySet<string> = new Set([
  'SIGABRT',
  'SIGSEGV',
  'SIGBUS',
  'SIGILL',
  'SIGFPE',
  'SIGQUIT',
  'SIGTRAP',
  'SIGSYS',
]);
