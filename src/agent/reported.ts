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
  /** Own members whose removal was reported as unconfirmed. */
  readonly unconfirmed: readonly string[];
  readonly archivedPaths: readonly string[];
  readonly foundedClusters: readonly string[];
}

export const nothingReported: Reported = {
  members: undefined,
  leaderId: '',
  exitedLife: 0,
  readyLife: 0,
  removedSelves: [],
  unconfirmed: [],
  archivedPaths: [],
  foundedClusters: [],
};

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
      return { ...reported, readyLife: Math.max(reported.readyLife, event.life) };
    case 'data.archived':
      return { ...reported, archivedPaths: push(reported.archivedPaths, event.path) };
    case 'cluster.founded':
      return { ...reported, foundedClusters: push(reported.foundedClusters, event.clusterId) };
    default:
      return reported;
  }
}

function push(list: readonly string[], entry: string): readonly string[] {
  return list.includes(entry) ? list : [...list, entry].slice(-keptEntries);
}
