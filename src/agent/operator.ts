import { type Clock, timestamp } from '../base/clock.ts';
import { formatId, parseId } from '../etcd/member.ts';
import { quorumOf } from '../etcd/quorum.ts';
import type { Adoption } from './adoption.ts';
import type { Agent } from './agent.ts';
import type { Answer } from './control.ts';
import type { Ends } from './ends.ts';
import type { ClusterFounding } from './founder.ts';
import type { Observer } from './observer.ts';
import { OrderRefusedError } from './order-refused.ts';
import type { Peers } from './peers.ts';
import type { ChildPort } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { FoundingRecord, IdentityRecord } from './state/schemas.ts';
import type { DataVolume } from './volume.ts';

export interface OperatorOptions {
  readonly agent: Agent;
  readonly observer: Observer;
  readonly child: ChildPort;
  readonly peers: Peers;
  readonly ends: Ends;
  readonly reports: Reports;
  readonly state: AgentState;
  readonly founding: ClusterFounding;
  readonly adoption: Adoption;
  readonly volume: DataVolume;
  readonly clock: Clock;
}

/** How long others have to answer an operator's question. Unit: ms. */
const askMs = 2_000;
/** The longest pause. Unit: ms. */
const maxPauseMs = 7 * 86_400_000;

/** The orders that an operator can give. Each is checked as a whole, then done; a refusal changes nothing. */
export class Operator {
  readonly #options: OperatorOptions;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  async stop(request: { readonly force: boolean; readonly dryRun: boolean }): Promise<Answer> {
    const identity = this.#options.state.knownIdentity();
    const check = identity === undefined ? [] : await this.#checkStop(identity, request.force);
    return this.#do(
      request.dryRun,
      [...check, 'etcd is stopped and stays stopped, across reboots, until `start`'],
      () => {
        this.#recordIntent('stopped', request.force ? 'an operator stopped it (forced)' : 'an operator stopped it');
        this.#audit('stop', request.force ? 'forced' : '');
      },
    );
  }

  async start(request: { readonly dryRun: boolean }): Promise<Answer> {
    const { state, ends } = this.#options;
    const intent = state.runIntent();
    if (intent.kind === 'ok' && intent.value.intent === 'removed') {
      throw new OrderRefusedError('this member was removed from its cluster; its id never starts again', {
        hint: 'Give the node its role anew, with a new grantId.',
      });
    }
    if (ends.last?.class === 'staleIdentity') {
      throw new OrderRefusedError('this member has lost its log (stale identity); its id never starts again', {
        hint: 'See docs/runbook.md, "a lost disk".',
      });
    }
    return this.#do(request.dryRun, ['etcd is started; what held it no longer counts'], () => {
      ends.release();
      this.#recordIntent('run', 'an operator started it');
      this.#audit('start', '');
    });
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
    return this.#do(false, ['the pause is over'], () => {
      this.#options.state.pause.write({ until: new Date(0).toISOString(), reason: '' });
      this.#audit('resume', '');
    });
  }

  async found(lines: readonly string[] | 'alone', dryRun: boolean): Promise<Answer> {
    const { founding, observer } = this.#options;
    this.#refuseUntrustedState();
    const data = await observer.lookAtData(true);
    const record = founding.check(lines, data);
    await founding.askFounders(record);
    const answer = foundingAnswer(record);
    return this.#do(dryRun, answer, () => {
      founding.order(record);
      this.#recordIntent('run', 'an operator founded the cluster');
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
      reports.report({ kind: 'data.adopted', clusterId, memberId });
      this.#audit('adopt', `member ${memberId} of cluster ${clusterId}`);
      this.#options.ends.release();
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
      this.#audit(verdict === 'confirmed' ? 'confirm-removed' : 'reject-removal', memberIdText);
    });
  }

  /** Voters stay counted in a stop: the others that answer now must be a quorum of all. A single voter needs none. */
  async #checkStop(identity: IdentityRecord, force: boolean): Promise<readonly string[]> {
    const { child, peers } = this.#options;
    if (child.view().phase === 'down') return ['etcd does not run'];
    const voters = identity.lastVoters;
    const isVoter = voters.some((voter) => voter.id === identity.memberId);
    if (!isVoter || voters.length <= 1)
      return [isVoter ? 'it is the only voter: the cluster is away while it is stopped' : 'it has no vote'];
    const answers = await peers.ask(identity, askMs);
    const quorum = quorumOf(voters.length);
    const numbers = `${answers.lists.length} of the ${voters.length - 1} other voters answer, ${quorum} are needed for a quorum`;
    if (answers.lists.length >= quorum || force) return [numbers, ...(force ? ['forced'] : [])];
    throw new OrderRefusedError(`the cluster would lose its quorum: ${numbers}`, {
      hint: 'Bring the other members back first, or add --force. If the quorum is lost already, see docs/runbook.md, "a lost quorum".',
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
      change();
      this.#options.observer.forgetData();
    });
    return { done: true, dryRun, lines };
  }

  #audit(command: string, detail: string): void {
    this.#options.reports.report({ kind: 'operator.command', command, detail });
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
