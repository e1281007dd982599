import type { Clock } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { formatId } from '../etcd/member.ts';
import type { Alarms } from './alarms.ts';
import type { Ends } from './ends.ts';
import type { News } from './life-watch.ts';
import type { Membership } from './membership.ts';
import type { Observed } from './observed.ts';
import { isLeftover } from './plan.ts';
import type { ChildPort, ChildView } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord } from './state/schemas.ts';
import type { StatusWatch } from './status-watch.ts';
import type { StuckWatch } from './stuck-watch.ts';

export interface TurnReportsOptions {
  readonly child: ChildPort;
  readonly membership: Membership;
  readonly status: StatusWatch;
  readonly reports: Reports;
  readonly state: AgentState;
  readonly ends: Ends;
  readonly alarms: Alarms;
  readonly stuck: StuckWatch;
  readonly clock: Clock;
  readonly log: Log;
  /** A start that has not become ready after this is told; it is not ended for that. Unit: ms. */
  readonly notReadyAfterMs: () => number;
}

/** What every turn reports beside its plan: readiness, membership, leadership, an unconfirmed removal, a missing volume. */
export class TurnReports {
  readonly #options: TurnReportsOptions;
  #leader: { readonly leaderId: string; readonly term: string } | undefined;
  #volumeMissing = false;
  #unresponsiveLife = 0;
  #starting: { readonly life: number; readonly sinceMs: number } | undefined;
  #adopted: { readonly life: number; readonly pid: number } | undefined;

  constructor(options: TurnReportsOptions) {
    this.#options = options;
  }

  /** An etcd that an earlier agent had started was found. */
  adopted(life: number, pid: number): void {
    this.#adopted = { life, pid };
  }

  /** What etcd's log just said. Returns true if a turn should follow at once. */
  hear({ fact, fresh }: News): boolean {
    switch (fact.kind) {
      case 'memberAdded':
      case 'memberPromoted':
      case 'memberUpdated':
        if (fresh) this.#options.membership.trigger();
        return fresh;
      case 'memberRemoved':
        if (fact.memberId !== undefined && fact.memberId === fact.localId) this.#options.status.quiet();
        else if (fresh) this.#options.membership.trigger();
        return true;
      case 'permanentlyRemoved':
        this.#options.status.quiet();
        return true;
      case 'leader':
        if (fact.leaderId !== undefined)
          this.#leader = { leaderId: formatId(fact.leaderId), term: fact.term.toString() };
        return fresh;
      default:
        return false;
    }
  }

  /** Throws an AgentError if a report was refused; everything else is done all the same. */
  async look(seen: Observed): Promise<void> {
    const { child, membership, status, state, reports } = this.#options;
    this.#setAlarms(seen);
    const identity = state.knownIdentity();
    const refused = attempt(() => this.#report(seen, identity));
    if (child.view().phase === 'ready' && identity !== undefined && seen.removal.kind === 'none') {
      await membership.look(identity);
      await status.look(identity);
    }
    if (refused !== undefined) throw refused;
    reports.save();
  }

  /** In this order: an end comes before what followed from it. */
  #report(seen: Observed, identity: IdentityRecord | undefined): void {
    const { child, ends, alarms, membership, reports, stuck } = this.#options;
    const view = child.view();
    ends.reportUntold();
    if (this.#adopted !== undefined) reports.report({ kind: 'process.adopted', ...this.#adopted });
    this.#adopted = undefined;
    this.#reportVolume(seen);
    this.#reportUnconfirmed(seen);
    alarms.tell();
    if (stuck.unresponsive && view.life !== this.#unresponsiveLife) {
      reports.report({
        kind: 'process.unresponsive',
        life: view.life,
        because: 'it does not answer its liveness probe',
      });
      this.#unresponsiveLife = view.life;
    }
    if (view.phase !== 'ready' || identity === undefined) return;
    if (view.life > reports.reported.readyLife) {
      const [memberId, clusterId] = [formatId(identity.memberId), formatId(identity.clusterId)];
      reports.report({ kind: 'process.ready', life: view.life, memberId, clusterId });
      // What happened while it was down is in no line that counts as news.
      membership.trigger();
    }
    this.#reportLeader();
  }

  #setAlarms(seen: Observed): void {
    const { alarms, ends, status, child, stuck } = this.#options;
    const view = child.view();
    const { exhausted, restarts } = ends.decision;
    alarms.set(
      'restartBudgetExhausted',
      exhausted ? `${restarts} restarts within 30 minutes; one try every 5 minutes` : undefined,
    );
    alarms.set('superviseOnly', seen.supervision.kind === 'superviseOnly' ? seen.supervision.because : undefined);
    alarms.set('volumeMissing', seen.volume.kind === 'missing' ? seen.volume.path : undefined);
    alarms.set(
      'foundingLeftover',
      isLeftover(seen) ? `a founding that is ${seen.founding} is left over on a member; it is ignored` : undefined,
    );
    alarms.set('etcdOutlivesItsEnd', view.trouble === '' ? undefined : view.trouble);
    alarms.set('etcdNotReady', this.#notReady(view));
    alarms.set('etcdUnresponsive', stuck.unresponsive ? 'it does not answer its liveness probe' : undefined);
    alarms.set('removalUnconfirmed', seen.removal.kind === 'suspected' ? seen.removal.because : undefined);
    const errors = status.latest?.errors.filter((error) => error.includes('alarm:')) ?? [];
    alarms.set('etcdAlarm', errors.length > 0 ? errors.join('; ') : undefined);
  }

  /** A start has no limit while it progresses, and without a quorum nothing becomes ready: it is said, and left alone. */
  #notReady({ phase, life }: ChildView): string | undefined {
    const now = this.#options.clock.monotonicMs();
    // Counted from our own first look: one that is adopted is asked anew, and may have been ready for months.
    if (phase !== 'starting') this.#starting = undefined;
    else if (this.#starting?.life !== life) this.#starting = { life, sinceMs: now };
    const sinceMs = now - (this.#starting?.sinceMs ?? now);
    if (sinceMs < this.#options.notReadyAfterMs()) return undefined;
    return `it has been starting for ${Math.round(sinceMs / 1000)} s and is not ready`;
  }

  #reportLeader(): void {
    const { reports } = this.#options;
    const leader = this.#leader;
    if (leader === undefined || leader.leaderId === reports.reported.leaderId) return;
    const before = reports.reported.leaderId;
    reports.report({ kind: 'leader.changed', leaderId: leader.leaderId, before, term: leader.term });
  }

  #reportUnconfirmed(seen: Observed): void {
    const { reports, ...rest } = this.#options;
    const identity = rest.state.knownIdentity();
    if (seen.removal.kind !== 'suspected' || identity === undefined) return;
    const memberId = formatId(identity.memberId);
    if (reports.reported.unconfirmed.includes(memberId)) return;
    reports.report({ kind: 'member.removalUnconfirmed', memberId, evidence: [seen.removal.because] }, 'inferred');
  }

  #reportVolume(seen: Observed): void {
    const { reports, log } = this.#options;
    const missing = seen.volume.kind === 'missing';
    if (missing === this.#volumeMissing) return;
    const path = seen.volume.kind === 'missing' ? seen.volume.path : '';
    log.warn({ path }, missing ? 'the data volume is missing' : 'the data volume is back');
    reports.report(missing ? { kind: 'volume.missing', path } : { kind: 'volume.returned', path });
    this.#volumeMissing = missing;
  }
}

/** What `work` was refused with; undefined if it was done. */
function attempt(work: () => void): AgentError | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof AgentError) return error;
    throw error;
  }
}
