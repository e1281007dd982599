import type { Clock } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Parts, RolePort } from './assemble.ts';
import type { Config } from './config.ts';
import type {
  AgentControl,
  Answer,
  EventQuery,
  EventView,
  JoinRequest,
  LeaveRequest,
  LogQuery,
  MembersView,
  OutboxStatus,
  PlanView,
  RoleView,
  StartRequest,
  StatusView,
  WhyView,
} from './control.ts';
import type { MemberOrder } from './member-orders.ts';
import type { Operator } from './operator.ts';
import { OrderRefusedError } from './order-refused.ts';
import { pauseNow } from './pause.ts';
import type { ChildPort } from './ports.ts';
import type { RoleControl } from './role-orders.ts';
import type { Plan } from './step.ts';
import { clusterStatus, memberStatus, planView, processStatus, sentence } from './views.ts';

/** What a running agent offers beside its parts. */
export interface NodeControlOptions {
  readonly parts: Parts;
  readonly child: ChildPort;
  readonly role: RolePort & { view(): RoleView };
  readonly roleOrders: RoleControl;
  readonly outbox: OutboxControl;
  readonly logs: LogControl;
  readonly clock: Clock;
  readonly config: () => Config;
  readonly agentVersion: string;
  readonly pid: number;
  readonly etcdVersion: () => string;
  readonly reload: () => Promise<Answer>;
  readonly metrics: (status: StatusView) => Promise<string>;
}

/** The reports, as an operator sees them. */
export interface OutboxControl {
  status(): OutboxStatus;
  events(query: EventQuery): readonly EventView[];
  follow(listener: (event: EventView) => void, signal: AbortSignal): void;
  skip(seq: number, reason: string): Promise<Answer>;
}

/** etcd's logs. */
export interface LogControl {
  lines(query: LogQuery): Promise<readonly string[]>;
  follow(listener: (line: string) => void, signal: AbortSignal): void;
}

/** Answers the local API out of the parts of the agent. */
export class NodeControl implements AgentControl {
  readonly #options: NodeControlOptions;
  readonly #startedAt: string;

  constructor(options: NodeControlOptions) {
    this.#options = options;
    this.#startedAt = new Date(options.clock.wallMs()).toISOString();
  }

  get role(): RoleControl {
    return this.#options.roleOrders;
  }

  status(): StatusView {
    const { parts, child, role, outbox, config, agentVersion, pid, etcdVersion, clock } = this.#options;
    const { state, ends, membership, status, voters } = parts;
    const view = child.view();
    const health = parts.health.look();
    const identity = state.knownIdentity();
    const removed = this.#isRemoved();
    const cluster = clusterStatus({
      latest: membership.latest,
      identity,
      removed,
      selfAnswers: view.phase === 'ready' && health.answers,
      others: identity === undefined ? undefined : voters.answering(identity.memberId),
    });
    const latest = parts.agent.latest;
    const made: Plan = latest?.plan ?? { kind: 'waiting', because: 'the first turn is being taken', inMs: 0 };
    const intent = state.runIntent();
    const decision = ends.decision;
    const supervision = state.supervision();
    return {
      sentence:
        latest === undefined
          ? 'the agent is starting'
          : sentence(made, latest.seen, view, cluster, health, parts.agent.failing),
      nodeId: config().node.id,
      agent: { version: agentVersion, pid, startedAt: this.#startedAt },
      supervision: { kind: supervision.kind, because: supervision.kind === 'full' ? '' : supervision.because },
      role: role.view(),
      paused: pauseNow(state, clock) ?? null,
      process: processStatus({
        view,
        health,
        pending: parts.pendingStart.look(),
        intent: intent.kind === 'ok' ? intent.value.intent : 'run',
        version: etcdVersion(),
        restarts: decision.restarts,
        lastEnd: ends.last,
        nextStartMs:
          decision.due.kind === 'wait' && view.phase === 'down' ? clock.wallMs() + decision.due.ms : undefined,
      }),
      member: memberStatus(identity, status.latest, config().etcd.clientUrl, { quorum: health.quorum, removed }),
      cluster,
      plan: planView(made, health, parts.agent.failing),
      outbox: outbox.status(),
      alarms: parts.alarms.all(),
    };
  }

  async plan(): Promise<PlanView> {
    const { agent, health } = this.#options.parts;
    const before = agent.latest?.plan;
    const { plan } = await agent.planNow();
    // Why the very step that comes next did not succeed when it was last tried.
    const same = plan.kind === 'act' && before?.kind === 'act' && before.step.kind === plan.step.kind;
    const view = planView(plan, health.look(), same ? agent.failing : undefined);
    const { refused, problem } = this.#options.role.view();
    return refused ? { ...view, because: `${view.because}; the newest role document is refused: ${problem}` } : view;
  }

  #isRemoved(): boolean {
    const { agent, state } = this.#options.parts;
    const intent = state.runIntent();
    return agent.latest?.seen.removal.kind === 'proven' || (intent.kind === 'ok' && intent.value.intent === 'removed');
  }

  why(): WhyView {
    const { agent, health, alarms } = this.#options.parts;
    const made: Plan = agent.latest?.plan ?? { kind: 'waiting', because: 'the first turn is being taken', inMs: 0 };
    return {
      plan: planView(made, health.look(), agent.failing),
      roleProblem: this.#options.role.view().problem,
      alarms: alarms.all(),
      refusals: agent.refusals,
    };
  }

  events(query: EventQuery): readonly EventView[] {
    return this.#options.outbox.events(query);
  }

  followEvents(listener: (event: EventView) => void, signal: AbortSignal): void {
    this.#options.outbox.follow(listener, signal);
  }

  async skipEvent(seq: number, reason: string): Promise<Answer> {
    return await this.#options.outbox.skip(seq, reason);
  }

  async logs(query: LogQuery): Promise<readonly string[]> {
    return await this.#options.logs.lines(query);
  }

  followLogs(listener: (line: string) => void, signal: AbortSignal): void {
    this.#options.logs.follow(listener, signal);
  }

  async stop(request: { readonly force: boolean; readonly dryRun: boolean }): Promise<Answer> {
    return await this.#order('stop', (operator) => operator.stop(request));
  }

  async start(request: StartRequest): Promise<Answer> {
    return await this.#order('start', (operator) => operator.start(request));
  }

  async shutdown(request: { readonly dryRun: boolean }): Promise<Answer> {
    return await this.#options.parts.operator.shutdown(request);
  }

  async pause(request: { readonly forMs: number; readonly reason: string }): Promise<Answer> {
    return await this.#order('pause', (operator) => operator.pause(request));
  }

  async resume(): Promise<Answer> {
    return await this.#order('resume', (operator) => operator.resume());
  }

  async found(request: { readonly dryRun: boolean; readonly alone: boolean }): Promise<Answer> {
    const how = request.alone ? 'aloneAfterAll' : 'alone';
    return await this.#order('found', (operator) => operator.found(how, request.dryRun));
  }

  async foundPrepare(): Promise<Answer & { readonly line: string }> {
    return await this.#order('found prepare', (operator) => operator.foundPrepare());
  }

  async foundList(request: { readonly lines: readonly string[]; readonly dryRun: boolean }): Promise<Answer> {
    return await this.#order('found --list', (operator) => operator.found(request.lines, request.dryRun));
  }

  async adopt(request: { readonly dryRun: boolean; readonly newClusterId: string | undefined }): Promise<Answer> {
    return await this.#order('adopt', (operator) => operator.adopt(request));
  }

  async confirmRemoved(request: { readonly memberId: string }): Promise<Answer> {
    return await this.#order('confirm-removed', (operator) => operator.settleRemoval(request.memberId, 'confirmed'));
  }

  async rejectRemoval(request: { readonly memberId: string }): Promise<Answer> {
    return await this.#order('reject-removal', (operator) => operator.settleRemoval(request.memberId, 'rejected'));
  }

  /** An order that is refused is remembered for `why`. */
  async #order<T>(what: string, give: (operator: Operator) => Promise<T>): Promise<T> {
    const { agent, operator } = this.#options.parts;
    try {
      return await give(operator);
    } catch (error) {
      if (error instanceof AgentError) agent.refused(what, describeError(error), error.hint);
      throw error;
    }
  }

  async members(): Promise<MembersView> {
    return await this.#options.parts.memberOrders.members();
  }

  async evictMember(request: MemberOrder): Promise<Answer> {
    return await this.#order('members evict', () => this.#options.parts.memberOrders.evict(request));
  }

  async replaceMember(request: MemberOrder): Promise<Answer> {
    return await this.#order('replace', () => this.#options.parts.memberOrders.replace(request));
  }

  async join(request: JoinRequest): Promise<Answer> {
    return await this.#order('join', () => this.#join(request));
  }

  async #join({ endpoints, clusterId, dryRun }: JoinRequest): Promise<Answer> {
    const { parts, roleOrders } = this.#options;
    const preview = await parts.memberOrders.previewJoin(endpoints, clusterId);
    const answer = await roleOrders.set({
      role: 'consensus-member',
      grantId: undefined,
      endpoints: endpoints.length > 0 ? endpoints : undefined,
      acceptZeroTolerance: false,
      withoutRecord: false,
      dryRun,
    });
    // A slot that is taken, or a voter that is down, may be free in a minute: the agent asks again by itself.
    const wait = preview.allowed ? [] : [preview.hint];
    const lines = [...parts.memberOrders.versionWarnings(), preview.text, ...wait, ...answer.lines, ...this.#paused()];
    return { ...answer, lines: [...new Set(lines)] };
  }

  async leave(request: LeaveRequest): Promise<Answer> {
    return await this.#order('leave', () => this.#leave(request));
  }

  async #leave({ acceptZeroTolerance, withoutRecord, dryRun }: LeaveRequest): Promise<Answer> {
    const { parts, roleOrders } = this.#options;
    const preview = await parts.memberOrders.previewLeave(acceptZeroTolerance);
    if (!preview.allowed) throw new OrderRefusedError(preview.text, { hint: preview.hint });
    const rest = { grantId: undefined, endpoints: undefined, acceptZeroTolerance, withoutRecord, dryRun };
    const answer = await roleOrders.set({ role: 'leaving', ...rest });
    return { ...answer, lines: [...new Set([preview.text, ...answer.lines, ...this.#paused()])] };
  }

  /** A change that is ordered now waits for the end of a pause. */
  #paused(): readonly string[] {
    const pause = pauseNow(this.#options.parts.state, this.#options.clock);
    if (pause === undefined) return [];
    return [`membership changes are paused until ${pause.until}: it begins after that, or after \`resume\``];
  }

  async retire(request: { readonly clusterId: string; readonly dryRun: boolean }): Promise<Answer> {
    return await this.#order('retire', () => this.#options.parts.memberOrders.retire(request));
  }

  async reload(): Promise<Answer> {
    return await this.#options.reload();
  }

  async metrics(): Promise<string> {
    return await this.#options.metrics(this.status());
  }
}
