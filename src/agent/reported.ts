/** @pure file: what upstream has been told so far. It is the fold of the facts that were accepted by the outbox. */

import type { AgentEvent, ReportedMember } from './events.ts';

/** The last reported state. Stored with the sequence number up to which facts are counted in; the rest is folded in at start. */
export interface Reported {
  /** Members as upstream knows them, by id in hex. Undefined: no list was ever reported. */
  readonly members: Readonly<Record<string, ReportedMember>> | undefined;
  readonly leaderId: string;
  /** The newest life whose end was reported. */
  readonly exitedLife: number;
  /** The newest life whose readiness was reported. */
  readonly readyLife: number;
  /** Ids of own members whose removal was reported (`self`). */
  readonly removedSelves: readonly string[];
  /** Own members whose removal was reported as unconfirmed, and that were neither ready nor spoken for by an operator since. */
  readonly unconfirmed: readonly string[];
  readonly archivedPaths: readonly string[];
  /** Archives of which upstream was told that they are removed. */
  readonly removedArchives: readonly string[];
  readonly foundedClusters: readonly string[];
  /** Alarms that upstream takes for raised. */
  readonly alarms: readonly string[];
  /** The data root that upstream takes for missing; empty if none. */
  readonly missingVolume: string;
  /** What upstream was last told of the role document, and of its fulfilment; see {@link roleDocument} and {@link rolePlan}. */
  readonly roleDocument: string;
  readonly rolePlan: string;
}

export const nothingReported: Reported = {
  members: undefined,
  leaderId: '',
  exitedLife: 0,
  readyLife: 0,
  removedSelves: [],
  unconfirmed: [],
  archivedPaths: [],
  removedArchives: [],
  foundedClusters: [],
  alarms: [],
  missingVolume: '',
  roleDocument: '',
  rolePlan: '',
};

type EventOf<Kind extends AgentEvent['kind']> = Extract<AgentEvent, { readonly kind: Kind }>;

/** @pure What became of a role document, as one comparable text. */
export function roleDocument(event: EventOf<'role.accepted' | 'role.refused'>): string {
  if (event.kind === 'role.refused') return `refused: ${event.because}`;
  return `accepted: ${event.role} ${event.epoch}.${event.generation}`;
}

/** @pure Whether the role is fulfilled, or why not, as one comparable text: numbers that change by the second are no news. */
export function rolePlan(event: EventOf<'role.converged' | 'role.blocked'>): string {
  return event.kind === 'role.blocked'
    ? `blocked: ${event.by}: ${event.because.replace(/\b\d+(\.\d+)?\b/g, '#')}`
    : `converged: ${event.role}`;
}

/** How many entries each of the lists of ids and paths keeps. */
const keptEntries = 64;

/** @pure The reported state after one more fact. */
export function withFact(reported: Reported, event: AgentEvent): Reported {
  switch (event.kind) {
    case 'member.added':
    case 'member.promoted':
    case 'member.urlsChanged':
      return { ...reported, members: { ...reported.members, [event.member.memberId]: event.member } };
    case 'member.removed': {
      const { [event.member.memberId]: _gone, ...members } = reported.members ?? {};
      if (!event.self) return { ...reported, members };
      return { ...reported, members, removedSelves: push(reported.removedSelves, event.member.memberId) };
    }
    case 'member.removalUnconfirmed':
      return { ...reported, unconfirmed: push(reported.unconfirmed, event.memberId) };
    case 'leader.changed':
      return { ...reported, leaderId: event.leaderId };
    case 'process.exited':
      return { ...reported, exitedLife: Math.max(reported.exitedLife, event.life) };
    case 'process.ready':
      return {
        ...reported,
        readyLife: Math.max(reported.readyLife, event.life),
        unconfirmed: without(reported.unconfirmed, event.memberId),
      };
    case 'operator.command':
      if (event.command !== 'reject-removal') return reported;
      return { ...reported, unconfirmed: without(reported.unconfirmed, event.detail) };
    case 'data.archived':
      return { ...reported, archivedPaths: push(reported.archivedPaths, event.path) };
    case 'data.archiveRemoved':
      return { ...reported, removedArchives: push(reported.removedArchives, event.path) };
    case 'cluster.founded':
      return { ...reported, foundedClusters: push(reported.foundedClusters, event.clusterId) };
    case 'alarm.raised':
      return { ...reported, alarms: push(reported.alarms, event.alarm) };
    case 'alarm.cleared':
      return { ...reported, alarms: without(reported.alarms, event.alarm) };
    case 'volume.missing':
      return { ...reported, missingVolume: event.path };
    case 'volume.returned':
      return { ...reported, missingVolume: '' };
    case 'role.accepted':
    case 'role.refused':
      return { ...reported, roleDocument: roleDocument(event) };
    case 'role.converged':
    case 'role.blocked':
      return { ...reported, rolePlan: rolePlan(event) };
    default:
      return reported;
  }
}

function without(list: readonly string[], entry: string): readonly string[] {
  return list.filter((one) => one !== entry);
}

function push(list: readonly string[], entry: string): readonly string[] {
  return list.includes(entry) ? list : [...list, entry].slice(-keptEntries);
}
