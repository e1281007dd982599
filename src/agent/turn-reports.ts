import type { Clock } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { formatId } from '../etcd/member.ts';
import type { Alarms } from './alarms.ts';
import { describeBlocker } from './blockers.ts';
import type { Ends } from './ends.ts';
import type { HealthWatch } from './health-watch.ts';
import type { News } from './life-watch.ts';
import type { Membership } from './membership.ts';
import type { Observed } from './observed.ts';
import { isLeftover, plan } from './plan.ts';
import type { ChildPort, ChildView } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord } from './state/schemas.ts';
import type { StatusWatch } from './status-watch.ts';
import type { StuckWatch } from './stuck-watch.ts';
import type { VoterWatch } from './voter-watch.ts';

export interface TurnReportsOptions {
  readonly child: ChildPort;
  readonly membership: Membership;
  readonly status: StatusWatch;
  readonly reports: Reports;
  readonly state: AgentState;
  readonly ends: Ends;
  readonly alarms: Alarms;
  readonly stuck: StuckWatch;
  readonly health: HealthWatch;
  readonly voters: VoterWatch;
  /** Why the version that the role asks for does not run; undefined if it does, or if it asks for none. */
  readonly versionWish: () => string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** A start that has not become ready after this is told; it is not ended for that. Unit: ms. */
  readonly notReadyAfterMs: () => number;
}

/** Blockers that are alarms as well, under the same name. */
export const dataAlarms = ['diskLost', 'dataOfAnotherMember', 'dataBroken', 'dataUnknown'] as const;

/** What every turn reports beside its plan: readiness, membership, leadership, an unconfirmed removal, a missing volume. */
export class TurnReports {
  readonly #options: TurnReportsOptions;
  #leader: { readonly leaderId: string; readonly term: string } | undefined;
  #loggedVolume = 'present';
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
        this.#options.health.leader(fact.leaderId);
        // Whether a quorum is left is asked at once.
        if (fresh && fact.leaderId === undefined) this.#options.membership.trigger();
        return fresh;
      default:
        return false;
    }
  }

  /** Throws an AgentError if a report was refused; everything else is done all the same. */
  async look(seen: Observed): Promise<void> {
    const { child, membership, status, voters, state, reports } = this.#options;
    this.#setAlarms(seen);
    const identity = state.knownIdentity();
    const refused = attempt(() => this.#report(seen, identity));
    if (child.view().phase === 'ready' && identity !== undefined && seen.removal.kind === 'none') {
      await membership.look(identity);
      this.#setQuorumAlarm();
      await status.look(identity);
      voters.look(identity);
    }
    if (refused !== undefined) throw refused;
    reports.save();
  }

  /** In this order: an end comes before what followed from it. */
  #report(seen: Observed, identity: IdentityRecord | undefined): void {
    const { child, ends, alarms, membership, reports, stuck } = this.#options;
    const view = child.view();
    ends.reportUntold();
    reports.tellLate();
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
    this.#setQuorumAlarm();
    alarms.set('etcdVersionDiffers', this.#options.versionWish());
    this.#setDataAlarms(seen);
    alarms.set('learnerWithoutProgress', learnerWithoutProgress(seen));
    alarms.set('removalUnconfirmed', seen.removal.kind === 'suspected' ? seen.removal.because : undefined);
    const errors = status.latest?.errors.filter((error) => error.includes('alarm:')) ?? [];
    alarms.set('etcdAlarm', errors.length > 0 ? errors.join('; ') : undefined);
  }

  /** Data that keeps etcd down is a person's to look at; the plan says which it is. */
  #setDataAlarms(seen: Observed): void {
    const made = plan(seen);
    for (const kind of dataAlarms) {
      const stands = made.kind === 'blocked' && made.by.kind === kind;
      this.#options.alarms.set(kind, stands ? describeBlocker(made.by).because : undefined);
    }
  }

  #setQuorumAlarm(): void {
    const { alarms, health } = this.#options;
    alarms.set('noQuorum', health.look().withoutQuorum || undefined);
  }

  /** A start has no limit while it progresses, and without a quorum nothing becomes ready: it is said, and left alone. */
  #notReady({ phase, life }: ChildView): string | undefined {
    const now = this.#options.clock.monotonicMs();
    // Counted from our own first look: one that is adopted is asked anew, and may have been ready for months.
    if (phase !== 'starting') this.#starting = undefined;
    else if (this.#starting?.life !== life) this.#starting = { life, sinceMs: now };
    const sinceMs = now - (this.#starting?.sinceMs ?? now);
    if (sinceMs < this.#options.notReadyAfterMs()) return undefined;
    const { notReady } = this.#options.health.look();
    return `it has been starting for ${Math.round(sinceMs / 1000)} s and is not ready${notReady === '' ? '' : `: ${notReady}`}`;
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
    const { volume } = seen;
    const before = reports.reported.missingVolume;
    if (volume.kind === 'unknown' || (volume.kind === 'missing') === (before !== '')) return;
    const path = volume.kind === 'missing' ? volume.path : before;
    if (volume.kind !== this.#loggedVolume)
      log.warn({ path }, volume.kind === 'missing' ? 'the data volume is missing' : 'the data volume is back');
    this.#loggedVolume = volume.kind;
    reports.report({ kind: volume.kind === 'missing' ? 'volume.missing' : 'volume.returned', path });
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

/** A learner that does not come nearer keeps the one learner slot. Unit: ms. Source: design, "defaults". */
const learnerStalledMs = 300_000;

function learnerWithoutProgress({ cluster }: Observed): string | undefined {
  if (cluster.kind !== 'heard' || cluster.stalledForMs < learnerStalledMs) return undefined;
  return `the learner has not come nearer to the leader for ${Math.round(cluster.stalledForMs / 60_000)} minutes`;
}
