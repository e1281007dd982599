import type { EventQuery, EventView, OutboxStatus } from '../agent/control.ts';
import type { OutboxControl } from '../agent/node-control.ts';
import type { AcceptedFact, FactPlace, NewFact, OutboxPort } from '../agent/ports.ts';
import { AgentError } from '../base/errors.ts';
import type { StoredFact } from '../upstream/fact.ts';
import type { Outbox } from '../upstream/outbox.ts';

/** There is nothing to skip, or another fact stands at the head. */
export class SkipRefusedError extends AgentError {
  readonly code = 'SKIP_REFUSED';
}

/** How many facts are read at once. */
const pageFacts = 500;

/** The outbox as the agent writes to it. `onAccepted` hears of every fact. */
export function outboxPort(outbox: Outbox, onAccepted: (fact: StoredFact) => void): OutboxPort {
  return {
    append(fact: NewFact): FactPlace {
      const stored = outbox.append(fact);
      onAccepted(stored);
      return { stream: stored.stream, seq: stored.seq };
    },
    *acceptedAfter(place: FactPlace | undefined): Iterable<AcceptedFact> {
      for (let after = place; ; ) {
        const facts = outbox.read({ ...(after === undefined ? {} : { after }), limit: pageFacts });
        yield* facts;
        const last = facts.at(-1);
        if (last === undefined) return;
        after = { stream: last.stream, seq: last.seq };
      }
    },
  };
}

/** The outbox as an operator sees it. */
export class OutboxView implements OutboxControl {
  readonly #outbox: Outbox;
  readonly #lastError: () => string;
  readonly #upstream: boolean;
  readonly #listeners = new Set<(event: EventView) => void>();

  constructor(options: {
    readonly outbox: Outbox;
    readonly lastError: () => string;
    /** Whether there is anybody to report to. */
    readonly upstream: boolean;
  }) {
    this.#upstream = options.upstream;
    this.#outbox = options.outbox;
    this.#lastError = options.lastError;
  }

  /** Tells those who follow. */
  accepted(fact: StoredFact): void {
    const view = this.#view(fact);
    for (const listener of this.#listeners) listener(view);
  }

  status(): OutboxStatus {
    const stats = this.#outbox.stats();
    const acknowledged = stats.acked?.stream === stats.stream ? stats.acked.seq : 0;
    return {
      upstream: this.#upstream,
      stream: stats.stream,
      waiting: stats.waiting,
      lastSeq: stats.high,
      acknowledgedSeq: acknowledged,
      parked: stats.parked === undefined ? null : { seq: stats.parked.seq, because: stats.parked.why },
      lastError: stats.refusing ?? this.#lastError(),
    };
  }

  events({ after, stream = this.#outbox.stats().stream, limit }: EventQuery): readonly EventView[] {
    const facts =
      after === undefined ? this.#outbox.tail(limit) : this.#outbox.read({ after: { stream, seq: after }, limit });
    return facts.map((fact) => this.#view(fact));
  }

  follow(listener: (event: EventView) => void, signal: AbortSignal): void {
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener), { once: true });
  }

  async skip(seq: number, reason: string): Promise<{ done: boolean; dryRun: boolean; lines: readonly string[] }> {
    const parked = this.#outbox.parked;
    if (parked === undefined || parked.seq !== seq) {
      throw new SkipRefusedError(
        parked === undefined ? 'no report is parked' : `report ${parked.seq} is parked at the head, not ${seq}`,
        { hint: 'Only the report that upstream refuses for ever can be skipped; `events` shows it as parked.' },
      );
    }
    const gap = this.#outbox.skip(parked, reason);
    return {
      done: true,
      dryRun: false,
      lines: [`report ${seq} (${parked.kind}) is given up; a gap takes its place`, `gap ${gap.id}`],
    };
  }

  get #unsent(): string {
    return this.#upstream ? 'waiting' : 'kept';
  }

  #view(fact: StoredFact): EventView {
    const { parked } = this.#outbox;
    const isParked = parked?.stream === fact.stream && parked.seq === fact.seq;
    const state = isParked ? 'parked' : this.#outbox.isWaiting(fact) ? this.#unsent : 'acknowledged';
    const { seq, stream, id, at, kind, certainty, data } = fact;
    return { seq, stream, id, at, kind, certainty, state, data };
  }
}
