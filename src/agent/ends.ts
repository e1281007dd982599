import type { Clock } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { ExitVerdict } from '../etcd/exit.ts';
import { type Treatment as EtcdTreatment, treatments } from '../etcd/exit-class.ts';
import { formatId } from '../etcd/member.ts';
import {
  afterEnd,
  afterStart,
  type Decision,
  decide,
  emptyHistory,
  type Moment,
  type RestartHistory,
  released,
  type Treatment,
} from '../supervisor/restart-policy.ts';
import type { ReportedExit } from './events.ts';
import type { StartPermission } from './observed.ts';
import type { ChildEnd, ChildView } from './ports.ts';
import type { Reports } from './reports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { EndRecord } from './state/schemas.ts';

/** How many ends are remembered. */
const keptEnds = 100;

/** How lives of etcd ended, and what follows: the memory of the restart policy. */
export class Ends {
  readonly #options: EndsOptions;
  readonly #epoch: string;
  #ends: readonly EndRecord[];
  #history: RestartHistory = emptyHistory;
  /** What the life after `afterLife` was started with. */
  #lastStart: { readonly afterLife: number; readonly startedWith: string } | null = null;

  constructor(options: EndsOptions) {
    this.#options = options;
    this.#epoch = options.random.hex(8);
    const ends = options.state.ends.read();
    this.#ends = ends.kind === 'ok' ? ends.value : [];
    const restarts = options.state.restarts.read();
    if (restarts.kind !== 'ok') return;
    const { last, endedAt, lastStart, ...rest } = restarts.value;
    this.#history = { ...rest, last: last ?? undefined, endedAt: endedAt ?? undefined };
    this.#lastStart = lastStart;
  }

  /** The newest end that was judged. */
  get last(): EndRecord | undefined {
    return this.#ends.at(-1);
  }

  /** The life of this member whose end spoke of a removal without proof, unless a later one has become ready. */
  get unconfirmedLife(): number | undefined {
    const own = this.#ends.filter((end) => end.memberId === this.#memberId());
    const last = own.findLast((end) => end.class === 'removalUnconfirmed' || end.readyAtMs !== null);
    // The newest one has no record of its end yet, but its readiness was reported, maybe by another agent.
    const refuted = last === undefined || this.#options.reports.reported.readyLife > last.life;
    return refuted || last.class !== 'removalUnconfirmed' ? undefined : last.life;
  }

  /** Newest first. */
  get all(): readonly EndRecord[] {
    return [...this.#ends].reverse();
  }

  /** Starts that cost budget, within the last 30 minutes; whether the budget is exhausted. */
  get decision(): Decision {
    return decide(this.#history, this.#now());
  }

  /** Takes a verdict for good: it is counted, remembered and reported. `startingWith`: what it would be started with now. */
  settle(end: ChildEnd, verdict: ExitVerdict, view: ChildView, startingWith: string): void {
    const noticedAtMs = this.#options.clock.wallMs();
    const started = this.#lastStart;
    const record: EndRecord = {
      life: end.life,
      memberId: this.#memberId(),
      class: verdict.class,
      because: verdict.because,
      ...codeAndSignal(end),
      panicSeen: verdict.panicSeen,
      startedAtMs: view.startedAtMs ?? end.endedAtMs ?? noticedAtMs,
      readyAtMs: view.readyAtMs ?? null,
      endedAtMs: end.endedAtMs ?? null,
      noticedAtMs,
      startedWith: started !== null && end.life > started.afterLife ? started.startedWith : startingWith,
    };
    const exhaustedBefore = this.#history.exhausted;
    const treatment = policyTreatment(treatments[verdict.class]);
    this.#history = afterEnd(
      this.#history,
      { treatment, readyMs: view.readyMs, at: this.#now() },
      this.#options.random.fraction(),
    );
    this.#ends = [...this.#ends, record].slice(-keptEnds);
    this.#save();
    const { reports, log } = this.#options;
    log.warn({ life: end.life, class: verdict.class, exit: end.exit, because: verdict.because }, 'etcd has ended');
    try {
      this.reportUntold();
      const { due, restarts } = this.decision;
      if (treatment.kind === 'restart' || treatment.kind === 'retry') {
        const delayMs = due.kind === 'wait' ? Math.round(due.ms) : 0;
        reports.report({ kind: 'process.restarting', class: verdict.class, delayMs, restarts });
      }
      if (this.#history.exhausted && !exhaustedBefore) {
        reports.report({ kind: 'process.restartBudgetExhausted', class: verdict.class, restarts });
      }
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      log.warn({ error: describeError(error), hint: error.hint }, 'the end of etcd is not reported yet');
    }
  }

  /**
   * Reports every end that upstream has not been told: one that the disk refused, or that an agent had judged when it was
   * killed. Throws an AgentError if the disk refuses again.
   */
  reportUntold(): void {
    const { reports } = this.#options;
    for (const end of this.#ends) {
      if (end.life <= reports.reported.exitedLife) continue;
      reports.report({ kind: 'process.exited', life: end.life, exit: reportedExit(end) });
    }
  }

  /**
   * An end of an earlier life that no record names, since the disk refused it and the agent that saw it is gone: it is
   * remembered and reported, and the restarts after it were counted by nobody.
   */
  settleEarlier(end: ChildEnd, verdict: ExitVerdict, startedAtMs: number | undefined): void {
    const noticedAtMs = this.#options.clock.wallMs();
    const record: EndRecord = {
      life: end.life,
      memberId: this.#memberId(),
      class: verdict.class,
      because: verdict.because,
      ...codeAndSignal(end),
      panicSeen: verdict.panicSeen,
      startedAtMs: startedAtMs ?? end.endedAtMs ?? noticedAtMs,
      readyAtMs: null,
      endedAtMs: end.endedAtMs ?? null,
      noticedAtMs,
      startedWith: '',
    };
    this.#ends = [...this.#ends, record].sort((one, other) => one.life - other.life).slice(-keptEnds);
    this.#options.log.warn({ life: end.life, class: verdict.class, exit: end.exit }, 'an earlier end was not recorded');
    this.#save();
  }

  /** The class of the newest end changes when a removal that was only suspected is proven or refuted. */
  reclassify(verdict: Pick<ExitVerdict, 'class' | 'because'>): void {
    const last = this.#ends.at(-1);
    if (last === undefined || last.class === verdict.class) return;
    this.#ends = [...this.#ends.slice(0, -1), { ...last, class: verdict.class, because: verdict.because }];
    this.#save();
  }

  /** Etcd is about to be started for the life after `afterLife`: a later change is no cure of what ends it. */
  starting(afterLife: number, startedWith: string): void {
    this.#lastStart = { afterLife, startedWith };
    this.#save();
  }

  /** A start was made; those that follow a failure cost budget. */
  started(): void {
    this.#history = afterStart(this.#history, this.#now());
    this.#save();
  }

  /** What held the next start has changed, or an operator said start. */
  release(): void {
    this.#history = released(this.#history);
    this.#save();
  }

  /** May etcd be started now? `startingWith`: what it would be started with, as one comparable text. */
  permission(startingWith: string, recordedAsHeld: boolean): StartPermission {
    const last = this.last;
    const { due, inRow, exhausted } = this.decision;
    switch (due.kind) {
      case 'now':
        return {
          kind: 'now',
          because: last === undefined ? 'etcd is to run' : `etcd is to run; it ended: ${last.class}`,
        };
      case 'wait': {
        const because = exhausted
          ? `it ended too often (${last?.class}); one try every 5 minutes`
          : `it ended (${last?.class}${last === undefined || last.because === '' ? '' : `: ${last.because}`}), try ${inRow + 1} is due later`;
        return { kind: 'later', inMs: due.ms, because };
      }
      case 'hold':
      case 'never': {
        const until = due.kind === 'hold' ? due.until : 'operator';
        const changed = last !== undefined && last.startedWith !== '' && last.startedWith !== startingWith;
        if (changed && (until === 'configChange' || until === 'versionChange')) {
          return { kind: 'now', because: 'the configuration has changed since it was refused' };
        }
        // Whether the directory is still held by somebody is looked at before each start.
        if (until === 'unlocked') return { kind: 'now', because: 'nobody holds its data directory any more' };
        return {
          kind: 'hold',
          class: last?.class ?? 'unknown',
          until,
          because: last?.because ?? '',
          recorded: recordedAsHeld,
        };
      }
    }
  }

  #memberId(): string {
    const identity = this.#options.state.knownIdentity();
    return identity === undefined ? '' : formatId(identity.memberId);
  }

  #now(): Moment {
    const { clock } = this.#options;
    return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs(), epoch: this.#epoch };
  }

  /** Kept in memory if the disk refuses: counting goes on, and supervision never stops for it. */
  #save(): void {
    const { state, log } = this.#options;
    try {
      state.ends.write([...this.#ends]);
      const { last, endedAt, restarts, ...rest } = this.#history;
      const policy = { ...rest, restarts: [...restarts], last: last ?? null, endedAt: endedAt ?? null };
      state.restarts.write({ ...policy, lastStart: this.#lastStart });
    } catch (error) {
      log.warn({ error: describeError(error) }, 'the ends of etcd could not be written down');
    }
  }
}

export interface EndsOptions {
  readonly state: AgentState;
  readonly reports: Reports;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** @pure An end as it is reported. */
export function reportedExit(end: EndRecord): ReportedExit {
  return { class: end.class, code: end.code, signal: end.signal, panicSeen: end.panicSeen, because: end.because };
}

function codeAndSignal({ exit }: ChildEnd): { code: number | null; signal: string | null } {
  return { code: exit.kind === 'code' ? exit.code : null, signal: exit.kind === 'signal' ? exit.name : null };
}

/** etcd's classes know more kinds of treatment than the policy counts; whether an unconfirmed removal may be tried is asked besides. */
function policyTreatment(treatment: EtcdTreatment): Treatment {
  switch (treatment.kind) {
    case 'ask':
    case 'retry':
      return { kind: 'retry', firstMs: treatment.firstMs, maxMs: treatment.maxMs };
    case 'byDesiredState':
      return { kind: 'asked' };
    case 'restart':
    case 'terminal':
    case 'hold':
      return treatment;
  }
}
