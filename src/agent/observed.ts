/** @pure file: all that a turn of the agent knows. Where something is asked, `unknown` is a value of its own, never "absent". */

import type { AcceptedRisk } from '../etcd/accepted-risk.ts';
import type { ClusterId, Member, MemberId, MemberList } from '../etcd/member.ts';
import type { LearnerConsent, SafetyQuestion } from '../etcd/safety-question.ts';

export interface Observed {
  readonly supervision: Supervision;
  readonly volume: Volume;
  readonly intent: RunIntent;
  /** True while an operator has paused membership changes and health restarts. */
  readonly paused: boolean;
  readonly founding: FoundingPhase;
  readonly identity: Identity | undefined;
  readonly data: DataSeen;
  readonly process: ProcessSeen;
  readonly removal: RemovalSeen;
  readonly peers: PeersSeen;
  readonly start: StartPermission;
  /** What stands in the way of any start: missing TLS files, a wrong binary, refused flags. Empty if nothing does. */
  readonly preflight: readonly StartProblem[];
  readonly role: RoleSeen;
  readonly join: JoinSeen;
  readonly cluster: ClusterSeen;
  /** A change of this node was interrupted: its record may stand in etcd. */
  readonly leftRecord: boolean;
}

/** Whether the agent's own records can be trusted. Without them etcd is run, and membership is not touched. */
export type Supervision =
  | { readonly kind: 'full' }
  | {
      readonly kind: 'superviseOnly';
      readonly because: string;
      /** The records are not damaged but gone: `adopt` writes them anew. */
      readonly lost?: true;
    };

/** The file system that carries the data. `unused`: nothing of ours was ever put there. */
export type Volume =
  | { readonly kind: 'unused' }
  | { readonly kind: 'present' }
  | { readonly kind: 'missing'; readonly path: string }
  | { readonly kind: 'unknown'; readonly because: string };

/**
 * Whether etcd is to run, as it stands in a durable file of its own. `unknown`: no copy of it can be read. `shutdown`: the machine
 * goes down, which stands in a file that a reboot clears.
 */
export interface RunIntent {
  readonly kind: 'run' | 'stopped' | 'held' | 'removed' | 'unknown' | 'shutdown';
  readonly because: string;
}

/** How far this node's one founding has come; it never goes back. `prepared`: a nonce exists, no list yet. */
export type FoundingPhase = 'none' | 'prepared' | 'pending' | 'started' | 'done';

/** Which member of which cluster this node is, as recorded. */
export interface Identity {
  readonly clusterId: ClusterId;
  readonly memberId: MemberId;
  readonly name: string;
  readonly peerUrl: string;
  /** It has no vote yet, as far as this node has read. */
  readonly isLearner: boolean;
  /** The voters of the last linearizable list that this node read, itself included if it voted. */
  readonly lastVoters: readonly Member[];
}

/** What lies in the data directory. */
export type DataSeen =
  | { readonly kind: 'absent' }
  | { readonly kind: 'empty' }
  /** Only the identity file that a founding wrote; etcd has put nothing there yet. */
  | { readonly kind: 'prepared' }
  /**
   * A founder's log in which nothing is committed: etcd was killed between making it and its first write. Nothing was voted
   * for or acknowledged; but etcd takes it for a member's log that names no voters, and would wait for ever.
   */
  | { readonly kind: 'emptyLog' }
  | {
      readonly kind: 'member';
      readonly clusterId: ClusterId;
      readonly memberId: MemberId;
      /** Why its log is older than the member was; not there if it is not. */
      readonly regression?: string;
    }
  | { readonly kind: 'broken'; readonly because: string }
  /** etcd's files without its log: started, it would serve and silently lose what it acknowledges. */
  | { readonly kind: 'logLost'; readonly because: string }
  | { readonly kind: 'unknown'; readonly because: string };

/** The child process, as the supervisor sees it. */
export type ProcessSeen =
  | { readonly kind: 'down' }
  | {
      readonly kind: 'up';
      readonly phase: 'starting' | 'ready' | 'stopping' | 'killing';
      readonly life: number;
      /** Why it has to be ended although nobody asked for it; empty if it has not. */
      readonly ill: '' | 'stuck' | 'dataLocked';
    }
  /** A process holds our data directory that is not proven to be ours, or whose end cannot be seen. Nothing is started. */
  | { readonly kind: 'unknown'; readonly because: string };

/** What is known of a removal of this node's member by others. */
export type RemovalSeen =
  | { readonly kind: 'none' }
  /** Somebody says so, and it is not proven. */
  | {
      readonly kind: 'suspected';
      readonly because: string;
      /** Row 2 of the exit classes: may etcd be started to find out? */
      readonly start: 'now' | 'wait' | 'forbidden';
    }
  | {
      readonly kind: 'proven';
      readonly evidence: readonly string[];
      /** etcd has ended, or had a moment to: its own end belongs into the report. */
      readonly ripe: boolean;
      /** The tombstone is written and the removal is reported. */
      readonly recorded: boolean;
      /** True once etcd had its time to leave by itself (5 s). */
      readonly exitOverdue: boolean;
      /** The data directory of the removed member lies in the archive. */
      readonly archived: boolean;
      /** It was the last member, and its cluster ended with it. */
      readonly retired: boolean;
    };

/** What the other members said when they were asked before a start. */
export type PeersSeen =
  /** There is nobody to ask: no other voter is known. */
  | { readonly kind: 'nobody' }
  | { readonly kind: 'notAsked' }
  | { readonly kind: 'asked'; readonly lists: readonly MemberList[]; readonly silent: number };

/** What the restart policy says of the next start. */
export type StartPermission =
  | { readonly kind: 'now'; readonly because: string }
  /** Due later; `inMs` from this observation. */
  | { readonly kind: 'later'; readonly inMs: number; readonly because: string }
  /** Not before somebody or something changed. `recorded`: the run intent says so already. */
  | {
      readonly kind: 'hold';
      readonly class: string;
      readonly until: string;
      readonly because: string;
      readonly recorded: boolean;
    };

export interface StartProblem {
  readonly what: string;
  readonly hint: string;
}

/** The role this node has been given. */
export type RoleSeen =
  | { readonly kind: 'unknown'; readonly because: string }
  | {
      readonly kind: 'known';
      readonly role: 'consensus-member' | 'leaving' | 'none';
      readonly grantId: string;
      /** True if this very grant ended with the removal of its member: only a new grant id counts again. */
      readonly spent: boolean;
      /** Undefined: the role document names none. */
      readonly clusterId: ClusterId | undefined;
      /** Whether it names anybody to ask. */
      readonly hasEndpoints: boolean;
      readonly accepted: readonly AcceptedRisk[];
    };

/** How far this node's latest join has come. */
export type JoinSeen =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'intended' | 'added' | 'started' | 'done' | 'expired';
      readonly clusterId: ClusterId;
      readonly memberId: MemberId | undefined;
      readonly peerUrl: string;
      readonly grantId: string;
      /** For how long this agent has seen it stand there; `started` counts from the adding. Unit: ms. */
      readonly forMs: number;
    };

/** A learner that was added and has not started within this is taken out again by its own node. Unit: ms. */
export const joinExpiresMs = 600_000;
/** After that its node lets others have the slot for as long. Unit: ms. */
export const joinRestsMs = 600_000;

/** @pure The recorded member was added as a learner, and its etcd has not been ready in time. */
export function isOverdue(join: JoinSeen, identity: Pick<Identity, 'memberId'> | undefined): boolean {
  if (identity === undefined || (join.kind !== 'added' && join.kind !== 'started')) return false;
  return join.memberId === identity.memberId && join.forMs >= joinExpiresMs;
}

/**
 * @pure A join has begun that has not become this node's recorded member: a learner of it may be in the list. `identity`: the
 * recorded member, if any; it may be an earlier one.
 */
export function isJoining(join: JoinSeen, identity: Pick<Identity, 'memberId'> | undefined): boolean {
  return join.kind === 'intended' || (join.kind === 'added' && join.memberId !== identity?.memberId);
}

/** What the cluster said when it was asked for a change that is wanted now. `notAsked`: none is. */
export type ClusterSeen =
  | { readonly kind: 'notAsked' }
  | { readonly kind: 'silent'; readonly because: string; readonly hint: string }
  | {
      readonly kind: 'heard';
      /** All that a change is judged by. */
      readonly question: Omit<SafetyQuestion, 'wanted'>;
      /** The peer URL that this node has, or wants. */
      readonly peerUrl: string;
      /** What our learner has shown of itself; undefined for anybody else. */
      readonly consent: LearnerConsent | undefined;
      readonly space: JoinSpace;
      /** For how long our learner has not come nearer to the leader; 0 if it is none. Unit: ms. */
      readonly stalledForMs: number;
    };

/** What a joiner needs, and what there is. Unit: bytes; undefined: not known. */
export interface JoinSpace {
  readonly neededBytes: number;
  readonly freeBytes: number | undefined;
}
