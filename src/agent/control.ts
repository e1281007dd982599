import type { MemberOrder } from './member-orders.ts';
import type { RoleControl } from './role-orders.ts';

/**
 * What an operator can ask of a running agent, or tell it. The local API (a unix socket) offers exactly this, and the
 * commands are thin clients of it. Views are plain JSON: identifiers in hex, times in ISO 8601 UTC, durations in ms.
 */
export interface AgentControl {
  /** What is asked and told about the role. */
  readonly role: RoleControl;
  status(): StatusView;
  /** The plan of a turn taken now; nothing is done. */
  plan(): Promise<PlanView>;
  /** Why the agent is not doing what the role asks for; the last refusals, newest first. */
  why(): WhyView;
  /** Facts that were or will be reported, oldest first, after sequence number `after` (default: the last `limit`). */
  events(query: EventQuery): readonly EventView[];
  /** Calls `listener` for each new fact until `signal` aborts. */
  followEvents(listener: (event: EventView) => void, signal: AbortSignal): void;
  /** Gives up a parked fact that upstream refuses for ever; a gap event takes its place. */
  skipEvent(seq: number, reason: string): Promise<Answer>;
  /** The last lines of etcd's log of one life (default: the newest). */
  logs(query: LogQuery): Promise<readonly string[]>;
  /** Calls `listener` for each new line of etcd's log, of whatever life, until `signal` aborts. */
  followLogs(listener: (line: string) => void, signal: AbortSignal): void;
  /** Stops etcd and keeps it stopped, across reboots, until `start`. Refused if the others are no quorum, unless forced. */
  stop(request: { readonly force: boolean; readonly dryRun: boolean }): Promise<Answer>;
  /** Lets etcd run again; says what comes next. */
  start(request: StartRequest): Promise<Answer>;
  /** The machine goes down: etcd is stopped in order and not started before the next boot. Never refused. */
  shutdown(request: { readonly dryRun: boolean }): Promise<Answer>;
  /** Forbids membership changes and health restarts for `forMs` (default 4 h, at most 7 days). Survives reboots. */
  pause(request: { readonly forMs: number; readonly reason: string }): Promise<Answer>;
  resume(): Promise<Answer>;
  /**
   * Founds a cluster of which this node is the only founder. Refused on a node that was prepared to found with others, unless
   * `alone` says that this is meant.
   */
  found(request: { readonly dryRun: boolean; readonly alone: boolean }): Promise<Answer>;
  /** Makes (or shows again) this founder's durable nonce: the line `name peerURL nonce`. */
  foundPrepare(): Promise<Answer & { readonly line: string }>;
  /** Founds a cluster together with all founders of `lines`; each founder is given the same lines. */
  foundList(request: { readonly lines: readonly string[]; readonly dryRun: boolean }): Promise<Answer>;
  /** Takes over an existing data directory. `newClusterId` allows that the cluster id differs from the recorded one. */
  adopt(request: { readonly dryRun: boolean; readonly newClusterId: string | undefined }): Promise<Answer>;
  /** Settles an unconfirmed removal: yes, member `memberId` (hex) was removed. */
  confirmRemoved(request: { readonly memberId: string }): Promise<Answer>;
  /** Settles an unconfirmed removal: no, member `memberId` (hex) was not removed; etcd may be started again. */
  rejectRemoval(request: { readonly memberId: string }): Promise<Answer>;
  /** Everybody in the cluster, with what each says of itself now. */
  members(): Promise<MembersView>;
  /** Removes a dead member, or a learner that never started. */
  evictMember(request: MemberOrder): Promise<Answer>;
  /** The own member's data is lost or must not run: its id is removed, and the node joins anew. */
  replaceMember(request: MemberOrder): Promise<Answer>;
  /** Gives this node the role of a member, with a new grant; the agent does the rest. */
  join(request: JoinRequest): Promise<Answer>;
  /** Takes the role away: the member hands over and leaves. Refused if the safety check refuses it now. */
  leave(request: LeaveRequest): Promise<Answer>;
  /** Ends the cluster of which this node is the last member, and frees the node to found another one. */
  retire(request: { readonly clusterId: string; readonly dryRun: boolean }): Promise<Answer>;
  /** Reads the configuration file again. A bad one changes nothing. */
  reload(): Promise<Answer>;
  /** The agent's own metrics in Prometheus text format. */
  metrics(): Promise<string>;
}

export interface JoinRequest {
  /** Client URLs of voters; empty: those of the role document. */
  readonly endpoints: readonly string[];
  /** Hex; undefined: whatever cluster answers there. */
  readonly clusterId: string | undefined;
  readonly dryRun: boolean;
}

export interface LeaveRequest {
  readonly acceptZeroTolerance: boolean;
  /** Leaves although the change record cannot be written (NOSPACE). */
  readonly withoutRecord: boolean;
  readonly dryRun: boolean;
}

/** What a command did, or (dry run) would do, as sentences; refusals are errors (AgentError), not answers. */
export interface Answer {
  readonly done: boolean;
  readonly dryRun: boolean;
  readonly lines: readonly string[];
}

export interface StartRequest {
  readonly dryRun: boolean;
  /** The member (hex) whose log went back and is started all the same. */
  readonly acceptLogRegression?: string | undefined;
}

export interface EventQuery {
  readonly after: number | undefined;
  /** Whose number `after` is; default: the stream of today. */
  readonly stream?: string | undefined;
  /** 1 to 1000. */
  readonly limit: number;
}

export interface LogQuery {
  readonly life: number | undefined;
  /** 1 to 10 000. */
  readonly lines: number;
}

/** The node in one value: what is wanted, what is, what comes next. */
export interface StatusView {
  /** One sentence, as systemd's STATUS shows it. */
  readonly sentence: string;
  readonly nodeId: string;
  readonly agent: { readonly version: string; readonly pid: number; readonly startedAt: string };
  /** `full`, or `superviseOnly` with the reason: etcd is run, membership is not touched. */
  readonly supervision: { readonly kind: 'full' | 'superviseOnly'; readonly because: string };
  readonly role: RoleView;
  readonly paused: { readonly until: string; readonly reason: string } | null;
  readonly process: ProcessStatus;
  readonly member: MemberStatus | null;
  readonly cluster: ClusterStatus | null;
  readonly plan: PlanView;
  readonly outbox: OutboxStatus;
  readonly alarms: readonly { readonly alarm: string; readonly detail: string; readonly since: string }[];
}

export interface RoleView {
  readonly known: boolean;
  /** `consensus-member`, `leaving`, `none`; empty while unknown. */
  readonly role: string;
  readonly grantId: string;
  readonly epoch: number;
  readonly generation: number;
  readonly source: string;
  /** Why the role is unknown, or why the newest document was refused or cannot be read; empty otherwise. */
  readonly problem: string;
  /** True if `problem` is a document that was read and refused. */
  readonly refused: boolean;
}

export interface ProcessStatus {
  /** `down`, `starting`, `ready`, `stopping`, `killing`. */
  readonly phase: string;
  readonly pid: number | null;
  readonly life: number | null;
  readonly since: string | null;
  /** True if a former agent started it. */
  readonly adopted: boolean;
  readonly version: string;
  readonly restarts: number;
  /** False while it runs and does not answer its liveness probe. */
  readonly answers: boolean;
  /** Why an etcd that starts is not ready yet, as it was last asked; empty otherwise. */
  readonly notReady: string;
  /** What of the configuration the etcd that runs has not got yet, one sentence each; its next start brings it. */
  readonly pending: readonly string[];
  /** What the operator wants: `run`, `stopped`, `held`, `removed`. */
  readonly intent: string;
  readonly lastExit: {
    readonly life: number;
    readonly class: string;
    readonly code: number | null;
    readonly signal: string | null;
    readonly because: string;
    /** Null: nobody recorded when it ended. */
    readonly at: string | null;
    /** When the agent learned of it. */
    readonly noticedAt: string;
  } | null;
  /** When the next start is due; null if none is. */
  readonly nextStart: string | null;
}

export interface MemberStatus {
  readonly clusterId: string;
  readonly memberId: string;
  readonly name: string;
  readonly peerUrl: string;
  readonly clientUrl: string;
  readonly learner: boolean | null;
  readonly leader: boolean | null;
  /** Whether a quorum confirms what it reads; null: not known. */
  readonly quorum: boolean | null;
  /** True if it was removed from its cluster: it is in no list any more. */
  readonly removed: boolean;
  readonly dbSizeBytes: number | null;
  readonly raftTerm: string | null;
  readonly raftAppliedIndex: string | null;
}

export interface ClusterStatus {
  readonly members: readonly {
    readonly memberId: string;
    readonly name: string;
    readonly learner: boolean;
    readonly peerUrls: readonly string[];
    readonly clientUrls: readonly string[];
    /** Whether it answered lately when this node asked it; null: it was not asked. */
    readonly answers: boolean | null;
  }[];
  readonly voters: number;
  readonly quorum: number;
  /** How many voters answer now, this node's own included; null: they were not asked, so only the list is known. */
  readonly answering: number | null;
  /** How many of those that answer may fail; where none was asked, of all in the list. */
  readonly faultTolerance: number;
  /** When the list was read; lists are linearizable. */
  readonly asOf: string;
}

/** The cluster as its members show themselves now. */
export interface MembersView {
  readonly clusterId: string;
  readonly members: readonly MemberView[];
  readonly voters: number;
  readonly quorum: number;
  /** Voters that answer now, under the same leader and up to date. */
  readonly answering: number;
  /** How many of those that answer may still fail. */
  readonly faultTolerance: number;
}

export interface MemberView {
  readonly memberId: string;
  /** Empty: it was never started. */
  readonly name: string;
  readonly learner: boolean;
  readonly leader: boolean;
  /** `counts`, or why it does not: `silent`, `behind`, `otherLeader`, `unstarted`, … */
  readonly answers: string;
  /** What its agent says: `active`, `draining`, `stopping`, `paused`, `unknown`. */
  readonly activity: string;
  readonly version: string;
  readonly dbSizeBytes: number | null;
  readonly raftAppliedIndex: string | null;
  /** Entries that the leader had committed and this one had not applied. */
  readonly raftLag: number | null;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
}

export interface PlanView {
  /** `converged`, `act`, `blocked`, `waiting`. */
  readonly kind: string;
  /** The step, or the name of the blocker; empty if converged. */
  readonly what: string;
  readonly because: string;
  readonly hint: string;
}

export interface WhyView {
  readonly plan: PlanView;
  /** Why the role is unknown or its newest document counts for nothing; empty if neither is so. */
  readonly roleProblem: string;
  readonly alarms: StatusView['alarms'];
  /** Orders, reloads, role documents and steps that were refused or failed, newest first. */
  readonly refusals: readonly {
    readonly at: string;
    readonly what: string;
    readonly because: string;
    readonly hint: string;
  }[];
}

export interface EventView {
  readonly seq: number;
  readonly stream: string;
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly certainty: string;
  /** `waiting`, `parked`, `acknowledged`; `kept` where there is no upstream. */
  readonly state: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface OutboxStatus {
  /** False if the configuration names nobody to report to: what waits is kept, and nothing is wrong. */
  readonly upstream: boolean;
  readonly stream: string;
  readonly waiting: number;
  readonly lastSeq: number;
  readonly acknowledgedSeq: number;
  /** Set if upstream refuses the oldest fact for ever: `events skip` gives it up. */
  readonly parked: { readonly seq: number; readonly because: string } | null;
  readonly lastError: string;
}
