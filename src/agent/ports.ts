/**
 * What the agent needs of the world: its child, the cluster, the link upstream. The real parts are joined in
 * cli/wire.ts; a simulator brings its own. Nothing here names a library.
 */
import type { Asked } from '../etcd/exit.ts';
import type { ClusterId, Member, MemberId, MemberList } from '../etcd/member.ts';
import type { NamedKeys } from '../etcd/named-call.ts';
import type { Certainty } from './events.ts';

/** The supervised etcd. */
export interface ChildPort {
  view(): ChildView;
  /** Starts a new life. Throws an AgentError if it is refused (somebody holds the lock, the keeper cannot run). */
  start(order: StartOrder): Promise<void>;
  /** TERM, grace, KILL; returns once TERM is sent. The end arrives as a change of {@link ChildPort.view}. */
  stop(order: StopOrder): Promise<void>;
  /** Makes the child write its stacks to its log (SIGQUIT), which ends it; KILL after the grace. */
  dump(order: StopOrder): Promise<void>;
  /** CPU and I/O so far of the living child, and its kernel state; undefined if they cannot be read. */
  activity(): Activity | undefined;
}

export interface StartOrder {
  readonly binary: string;
  readonly arguments: readonly string[];
}

/** An order to end the child. */
export interface StopOrder {
  /** Time from the first signal to KILL. Unit: ms. */
  readonly graceMs: number;
  /** Recorded before the signal, so that the end is understood even if the agent dies meanwhile. */
  readonly why: 'stop' | 'stuck' | 'dataLocked';
  readonly because: string;
}

export interface ChildView {
  readonly phase: 'down' | 'starting' | 'ready' | 'stopping' | 'killing' | 'unknown';
  /** Why the phase is unknown; empty otherwise. */
  readonly because: string;
  /** What hinders an ordered end (it outlives KILL, a signal could not be sent); empty if nothing does. */
  readonly trouble: string;
  /** Time without log, CPU or I/O of the living child. Unit: ms; undefined if none lives or it is not known. */
  readonly idleMs: number | undefined;
  /** The newest life, 0 if there never was one. */
  readonly life: number;
  readonly pid: number | undefined;
  readonly adopted: boolean;
  /** When the newest life began and ended (wall time, ms since 1970); undefined where not known or not yet. */
  readonly startedAtMs: number | undefined;
  readonly readyAtMs: number | undefined;
  /** How long the newest life has been ready to this agent, by the monotonic clock; it stands still at its end. Unit: ms. */
  readonly readyMs: number;
  readonly end: ChildEnd | undefined;
}

/** How a life ended. */
export interface ChildEnd {
  readonly life: number;
  readonly exit:
    | { readonly kind: 'code'; readonly code: number }
    | { readonly kind: 'signal'; readonly name: string }
    | { readonly kind: 'unknown'; readonly because: string };
  /** What we did to end it, recorded before it was done. */
  readonly asked: Asked;
  /** Wall time, ms since 1970; undefined if nobody recorded it. */
  readonly endedAtMs: number | undefined;
}

/** `state` as in /proc/PID/stat: R, S, D, T, Z. */
export interface Activity {
  readonly state: string;
  readonly cpuTicks: number;
  readonly ioBytes: number | undefined;
}

/** The cluster, asked at one endpoint at a time; each call has a deadline and throws on silence. */
export interface ClusterPort {
  /** The member list as `endpoint` (a client URL) gives it. */
  memberList(
    endpoint: string,
    options: { readonly linearizable: boolean; readonly timeoutMs: number },
  ): Promise<MemberList>;
  /** Who answers at a peer URL, by its local view; for a founder that looks at its fellow founders. */
  peerCluster(
    peerUrl: string,
    timeoutMs: number,
  ): Promise<{ readonly clusterId: ClusterId; readonly memberIds: readonly MemberId[] }>;
  /** Status: the call that can kill a member that is being removed. */
  status(endpoint: string, timeoutMs: number): Promise<MemberStatusAnswer>;
  /** The metric etcd_server_is_leader of the local member. */
  isLeader(timeoutMs: number): Promise<boolean>;
  moveLeader(endpoint: string, target: MemberId, timeoutMs: number): Promise<void>;
  /** The members that the one at `endpoint` has a living connection to; undefined if its metrics do not say. */
  activePeers(endpoint: string, timeoutMs: number): Promise<ReadonlySet<MemberId> | undefined>;
  /**
   * The four changes. An error whose outcome is `unknown` (etcd/error-table.ts) says nothing: the change may have been, or
   * may yet be, applied.
   */
  addLearner(endpoint: string, peerUrl: string, timeoutMs: number): Promise<Member>;
  promoteMember(endpoint: string, id: MemberId, timeoutMs: number): Promise<void>;
  removeMember(endpoint: string, id: MemberId, timeoutMs: number): Promise<void>;
  updateMember(endpoint: string, id: MemberId, peerUrls: readonly string[], timeoutMs: number): Promise<void>;
  /** Keys of our own, as etcd at `endpoint` has them: reads are linearizable. */
  keys(endpoint: string): KeysPort;
}

/** Keys and values; see EtcdKeys. Every failure of etcd has a name (etcd/errors.ts). */
export type KeysPort = NamedKeys;

export interface MemberStatusAnswer {
  readonly memberId: MemberId;
  readonly clusterId: ClusterId;
  readonly leader: MemberId;
  readonly isLearner: boolean;
  readonly raftTerm: bigint;
  readonly raftIndex: bigint;
  readonly raftAppliedIndex: bigint;
  readonly dbSizeBytes: bigint;
  readonly version: string;
  readonly errors: readonly string[];
}

/** The way upstream: what is accepted here is on disk and will arrive. */
export interface OutboxPort {
  /** Throws an AgentError if the disk refuses: then the fact is not accepted, and the step that needed it is not taken. */
  append(fact: NewFact): FactPlace;
  /** What was accepted after a place (undefined: from the beginning), oldest first. */
  acceptedAfter(place: FactPlace | undefined): Iterable<AcceptedFact>;
}

/** A place in the history of reports. */
export interface FactPlace {
  readonly stream: string;
  readonly seq: number;
}

export interface AcceptedFact extends FactPlace {
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface NewFact {
  readonly kind: string;
  readonly certainty: Certainty;
  /** When it was noticed (ISO 8601, UTC). */
  readonly at: string;
  /** Membership facts are kept when others must go. */
  readonly important: boolean;
  /** The own cluster and member, in hex, where they are known. */
  readonly cluster?: string;
  readonly member?: string;
  readonly data: Readonly<Record<string, unknown>>;
}
