import { backoffMs } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { UnhealthyClusterError } from '../etcd/errors.ts';
import { describeBlocker } from './blockers.ts';
import type { Executor } from './executor.ts';
import type { Observed } from './observed.ts';
import type { Observer } from './observer.ts';
import { plan } from './plan.ts';
import { rolePlan } from './reported.ts';
import type { Reports } from './reports.ts';
import type { Plan } from './step.ts';

export interface AgentOptions {
  readonly observer: Observer;
  readonly executor: Executor;
  readonly reports: Reports;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Rest between two turns when nothing wakes the agent, ± 20 %. Unit: ms. */
  readonly idleTurnMs: () => number;
  /** What belongs to every turn beside the plan: reports, lists, alarms. Must not throw for a silent world. */
  readonly beside: (seen: Observed) => Promise<void>;
  /** Called with the plan of each turn; for STATUS= and metrics. */
  readonly onPlan: (made: Plan, seen: Observed) => void;
}

/** Delay before a step that failed is tried again. Unit: ms. */
const failedStep = { firstMs: 1_000, maxMs: 60_000 };
/** Etcd's rule for changes, and some jitter. Unit: ms. */
const unhealthyMs = 5_000;
/** Files, binary and the holder of the data are looked at again at this pace while they stand in the way. Unit: ms. */
const preflightAgainMs = 2_000;
/** What is mended outside of this agent, by people or by the other members. */
const askedAgainSoon: ReadonlySet<string> = new Set([
  'preflight',
  'changeRefused',
  'clusterSilent',
  'oldMemberListed',
  'joinExpired',
  'spaceForJoin',
]);
/** The same refusal is logged this often. Unit: ms. */
const repeatMs = 60_000;
/** So many steps in a row without a rest are a loop, not progress. */
const maxStepsInRow = 20;

/** Nothing is done on what was seen longer ago: the agent, or its machine, was stopped meanwhile. Unit: ms. */
const staleMs = 15_000;
/** On a machine that is always this slow the agent acts all the same. */
const maxStaleInRow = 3;

/** The loop: what wakes it, how long it rests, how it ends. Turns and commands never overlap. */
export class Agent {
  readonly #options: AgentOptions;
  #wake: (() => void) | undefined;
  #woken = false;
  #queue: Promise<unknown> = Promise.resolve();
  #failures = 0;
  #failedStep = '';
  #stepsInRow = 0;
  #staleInRow = 0;
  #latest: { readonly plan: Plan; readonly seen: Observed } | undefined;
  #reportedPlan: string;
  #loggedPlan = '';
  readonly #refusedReports = new Map<string, number>();
  #refusals: Refusal[] = [];
  #failing: Refusal | undefined;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#reportedPlan = options.reports.reported.rolePlan;
  }

  /** The plan of the last turn, with what it was made from. */
  get latest(): { readonly plan: Plan; readonly seen: Observed } | undefined {
    return this.#latest;
  }

  /** What was refused or failed lately, newest first. */
  get refusals(): readonly Refusal[] {
    return this.#refusals;
  }

  /** Why the step that is being tried again did not succeed; undefined if the last one did, or nothing is to be done. */
  get failing(): Refusal | undefined {
    return this.#failing;
  }

  /** Something happened: the next turn is taken now. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  /** Runs `work` between two turns, then takes a turn. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(work);
    this.#queue = run.catch(() => {});
    try {
      return await run;
    } finally {
      this.wake();
    }
  }

  /** Takes turns until `signal` aborts. An InvariantError or a bug ends it by throwing: the agent is started anew, etcd runs on. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
    while (!signal.aborted) {
      this.#woken = false;
      const restMs = await this.#quietly(() => this.#turn());
      if (!signal.aborted && !this.#woken) await this.#rest(restMs);
    }
    await this.#queue;
  }

  /** Like {@link exclusively}, without waking: a turn does not wake itself. */
  async #quietly<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(work);
    this.#queue = run.catch(() => {});
    return await run;
  }

  /** The plan of a turn taken now; nothing is done. */
  async planNow(): Promise<{ readonly plan: Plan; readonly seen: Observed }> {
    const seen = await this.#options.observer.observe();
    return { plan: plan(seen), seen };
  }

  /** One turn: look, report, decide, do one step. Returns how long to rest. Unit: ms. */
  async #turn(): Promise<number> {
    const { observer, onPlan, beside, clock, log } = this.#options;
    const lookedAt = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const seen = await observer.observe();
    await this.#reporting(() => beside(seen));
    const made = plan(seen);
    this.#latest = { plan: made, seen };
    onPlan(made, seen);
    await this.#reporting(async () => this.#reportPlan(made, seen));
    if (made.kind !== 'act') return this.#restAfter(made);
    // Monotonic time stands still while the machine is suspended, wall time may jump: whichever says more counts.
    const agoMs = Math.max(clock.monotonicMs() - lookedAt.monotonicMs, clock.wallMs() - lookedAt.wallMs);
    if (agoMs > staleMs && this.#staleInRow < maxStaleInRow) {
      this.#staleInRow++;
      log.warn({ agoMs, step: made.step.kind }, 'what was seen is too old to act on; it is looked again');
      return 0;
    }
    this.#staleInRow = 0;
    return await this.#act(made);
  }

  async #act(made: Plan & { readonly kind: 'act' }): Promise<number> {
    const { executor, log, clock, random, observer } = this.#options;
    const { step, because } = made;
    log.info({ step: step.kind, because }, 'step');
    try {
      await executor.execute(step, because);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#failures = this.#failedStep === step.kind ? this.#failures + 1 : 1;
      this.#failedStep = step.kind;
      this.#refuse(step.kind, error);
      log.warn({ step: step.kind, error: describeError(error), hint: error.hint }, 'the step failed');
      // etcd itself wants to have been connected for 5 s: asked again sooner, it says the same.
      const growth = error instanceof UnhealthyClusterError ? { ...failedStep, firstMs: unhealthyMs } : failedStep;
      return backoffMs(this.#failures, growth, random.fraction());
    } finally {
      observer.forgetData();
    }
    this.#failures = 0;
    this.#failedStep = '';
    this.#failing = undefined;
    this.#stepsInRow++;
    if (this.#stepsInRow < maxStepsInRow) return 0;
    log.error({ step: step.kind, at: clock.wallMs() }, 'too many steps without a rest');
    return failedStep.firstMs;
  }

  #restAfter(made: Exclude<Plan, { kind: 'act' }>): number {
    this.#stepsInRow = 0;
    this.#failing = undefined;
    const { observer, idleTurnMs, random } = this.#options;
    const idleMs = idleTurnMs() * (0.8 + 0.4 * random.fraction());
    // What stands in the way of a start is mended outside of the agent: nothing wakes it then.
    const soonMs =
      made.kind === 'blocked' && askedAgainSoon.has(made.by.kind) ? preflightAgainMs : Number.POSITIVE_INFINITY;
    const waitingMs = made.kind === 'waiting' ? made.inMs : soonMs;
    return Math.min(idleMs, waitingMs, observer.nextLookMs() ?? Number.POSITIVE_INFINITY);
  }

  #rest(restMs: number): Promise<void> {
    if (restMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(restMs, () => this.#wake?.());
      this.#wake = () => {
        cancel();
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Reports that fail (a full disk) do not stop supervision; the next turn tries again. */
  async #reporting(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const { clock, log } = this.#options;
      const [text, now] = [describeError(error), clock.monotonicMs()];
      // A disk that is full stays so for a while: its word is not repeated in every turn.
      for (const [told, atMs] of this.#refusedReports) if (now - atMs >= repeatMs) this.#refusedReports.delete(told);
      if (this.#refusedReports.has(text)) return;
      this.#refusedReports.set(text, now);
      log.warn({ error: text, hint: error.hint }, 'a report was not accepted; it is tried again');
    }
  }

  /** Blocked and converged are told upstream when they change, not in every turn, nor by every agent. */
  #reportPlan(made: Plan, seen: Observed): void {
    const { reports, log } = this.#options;
    if (made.kind === 'act' || made.kind === 'waiting') return;
    const text = made.kind === 'blocked' ? describeBlocker(made.by) : { because: made.because, hint: '' };
    const event =
      made.kind === 'blocked'
        ? ({ kind: 'role.blocked', by: made.by.kind, because: text.because } as const)
        : ({ kind: 'role.converged', role: seen.role.kind === 'known' ? seen.role.role : '' } as const);
    const key = rolePlan(event);
    if (key !== this.#loggedPlan) {
      if (event.kind === 'role.blocked') log.warn({ by: event.by, ...text }, 'blocked');
      else log.info({ because: text.because }, 'converged');
    }
    this.#loggedPlan = key;
    if (key === this.#reportedPlan) return;
    // That etcd runs while the role is unknown is nobody's role fulfilled.
    if (event.kind === 'role.blocked' || event.role !== '') reports.report(event);
    this.#reportedPlan = key;
  }

  #refuse(what: string, error: AgentError): void {
    this.#failing = this.refused(what, describeError(error), error.hint);
  }

  /** Something was refused: remembered for `why`. What is refused again stands there once, with its newest time. */
  refused(what: string, because: string, hint: string): Refusal {
    const refusal = { at: new Date(this.#options.clock.wallMs()).toISOString(), what, because, hint };
    const others = this.#refusals.filter((one) => one.what !== what || one.because !== because);
    this.#refusals = [refusal, ...others].slice(0, 20);
    return refusal;
  }
}

/** Something that was refused or failed, for `why`. */
export interface Refusal {
  readonly at: string;
  readonly what: string;
  readonly because: string;
  readonly hint: string;
}
