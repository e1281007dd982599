/** @pure file: all that is reported upstream, as one union. A new report begins as a new line here. */

/** How a reported fact is known: seen itself, or concluded where etcd cannot prove it. */
export type Certainty = 'observed' | 'inferred';

/** A member as it stands in a report; identifiers in hex. */
export interface ReportedMember {
  readonly memberId: string;
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly learner: boolean;
}

/** What happened, with the facts that belong to it. Every report also names node, cluster and own member (see upstream/). */
export type AgentEvent =
  // membership: changes this node takes part in or sees
  | { readonly kind: 'member.added'; readonly member: ReportedMember }
  | { readonly kind: 'member.promoted'; readonly member: ReportedMember }
  | { readonly kind: 'member.urlsChanged'; readonly member: ReportedMember; readonly before: readonly string[] }
  | {
      readonly kind: 'member.removed';
      readonly member: ReportedMember;
      /** True if the removed member is the one of this node. */
      readonly self: boolean;
      /** What proves it, in words: the log line, the lists, the operator. */
      readonly evidence: readonly string[];
      /** etcd's end, if it ended of this: exit class, code, signal, and whether the IsLocalMemberLearner panic was seen. */
      readonly exit?: ReportedExit;
    }
  | { readonly kind: 'member.removalUnconfirmed'; readonly memberId: string; readonly evidence: readonly string[] }
  | { readonly kind: 'leader.changed'; readonly leaderId: string; readonly before: string; readonly term: string }
  // the process
  | { readonly kind: 'process.started'; readonly life: number; readonly pid: number; readonly version: string }
  | { readonly kind: 'process.adopted'; readonly life: number; readonly pid: number }
  | { readonly kind: 'process.ready'; readonly life: number; readonly memberId: string; readonly clusterId: string }
  | { readonly kind: 'process.exited'; readonly life: number; readonly exit: ReportedExit }
  | { readonly kind: 'process.restarting'; readonly class: string; readonly delayMs: number; readonly restarts: number }
  | { readonly kind: 'process.held'; readonly class: string; readonly because: string }
  | { readonly kind: 'process.unresponsive'; readonly life: number; readonly because: string }
  | { readonly kind: 'process.restartBudgetExhausted'; readonly class: string; readonly restarts: number }
  // cluster and data
  | {
      readonly kind: 'cluster.founded';
      readonly clusterId: string;
      readonly memberId: string;
      readonly foundingId: string;
    }
  | { readonly kind: 'member.joined'; readonly clusterId: string; readonly memberId: string }
  | { readonly kind: 'change.resolved'; readonly change: string; readonly applied: boolean | null }
  | { readonly kind: 'data.adopted'; readonly clusterId: string; readonly memberId: string }
  | { readonly kind: 'data.archived'; readonly memberId: string; readonly path: string; readonly reason: string }
  | { readonly kind: 'data.archiveRemoved'; readonly path: string; readonly because: string }
  | { readonly kind: 'volume.missing'; readonly path: string }
  | { readonly kind: 'volume.returned'; readonly path: string }
  // the role
  | { readonly kind: 'role.accepted'; readonly role: string; readonly epoch: number; readonly generation: number }
  | { readonly kind: 'role.refused'; readonly because: string }
  | { readonly kind: 'role.converged'; readonly role: string }
  | { readonly kind: 'role.blocked'; readonly by: string; readonly because: string }
  // operators
  | { readonly kind: 'operator.command'; readonly command: string; readonly detail: string }
  | { readonly kind: 'alarm.raised'; readonly alarm: string; readonly detail: string }
  | { readonly kind: 'alarm.cleared'; readonly alarm: string };

/** How etcd ended, as it is reported. */
export interface ReportedExit {
  /** One of the classes of docs/exit-classes.md. */
  readonly class: string;
  readonly code: number | null;
  readonly signal: string | null;
  /** True if the trace of the IsLocalMemberLearner panic is in the log of this life. */
  readonly panicSeen: boolean;
  readonly because: string;
}
