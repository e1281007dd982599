import type { Clock } from '../base/clock.ts';
import type { Parts, RolePort } from './assemble.ts';
import type { Config } from './config.ts';
import type {
  AgentControl,
  Answer,
  EventQuery,
  EventView,
  LogQuery,
  OutboxStatus,
  PlanView,
  RoleView,
  StatusView,
  WhyView,
} from './control.ts';
import type { ChildPort } from './ports.ts';
import type { Plan } from './step.ts';
import { clusterStatus, memberStatus, planView, processStatus, sentence } from './views.ts';

/** What a running agent offers beside its parts. */
export interface NodeControlOptions {
  readonly parts: Parts;
  readonly child: ChildPort;
  readonly role: RolePort & { view(): RoleView };
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

  status(): StatusView {
    const { parts, child, role, outbox, config, agentVersion, pid, etcdVersion, clock } = this.#options;
    const { state, ends, membership, status } = parts;
    const view = child.view();
    const identity = state.knownIdentity();
    const cluster = clusterStatus(membership.latest);
    const latest = parts.agent.latest;
    const made: Plan = latest?.plan ?? { kind: 'waiting', because: 'the first turn is being taken', inMs: 0 };
    const intent = state.runIntent();
    const pause = state.pause.read();
    const paused = pause.kind === 'ok' && Date.parse(pause.value.until) > clock.wallMs();
    const decision = ends.decision;
    const supervision = state.supervision();
    return {
      sentence:
        latest === undefined
          ? 'the agent is starting'
          : sentence(made, latest.seen, view, cluster, parts.agent.failing),
      nodeId: config().node.id,
      agent: { version: agentVersion, pid, startedAt: this.#startedAt },
      supervision: { kind: supervision.kind, because: supervision.kind === 'full' ? '' : supervision.because },
      role: role.view(),
      paused: paused && pause.kind === 'ok' ? pause.value : null,
      process: processStatus({
        view,
        intent: intent.kind === 'ok' ? intent.value.intent : 'run',
        version: etcdVersion(),
        restarts: decision.restarts,
        lastEnd: ends.last,
        nextStartMs:
          decision.due.kind === 'wait' && view.phase === 'down' ? clock.wallMs() + decision.due.ms : undefined,
      }),
      member: memberStatus(identity, status.latest),
      cluster,
      plan: planView(made, parts.agent.failing),
      outbox: outbox.status(),
      alarms: parts.alarms.all(),
    };
  }

  async plan(): Promise<PlanView> {
    const { plan } = await this.#options.parts.agent.planNow();
    return planView(plan);
  }

  why(): WhyView {
    const { agent } = this.#options.parts;
    const made: Plan = agent.latest?.plan ?? { kind: 'waiting', because: 'the first turn is being taken', inMs: 0 };
    return { plan: planView(made, agent.failing), refusals: agent.refusals };
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
    return await this.#options.parts.operator.stop(request);
  }

  async start(request: { readonly dryRun: boolean }): Promise<Answer> {
    return await this.#options.parts.operator.start(request);
  }

  async pause(request: { readonly forMs: number; readonly reason: string }): Promise<Answer> {
    return await this.#options.parts.operator.pause(request);
  }

  async resume(): Promise<Answer> {
    return await this.#options.parts.operator.resume();
  }

  async found(request: { readonly dryRun: boolean }): Promise<Answer> {
    return await this.#options.parts.operator.found('alone', request.dryRun);
  }

  async foundPrepare(): Promise<Answer & { readonly line: string }> {
    return await this.#options.parts.operator.foundPrepare();
  }

  async foundList(request: { readonly lines: readonly string[]; readonly dryRun: boolean }): Promise<Answer> {
    return await this.#options.parts.operator.found(request.lines, request.dryRun);
  }

  async adopt(request: { readonly dryRun: boolean; readonly newClusterId: string | undefined }): Promise<Answer> {
    return await this.#options.parts.operator.adopt(request);
  }

  async confirmRemoved(request: { readonly memberId: string }): Promise<Answer> {
    return await this.#options.parts.operator.settleRemoval(request.memberId, 'confirmed');
  }

  async rejectRemoval(request: { readonly memberId: string }): Promise<Answer> {
    return await this.#options.parts.operator.settleRemoval(request.memberId, 'rejected');
  }

  async reload(): Promise<Answer> {
    return await this.#options.reload();
  }

  async metrics(): Promise<string> {
    return await this.#options.metrics(this.status());
  }
}
