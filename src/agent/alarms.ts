import { type Clock, timestamp } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Reports } from './reports.ts';

/** One thing that a person should look at. */
export interface Alarm {
  readonly alarm: string;
  readonly detail: string;
  readonly since: string;
}

/** An agent has this long to see the causes of the alarms of the one before: some take a few missed probes. Unit: ms. */
const inheritedForMs = 60_000;

/**
 * Alarms that are raised now. Each is reported when it is raised and when it is cleared, not in between, by whichever
 * agent that is; what the outbox refuses is reported as soon as it takes something again.
 */
export class Alarms {
  readonly #reports: Reports;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #raised = new Map<string, Alarm>();
  /** Raised by an agent before: cleared once this one has had the time to see their cause. */
  readonly #inherited: ReadonlySet<string>;
  readonly #bornMs: number;

  constructor(options: { readonly reports: Reports; readonly clock: Clock; readonly log: Log }) {
    this.#reports = options.reports;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#inherited = new Set(options.reports.reported.alarms);
    this.#bornMs = options.clock.monotonicMs();
  }

  all(): readonly Alarm[] {
    return [...this.#raised.values()];
  }

  /** Raises or clears `alarm`; known at once, reported by {@link tell}. */
  set(alarm: string, detail: string | undefined): void {
    const before = this.#raised.get(alarm);
    if (detail === undefined) {
      this.#raised.delete(alarm);
      return;
    }
    if (before === undefined) this.#log.warn({ alarm, detail }, 'alarm');
    this.#raised.set(alarm, { alarm, detail, since: before?.since ?? timestamp(this.#clock) });
  }

  /** Reports what was raised or cleared since. Throws what the outbox throws; then it is tried again in the next turn. */
  tell(): void {
    const isYoung = this.#clock.monotonicMs() - this.#bornMs < inheritedForMs;
    for (const alarm of this.#reports.reported.alarms) {
      if (this.#raised.has(alarm) || (isYoung && this.#inherited.has(alarm))) continue;
      this.#reports.report({ kind: 'alarm.cleared', alarm });
    }
    for (const { alarm, detail } of this.#raised.values()) {
      if (!this.#reports.reported.alarms.includes(alarm)) this.#reports.report({ kind: 'alarm.raised', alarm, detail });
    }
  }
}
