import type {
  AgentControl,
  Answer,
  EventQuery,
  EventView,
  JoinRequest,
  LeaveRequest,
  LogQuery,
  MembersView,
  PlanView,
  StartRequest,
  StatusView,
  WhyView,
} from '../../src/agent/control.ts';
import type { MemberOrder } from '../../src/agent/member-orders.ts';
import type { RoleControl, RoleDetail } from '../../src/agent/role-orders.ts';

/** An agent that does nothing but remember what it was asked. */
export class FakeControl implements AgentControl {
  /** Every call that would change something, in order. */
  readonly calls: { readonly method: string; readonly request: unknown }[] = [];
  /** Thrown by the next call, once. */
  failure: unknown;
  view: StatusView = exampleStatus();
  eventViews: EventView[] = [];
  logLines: string[] = [];
  /** What `found prepare` says beside its line. */
  prepared: readonly string[] = ['foundPrepare was done'];
  metricsText = '# nothing\n';
  /** Awaited by every asynchronous call. */
  gate: Promise<void> = Promise.resolve();
  readonly eventListeners = new Set<(event: EventView) => void>();
  readonly logListeners = new Set<(line: string) => void>();

  readonly role: RoleControl = {
    show: () => {
      this.#fail();
      return exampleRole();
    },
    switchSource: (request) => this.#did('switchSource', request),
    set: (request) => this.#did('set', request),
  };

  status(): StatusView {
    this.#fail();
    return this.view;
  }

  async plan(): Promise<PlanView> {
    await this.#enter();
    return this.view.plan;
  }

  why(): WhyView {
    this.#fail();
    const refusal = { at: '2026-01-01T00:00:00.000Z', what: 'stop', because: 'quorum', hint: 'Use --force.' };
    const { plan, role, alarms } = this.view;
    return { plan, roleProblem: role.problem, alarms, refusals: [refusal] };
  }

  events({ after, stream = this.eventViews.at(-1)?.stream, limit }: EventQuery): readonly EventView[] {
    this.#fail();
    if (after === undefined) return this.eventViews.slice(-limit);
    const last = this.eventViews.findLastIndex((event) => event.stream === stream && event.seq <= after);
    return this.eventViews.slice(last + 1, last + 1 + limit);
  }

  followEvents(listener: (event: EventView) => void, signal: AbortSignal): void {
    this.eventListeners.add(listener);
    signal.addEventListener('abort', () => this.eventListeners.delete(listener), { once: true });
  }

  async logs({ lines }: LogQuery): Promise<readonly string[]> {
    await this.#enter();
    return this.logLines.slice(-lines);
  }

  followLogs(listener: (line: string) => void, signal: AbortSignal): void {
    this.logListeners.add(listener);
    signal.addEventListener('abort', () => this.logListeners.delete(listener), { once: true });
  }

  skipEvent(seq: number, reason: string): Promise<Answer> {
    return this.#did('skipEvent', { seq, reason });
  }

  stop(request: { readonly force: boolean; readonly dryRun: boolean }): Promise<Answer> {
    return this.#did('stop', request);
  }

  start(request: StartRequest): Promise<Answer> {
    return this.#did('start', request);
  }

  shutdown(request: { readonly dryRun: boolean }): Promise<Answer> {
    return this.#did('shutdown', request);
  }

  pause(request: { readonly forMs: number; readonly reason: string }): Promise<Answer> {
    return this.#did('pause', request);
  }

  resume(): Promise<Answer> {
    return this.#did('resume', {});
  }

  found(request: { readonly dryRun: boolean; readonly alone: boolean }): Promise<Answer> {
    return this.#did('found', request);
  }

  async foundPrepare(): Promise<Answer & { readonly line: string }> {
    const line = 'n1 https://10.0.0.1:2380 5f3a';
    return { ...(await this.#did('foundPrepare', {})), lines: this.prepared, line };
  }

  foundList(request: { readonly lines: readonly string[]; readonly dryRun: boolean }): Promise<Answer> {
    return this.#did('foundList', request);
  }

  adopt(request: { readonly dryRun: boolean; readonly newClusterId: string | undefined }): Promise<Answer> {
    return this.#did('adopt', request);
  }

  confirmRemoved(request: { readonly memberId: string }): Promise<Answer> {
    return this.#did('confirmRemoved', request);
  }

  rejectRemoval(request: { readonly memberId: string }): Promise<Answer> {
    return this.#did('rejectRemoval', request);
  }

  async members(): Promise<MembersView> {
    await this.#enter();
    return exampleMembers();
  }

  evictMember(request: MemberOrder): Promise<Answer> {
    return this.#did('evictMember', request);
  }

  replaceMember(request: MemberOrder): Promise<Answer> {
    return this.#did('replaceMember', request);
  }

  join(request: JoinRequest): Promise<Answer> {
    return this.#did('join', request);
  }

  leave(request: LeaveRequest): Promise<Answer> {
    return this.#did('leave', request);
  }

  retire(request: { readonly clusterId: string; readonly dryRun: boolean }): Promise<Answer> {
    return this.#did('retire', request);
  }

  reload(): Promise<Answer> {
    return this.#did('reload', {});
  }

  async metrics(): Promise<string> {
    await this.#enter();
    return this.metricsText;
  }

  emit(event: EventView): void {
    this.eventViews.push(event);
    for (const listener of this.eventListeners) listener(event);
  }

  writeLog(line: string): void {
    this.logLines.push(line);
    for (const listener of this.logListeners) listener(line);
  }

  async #did(method: string, request: unknown): Promise<Answer> {
    await this.#enter();
    this.calls.push({ method, request });
    const dryRun = typeof request === 'object' && request !== null && 'dryRun' in request && request.dryRun === true;
    return { done: !dryRun, dryRun, lines: [`${method} ${dryRun ? 'would be' : 'was'} done`] };
  }

  async #enter(): Promise<void> {
    await this.gate;
    this.#fail();
  }

  #fail(): void {
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

/** A voter that leads, and a learner that was never started. */
export function exampleMembers(): MembersView {
  const voter = {
    memberId: '8e9e05c52164694d',
    name: 'n1',
    learner: false,
    leader: true,
    answers: 'counts',
    activity: 'active',
    version: '3.5.30',
    dbSizeBytes: 20_480,
    raftAppliedIndex: '77',
    raftLag: 0,
    peerUrls: ['https://10.0.0.1:2380'],
    clientUrls: ['https://10.0.0.1:2379'],
  };
  const unstarted = { name: '', learner: true, leader: false, answers: 'unstarted', activity: 'unknown', version: '' };
  const silent = { dbSizeBytes: null, raftAppliedIndex: null, raftLag: null, clientUrls: [] };
  const learner = { memberId: 'a2', ...unstarted, ...silent, peerUrls: ['https://10.0.0.2:2380'] };
  const members = [voter, learner];
  return { clusterId: 'c1', members, voters: 1, quorum: 1, answering: 1, faultTolerance: 0 };
}

/** A fact with this number. */
export function exampleEvent(seq: number, change: Partial<EventView> = {}): EventView {
  return {
    seq,
    stream: '77',
    id: `id-${seq}`,
    at: '2026-01-01T00:00:00.000Z',
    kind: 'process.ready',
    certainty: 'observed',
    state: 'acknowledged',
    data: { life: 1 },
    ...change,
  };
}

/** The role of that voter. */
export function exampleRole(): RoleDetail {
  return {
    ...exampleStatus().role,
    nodeId: 'n1',
    file: '/etc/etcd-node-agent/role.json',
    acceptedAt: '2026-01-01T00:00:00.000Z',
    spent: false,
    clusterId: 'cdf818194e3a8c32',
    endpoints: ['https://10.0.0.2:2379'],
    etcdVersion: '',
    accept: [],
  };
}

/** A voter that serves, in a cluster of three. */
export function exampleStatus(): StatusView {
  return {
    sentence: 'n1 is a voter of a cluster of 3 and serves',
    nodeId: 'n1',
    agent: { version: '0.1.0', pid: 4711, startedAt: '2026-01-01T00:00:00.000Z' },
    supervision: { kind: 'full', because: '' },
    role: {
      known: true,
      role: 'consensus-member',
      grantId: 'g1',
      epoch: 1,
      generation: 2,
      source: 'file:/etc/etcd-node-agent/role.json',
      problem: '',
      refused: false,
    },
    paused: null,
    process: {
      phase: 'ready',
      pid: 4712,
      life: 3,
      since: '2026-01-01T00:00:01.000Z',
      adopted: true,
      version: '3.5.30',
      restarts: 1,
      answers: true,
      notReady: '',
      pending: [],
      intent: 'run',
      lastExit: {
        life: 2,
        class: 'killed',
        code: null,
        signal: 'SIGKILL',
        because: 'signal 9 that was not ours',
        at: '2026-01-01T00:00:00.500Z',
        noticedAt: '2026-01-01T00:00:00.600Z',
      },
      nextStart: null,
    },
    member: {
      clusterId: 'cdf818194e3a8c32',
      memberId: '8e9e05c52164694d',
      name: 'n1',
      peerUrl: 'https://10.0.0.1:2380',
      clientUrl: 'https://10.0.0.1:2379',
      learner: false,
      leader: true,
      quorum: true,
      removed: false,
      dbSizeBytes: 20_480,
      raftTerm: '2',
      raftAppliedIndex: '41',
    },
    cluster: {
      members: [
        {
          memberId: '8e9e05c52164694d',
          name: 'n1',
          learner: false,
          peerUrls: ['https://10.0.0.1:2380'],
          clientUrls: ['https://10.0.0.1:2379'],
          answers: true,
        },
      ],
      voters: 3,
      quorum: 2,
      answering: 3,
      faultTolerance: 1,
      asOf: '2026-01-01T00:00:02.000Z',
    },
    plan: { kind: 'converged', what: '', because: 'the role is fulfilled', hint: '' },
    outbox: { upstream: true, stream: '77', waiting: 0, lastSeq: 12, acknowledgedSeq: 12, parked: null, lastError: '' },
    alarms: [],
  };
}
