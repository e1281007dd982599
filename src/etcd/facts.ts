/** @pure file: what a line of etcd's log says, as far as the agent needs it. */

import { type LogLine, listField, textField } from './log-line.ts';
import { type ClusterId, type MemberId, parseId } from './member.ts';

/**
 * One thing that a line says. etcd replays its log at each start, so changes of membership are news only after `serving`.
 * Ids that a version does not print, or prints as 0 (it does not know itself yet), are undefined.
 */
export type LogFact =
  /** It serves clients. 3.4 prints only the line with the address; since 3.5 `ready to serve client requests` comes first. */
  | { readonly kind: 'serving'; readonly secure: boolean | undefined }
  | { readonly kind: 'starting'; readonly version: string; readonly initialized: boolean; readonly dataDir: string }
  /** It knows who it is. */
  | { readonly kind: 'identity'; readonly memberId: MemberId; readonly clusterId: ClusterId }
  | MembershipFact
  /** raft's own view. `undefined`: there is no leader. */
  | { readonly kind: 'leader'; readonly leaderId: MemberId | undefined; readonly term: bigint }
  /** A peer, or its own log, told it that it is no member: no proof (a stale member forced into a cluster of its own says so too). */
  | { readonly kind: 'permanentlyRemoved'; readonly saidBy: MemberId | undefined; readonly ends: boolean }
  /** The panic of IsLocalMemberLearner was logged. `/readyz` logs it too and survives: alone it is no crash. */
  | { readonly kind: 'learnerPanic' }
  | { readonly kind: 'walRepaired' }
  | { readonly kind: 'snapshotBroken'; readonly path: string }
  | { readonly kind: 'zombieRemoved'; readonly memberId: MemberId | undefined }
  /** The directory is held by another process: etcd waits without an end. */
  | { readonly kind: 'dbLocked' }
  | { readonly kind: 'dbOpened' }
  /** Printed by 3.4 and 3.5 only: from 3.6 on an alarm is seen by asking. */
  | {
      readonly kind: 'alarm';
      readonly raised: boolean;
      readonly alarm: string;
      readonly memberId: MemberId | undefined;
    }
  | { readonly kind: 'clusterIdMismatch'; readonly otherClusterId: ClusterId | undefined }
  | { readonly kind: 'clockDrift'; readonly peerId: MemberId | undefined }
  | { readonly kind: 'clusterVersion'; readonly version: string }
  | { readonly kind: 'publishFailed' }
  /** It heard a signal; only after it was ready, before that it dies without a word. */
  | { readonly kind: 'signalReceived'; readonly signal: string }
  | { readonly kind: 'closed' };

/** A change of membership as this member applied it. */
export interface MembershipFact {
  readonly kind: 'memberAdded' | 'memberRemoved' | 'memberPromoted' | 'memberUpdated';
  readonly memberId: MemberId | undefined;
  readonly localId: MemberId | undefined;
  readonly clusterId: ClusterId | undefined;
  readonly peerUrls: readonly string[];
  /** Undefined on versions that do not print it. */
  readonly learner: boolean | undefined;
}

/** @pure What `line` says, or undefined if it is nothing that we need. */
export function factOf(line: LogLine): LogFact | undefined {
  if (line.format !== 'zap' && line.format !== 'torn') return undefined;
  const read = byMessage.get(line.message);
  if (read !== undefined) return read(line);
  return raftFact(line.message) ?? removedFact(line);
}

/** @pure True if the member that logged the line applied its own removal. This is proof, a replay included: ids are never used again. */
export function isOwnRemoval(fact: MembershipFact): boolean {
  return fact.kind === 'memberRemoved' && fact.memberId !== undefined && fact.memberId === fact.localId;
}

type Reader = (line: LogLine) => LogFact | undefined;

// "applied a configuration change through raft" is left out on purpose: etcd prints it for a refused change as well.
const secure: Reader = () => ({ kind: 'serving', secure: true });
const insecure: Reader = () => ({ kind: 'serving', secure: false });
const removed: Reader = (line) => membership('memberRemoved', line, 'removed-remote-peer');
const mismatch = (field: string): Reader => {
  return (line) => ({ kind: 'clusterIdMismatch', otherClusterId: idField(line, field) });
};

/** By etcd's text, which is the stable key. Source: docs/etcd-facts.md, "message stability". */
const byMessage: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['ready to serve client requests', () => ({ kind: 'serving', secure: undefined })],
  ['serving client traffic insecurely; this is strongly discouraged!', insecure],
  ['serving insecure client requests; this is strongly discouraged!', insecure],
  ['serving client traffic securely', secure],
  ['starting an etcd server', starting],
  ['starting local member', identity],
  ['restarting local member', identity],
  ['added member', (line) => membership('memberAdded', line, 'added-peer')],
  ['removed member', removed],
  ['skipped removing already removed member', removed],
  ['ignore already removed member', removed],
  ['promote member', (line) => membership('memberPromoted', line, 'promoted-member')],
  ['updated member', (line) => membership('memberUpdated', line, 'updated-remote-peer')],
  ['server error', serverError],
  [
    'data-dir used by this member must be removed',
    () => ({ kind: 'permanentlyRemoved', saidBy: undefined, ends: true }),
  ],
  ['failed to find local ID in cluster members', learnerPanic],
  ['repaired WAL', () => ({ kind: 'walRepaired' })],
  ['renamed to a broken snap file', (line) => ({ kind: 'snapshotBroken', path: textField(line, 'path') ?? '' })],
  ['Removing zombie member from v3store', zombie],
  ['db file is flocked by another process, or taking too long', () => ({ kind: 'dbLocked' })],
  ['opened backend db', () => ({ kind: 'dbOpened' })],
  ['alarm raised', (line) => alarm(line, true)],
  ['alarm disarmed', (line) => alarm(line, false)],
  ['request cluster ID mismatch', mismatch('remote-peer-cluster-id')],
  ['request sent was ignored by remote peer due to cluster ID mismatch', mismatch('remote-peer-cluster-id')],
  ['request sent was ignored due to cluster ID mismatch', mismatch('remote-peer-cluster-id')],
  ['prober found high clock drift', (line) => ({ kind: 'clockDrift', peerId: idField(line, 'remote-peer-id') })],
  ['set initial cluster version', clusterVersion],
  ['cluster version is updated', clusterVersion],
  ['failed to publish local member to cluster through raft', () => ({ kind: 'publishFailed' })],
  ['received signal; shutting down', (line) => ({ kind: 'signalReceived', signal: textField(line, 'signal') ?? '' })],
  ['closed etcd server', () => ({ kind: 'closed' })],
]);

function starting(line: LogLine): LogFact {
  const initialized = line.fields['member-initialized'] === true;
  const dataDir = textField(line, 'data-dir') ?? '';
  return { kind: 'starting', version: textField(line, 'etcd-version') ?? '', initialized, dataDir };
}

function identity(line: LogLine): LogFact | undefined {
  const memberId = idField(line, 'local-member-id');
  const clusterId = idField(line, 'cluster-id');
  return memberId === undefined || clusterId === undefined ? undefined : { kind: 'identity', memberId, clusterId };
}

/** `prefix` is how etcd names the fields about the other member: `added-peer` → `added-peer-id`, `added-peer-peer-urls`, … */
function membership(kind: MembershipFact['kind'], line: LogLine, prefix: string): MembershipFact {
  const urls = listField(line, prefix === 'added-peer' ? 'added-peer-peer-urls' : `${prefix}-urls`);
  const learner = line.fields[`${prefix}-is-learner`];
  return {
    kind,
    memberId: idField(line, `${prefix}-id`),
    localId: idField(line, 'local-member-id'),
    clusterId: idField(line, 'cluster-id'),
    peerUrls: urls,
    learner: typeof learner === 'boolean' ? learner : undefined,
  };
}

function zombie(line: LogLine): LogFact {
  return { kind: 'zombieRemoved', memberId: idField(line, 'member-id') ?? idField(line, 'memberID') };
}

function serverError(line: LogLine): LogFact | undefined {
  return saysRemoved(line) ? { kind: 'permanentlyRemoved', saidBy: undefined, ends: true } : undefined;
}

/** A peer refused our stream because it knows us as removed; etcd ends a moment later. */
function removedFact(line: LogLine): LogFact | undefined {
  if (!line.message.startsWith('peer became inactive') || !saysRemoved(line)) return undefined;
  return { kind: 'permanentlyRemoved', saidBy: idField(line, 'peer-id'), ends: false };
}

function saysRemoved(line: LogLine): boolean {
  return textField(line, 'error')?.includes('the member has been permanently removed from the cluster') ?? false;
}

function learnerPanic(line: LogLine): LogFact | undefined {
  return line.level === 'fatal' ? { kind: 'learnerPanic' } : undefined;
}

function alarm(line: LogLine, raised: boolean): LogFact {
  return { kind: 'alarm', raised, alarm: textField(line, 'alarm') ?? '', memberId: idField(line, 'from') };
}

function clusterVersion(line: LogLine): LogFact {
  return { kind: 'clusterVersion', version: textField(line, 'cluster-version') ?? '' };
}

/** `raft.node: ID elected leader ID at term N`, `… changed leader from ID to ID …`, `… lost leader ID …` */
function raftFact(message: string): LogFact | undefined {
  const match =
    /^raft\.node: [0-9a-f]+ (elected leader ([0-9a-f]+)|changed leader from [0-9a-f]+ to ([0-9a-f]+)|lost leader [0-9a-f]+) at term (\d+)$/.exec(
      message,
    );
  if (match === null) return undefined;
  const leader = match[2] ?? match[3];
  return { kind: 'leader', leaderId: leader === undefined ? undefined : parseId(leader), term: BigInt(match[4] ?? 0) };
}

/** An id in hex; 0 is etcd's word for "not known yet". */
function idField(line: LogLine, name: string): bigint | undefined {
  const text = textField(line, name);
  const id = text === undefined ? undefined : parseId(text);
  return id === 0n ? undefined : id;
}
