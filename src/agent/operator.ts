import { type Clock, delay, timestamp } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';
import { formatId, parseId } from '../etcd/member.ts';
import { quorumOf } from '../etcd/quorum.ts';
import type { Adoption } from './adoption.ts';
import type { Agent } from './agent.ts';
import { handOverMs } from './change/hand-over.ts';
import { forcedStop, orderedStop, type Stops } from './change/stops.ts';
import type { Answer, StartRequest } from './control.ts';
import { orDiskRefused } from './disk-refused.ts';
import type { Effects } from './effects.ts';
import type { Ends } from './ends.ts';
import type { ClusterFounding } from './founder.ts';
import type { LogProgress } from './log-progress.ts';
import type { Observer } from './observer.ts';
import { OrderRefusedError } from './order-refused.ts';
import type { ChildPort } from './ports.ts';
import type { Reports } from './reports.ts';
import type { ShutdownMark } from './shutdown-mark.ts';
import { planOnceStarted, startLines } from './start-words.ts';
import type { AgentState } from './state/agent-state.ts';
import type { FoundingRecord } from './state/schemas.ts';
import type { DataVolume } from './volume.ts';

export interface OperatorOptions {
  readonly agent: Agent;
  readonly observer: Observer;
  readonly child: ChildPort;
  readonly ends: Ends;
  readonly reports: Reports;
  readonly state: AgentState;
  readonly founding: ClusterFounding;
  readonly adoption: Adoption;
  readonly volume: DataVolume;
  readonly stops: Stops;
  readonly effects: Effects;
  readonly shutdownMark: ShutdownMark;
  readonly progress: LogProgress;
  readonly stopGraceMs: () => number;
  readonly clock: Clock;
}

/** How long a shutdown of the machine waits for the turn that is being taken. Unit: ms. */
const turnWithinMs = 5_000;
/** The longest pause. Unit: ms. */
const maxPauseMs = 7 * 86_400_000;

/**
 * The orders that an operator can give. Each is checked as a whole, then done: a refusal changes nothing, and what comes last is the
 * write that makes it count. Throws OrderRefusedError; StateNotWrittenError or DiskRefusedError if the disk refused it meanwhile.
 */
export class Operator {
  readonly #options: OperatorOptions;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  /** Returns once etcd is gone. Waits up to 30 s while somebody else changes the cluster. */
  async stop({ force, dryRun }: { readonly force: boolean; readonly dryRun: boolean }): Promise<Answer> {
    const { stops, agent, observer, state, effects } = this.#options;
    if (this.#isRemoved()) {
      const line = 'this member was removed from its cluster: etcd is not started on it again';
      return { done: false, dryRun, lines: [line] };
    }
    const stays = 'etcd is stopped and stays stopped, across reboots, until `start`';
    if (dryRun) return { done: false, dryRun, lines: [...(await stops.judge({ force })), stays] };
    const because = force ? forcedStop : orderedStop;
    const order = { graceMs: this.#options.stopGraceMs(), why: 'stop', because } as const;
    const before = state.runIntent();
    const lines = await stops.patiently(() =>
      agent.exclusively(async () => {
        const judged = await stops.end({
          how: 'stop',
          order,
          force,
          evenIfSilent: force,
          intend: () => {
            effects.do('stop.intent', () => this.#recordIntent('stopped', because));
            this.#audit('stop', force ? 'forced' : '');
          },
          takeBack: () => {
            if (before.kind === 'ok') state.recordRunIntent(before.value);
            else this.#recordIntent('run', 'a stop was refused');
          },
        });
        observer.forgetData();
        return judged;
      }),
    );
    return { done: true, dryRun, lines: [...lines, stays] };
  }

  async start(request: StartRequest): Promise<Answer> {
    const { ends } = this.#options;
    if (this.#isRemoved()) {
      throw new OrderRefusedError('this member was removed from its cluster; its id never starts again', {
        hint: 'To make the node a member again: `etcd-node-agent join`, or a new `grantId` in its role document.',
      });
    }
    if (ends.last?.class === 'staleIdentity') {
      throw new OrderRefusedError('this member has lost its log (stale identity); its id never starts again', {
        hint: 'See docs/runbook.md, "a lost disk".',
      });
    }
    const given = await this.#givenUp(request.acceptLogRegression);
    const { phase } = this.#options.child.view();
    if (!request.dryRun) this.#options.stops.withdraw();
    const answer = await this.#do(request.dryRun, [], () => {
      this.#options.shutdownMark.clear();
      this.#recordIntent('run', 'an operator started it');
      ends.release();
      // Until this last write it is held. Accepted and still stopped, the same order would find nothing to accept.
      if (given !== undefined) this.#acceptLogRegression();
      this.#audit('start', given ?? '');
    });
    const { seen } = await this.#options.agent.planNow();
    return { ...answer, lines: [...(given === undefined ? [] : [given]), ...startLines(phase, planOnceStarted(seen))] };
  }

  /** What an operator accepts with `--accept-log-regression`, in words. Throws OrderRefusedError if there is more, or less, than that. */
  async #givenUp(accepted: string | undefined): Promise<string | undefined> {
    const { observer, state } = this.#options;
    const behind = await observer.logRegression();
    const own = formatId(state.knownIdentity()?.memberId ?? 0n);
    if (accepted === undefined) {
      if (behind === undefined) return undefined;
      throw new OrderRefusedError(`the data of member ${own} is older than the member was: ${behind}`, {
        hint: `Put the newest data back. If what it had acknowledged since then may be lost: \`etcd-node-agent start --accept-log-regression ${own}\`.`,
      });
    }
    if (behind === undefined) {
      throw new OrderRefusedError('the log of this member is not known to be behind, so there is nothing to accept', {
        hint: '`etcd-node-agent why` shows what stands in the way.',
      });
    }
    if (parseId(accepted) !== state.knownIdentity()?.memberId) {
      throw new OrderRefusedError(`this node is member ${own}, not ${accepted}`, {
        hint: '`etcd-node-agent status` shows the member id.',
      });
    }
    return `the log of member ${own} went back and is accepted as it is: ${behind}`;
  }

  #acceptLogRegression(): void {
    const { state, progress, effects } = this.#options;
    const identity = state.knownIdentity();
    if (identity !== undefined) effects.do('regression.accept', () => progress.accept(identity));
  }

  /** The machine goes down: never refused, and in no queue for long. The run intent stays, so that the next boot starts etcd. */
  async shutdown({ dryRun }: { readonly dryRun: boolean }): Promise<Answer> {
    const { stops, agent, clock, shutdownMark, effects, stopGraceMs } = this.#options;
    const stays = 'etcd is started again after the next boot; before that only by `start`';
    const how = `leadership is handed over if it leads (at most ${handOverMs / 1000} s), then etcd is stopped (TERM, KILL after ${stopGraceMs() / 1000} s)`;
    if (dryRun) return { done: false, dryRun, lines: [how, stays] };
    const unwritten = effects.do('shutdown.mark', () => shutdownMark.set());
    const doubt = unwritten === '' ? [] : [`an agent that is started before that does not know it: ${unwritten}`];
    this.#tryToAudit('shutdown');
    // A turn that is being taken may start etcd, or change the cluster; one that hangs is not waited for.
    await Promise.race([agent.exclusively(async () => {}), delay(clock, turnWithinMs)]);
    const order = { graceMs: stopGraceMs(), why: 'stop', because: 'the machine goes down' } as const;
    return { done: true, dryRun, lines: [...(await stops.shutdown(order)), stays, ...doubt] };
  }

  async pause(request: { readonly forMs: number; readonly reason: string }): Promise<Answer> {
    if (!(request.forMs > 0 && request.forMs <= maxPauseMs)) {
      throw new OrderRefusedError(`a pause lasts from 1 s to 7 days, not ${request.forMs} ms`, {
        hint: 'Pause again when it ends.',
      });
    }
    const until = new Date(this.#options.clock.wallMs() + request.forMs).toISOString();
    return this.#do(false, [`no membership change and no health restart until ${until}`], () => {
      this.#options.state.pause.write({ until, reason: request.reason });
      this.#audit('pause', `until ${until}: ${request.reason}`);
    });
  }

  async resume(): Promise<Answer> {
    const pause = this.#options.state.pause.read();
    if (
      pause.kind === 'absent' ||
      (pause.kind === 'ok' && Date.parse(pause.value.until) <= this.#options.clock.wallMs())
    )
      return { done: false, dryRun: false, lines: ['there is no pause; nothing was changed'] };
    return this.#do(false, ['the pause is over'], () => {
      this.#options.state.pause.write({ until: new Date(0).toISOString(), reason: '' });
      this.#audit('resume', '');
    });
  }

  async found(lines: readonly string[] | 'alone' | 'aloneAfterAll', dryRun: boolean): Promise<Answer> {
    const { founding, observer } = this.#options;
    this.#refuseUntrustedState();
    const data = await observer.lookAtData(true);
    const record = founding.check(lines, data);
    await founding.askFounders(record);
    const answer = foundingAnswer(record);
    return this.#do(dryRun, answer, () => {
      founding.takeGround(record);
      this.#recordIntent('run', 'an operator founded the cluster');
      founding.order(record);
      this.#audit('found', record.lines.join(' | '));
    });
  }

  async foundPrepare(): Promise<Answer & { readonly line: string }> {
    const { founding, observer, agent } = this.#options;
    this.#refuseUntrustedState();
    const data = await observer.lookAtData(true);
    const line = await agent.exclusively(async () => founding.prepare(data));
    return { done: true, dryRun: false, line, lines: [line] };
  }

  /** Takes over existing data: ids from the data directory, compared with the live list of whoever answers. */
  async adopt(request: { readonly dryRun: boolean; readonly newClusterId: string | undefined }): Promise<Answer> {
    const { observer, state } = this.#options;
    this.#refuseUntrustedState({ unlessLost: true });
    const data = await observer.lookAtData(true);
    const plan = await this.#options.adoption.plan(data, request.newClusterId);
    return this.#do(request.dryRun, plan.lines, () => {
      const { volume, reports } = this.#options;
      volume.claim();
      state.recordIdentity(plan.identity);
      this.#recordIntent('run', 'an operator adopted this member');
      const [clusterId, memberId] = [formatId(plan.identity.clusterId), formatId(plan.identity.memberId)];
      this.#options.ends.release();
      reports.tell({ kind: 'data.adopted', clusterId, memberId });
      this.#audit('adopt', `member ${memberId} of cluster ${clusterId}`);
    });
  }

  async settleRemoval(memberIdText: string, verdict: 'confirmed' | 'rejected'): Promise<Answer> {
    const { state, child, clock, agent } = this.#options;
    const identity = state.knownIdentity();
    const memberId = parseId(memberIdText);
    if (identity === undefined || memberId !== identity.memberId) {
      throw new OrderRefusedError(
        identity === undefined
          ? 'this node is no member'
          : `this node is member ${formatId(identity.memberId)}, not ${memberIdText}`,
        { hint: '`etcd-node-agent status` shows the member id.' },
      );
    }
    // The newest end alone is not asked: etcd may have come back since.
    const { seen } = await agent.planNow();
    if (seen.removal.kind !== 'suspected') {
      throw new OrderRefusedError('no removal is waiting for a word', { hint: '`etcd-node-agent why` shows what is.' });
    }
    const line =
      verdict === 'confirmed'
        ? 'the removal counts as proven: tombstone, archive, report; etcd is never started on this member again'
        : 'etcd may be started again; if it is told again that it was removed, the question comes back';
    return this.#do(false, [line], () => {
      state.verdict.write({ memberId, verdict, at: timestamp(clock), life: child.view().life });
      if (verdict === 'rejected') this.#options.ends.release();
      this.#audit(verdict === 'confirmed' ? 'confirm-removed' : 'reject-removal', formatId(memberId));
    });
  }

  #refuseUntrustedState({ unlessLost = false } = {}): void {
    const supervision = this.#options.state.supervision();
    if (supervision.kind === 'full' || (unlessLost && supervision.lost === true)) return;
    throw new OrderRefusedError(supervision.because, { hint: 'See docs/runbook.md, "state that cannot be read".' });
  }

  async #do(dryRun: boolean, lines: readonly string[], change: () => void): Promise<Answer> {
    if (dryRun) return { done: false, dryRun, lines };
    await this.#options.agent.exclusively(async () => {
      try {
        change();
      } catch (error) {
        throw orDiskRefused('the command', error);
      } finally {
        this.#options.observer.forgetData();
      }
    });
    return { done: true, dryRun, lines };
  }

  /** What an operator has done is done: a history that cannot be written is told of it later. */
  #audit(command: string, detail: string): void {
    this.#options.reports.tell({ kind: 'operator.command', command, detail });
  }

  #isRemoved(): boolean {
    const intent = this.#options.state.runIntent();
    return intent.kind === 'ok' && intent.value.intent === 'removed';
  }

  /** Where an order must not fail for a disk that refuses. */
  #tryToAudit(command: string): void {
    try {
      this.#audit(command, '');
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
    }
  }

  #recordIntent(intent: 'run' | 'stopped', because: string): void {
    const { state, clock } = this.#options;
    const identity = state.knownIdentity();
    state.recordRunIntent({
      intent,
      clusterId: identity === undefined ? '' : formatId(identity.clusterId),
      memberId: identity === undefined ? '' : formatId(identity.memberId),
      because,
      at: timestamp(clock),
    });
  }
}

function foundingAnswer(record: FoundingRecord): readonly string[] {
  const [clusterId, memberId] = [formatId(record.clusterId ?? 0n), formatId(record.memberId ?? 0n)];
  return [
    record.lines.length === 1
      ? 'this node founds a cluster alone'
      : `${record.lines.length} founders: it is ready once ${quorumOf(record.lines.length)} of them run`,
    `cluster ${clusterId}, this node is member ${memberId}`,
    'a node founds at most once; from then on its role decides',
  ];
}
