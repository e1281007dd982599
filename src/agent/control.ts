/**
 * What an operator can ask of a running agent, or tell it. The local API (a unix socket) offers exactly this, and the
 * commands are thin clients of it. Views are plain JSON: identifiers in hex, times in ISO 8601 UTC, durations in ms.
 */
export interface AgentControl {
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
  start(request: { readonly dryRun: boolean }): Promise<Answer>;
  /** Forbids membership changes and health restarts for `forMs` (default 4 h, at most 7 days). Survives reboots. */
  pause(request: { readonly forMs: number; readonly reason: string }): Promise<Answer>;
  resume(): Promise<Answer>;
  /** Founds a cluster of which this node is the only founder. */
  found(request: { readonly dryRun: boolean }): Promise<Answer>;
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
  /** Reads the configuration file again. A bad one changes nothing. */
  reload(): Promise<Answer>;
  /** The agent's own metrics in Prometheus text format. */
  metrics(): Promise<string>;
}

/** What a command did, or (dry run) would do, as sentences; refusals are errors (AgentError), not answers. */
export interface Answer {
  readonly done: boolean;
  readonly dryRun: boolean;
  readonly lines: readonly string[];
}

export interface EventQuery {
  readonly after: number | undefined;
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
  /** Why the role is unknown, or why the newest document was refused; empty otherwise. */
  readonly problem: string;
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
  /** What the operator wants: `run`, `stopped`, `held`, `removed`. */
  readonly intent: string;
  readonly lastExit: {
    readonly life: number;
    readonly class: string;
    readonly code: number | null;
    readonly signal: string | null;
    readonly because: string;
    readonly at: string;
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
  }[];
  readonly voters: number;
  readonly quorum: number;
  readonly faultTolerance: number;
  /** When the list was read; lists are linearizable. */
  readonly asOf: string;
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
  /** `waiting`, `parked`, `acknowledged`. */
  readonly state: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface OutboxStatus {
  readonly stream: string;
  readonly waiting: number;
  readonly lastSeq: number;
  readonly acknowledgedSeq: number;
  /** Set if upstream refuses the oldest fact for ever: `events skip` gives it up. */
  readonly parked: { readonly seq: number; readonly because: string } | null;
  readonly lastError: string;
}
