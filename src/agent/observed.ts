/** @pure file: all that a turn of the agent knows. Where something is asked, `unknown` is a value of its own, never "absent". */

import type { ClusterId, Member, MemberId, MemberList } from '../etcd/member.ts';

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

/** Whether etcd is to run, as it stands in a durable file of its own. `unknown`: no copy of it can be read. */
export interface RunIntent {
  readonly kind: 'run' | 'stopped' | 'held' | 'removed' | 'unknown';
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
  | { readonly kind: 'member'; readonly clusterId: ClusterId; readonly memberId: MemberId }
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
    };
