import { type Clock, timestamp } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';
import { formatId } from '../etcd/member.ts';
import type { AgentEvent, Certainty } from './events.ts';
import type { FactPlace, OutboxPort } from './ports.ts';
import { nothingReported, type Reported, roleDocument, withFact } from './reported.ts';
import type { AgentState } from './state/agent-state.ts';

/** How many events wait in memory for an outbox that refuses. */
const keptUntold = 100;

/** Reports facts upstream and remembers what was reported, so that a restart repeats nothing and forgets nothing. */
export class Reports {
  readonly #outbox: OutboxPort;
  readonly #state: AgentState;
  readonly #clock: Clock;
  #reported: Reported = nothingReported;
  #place: FactPlace | undefined;
  #dirty = false;
  #roleDocument: string;
  /** What was done and could not be reported yet, oldest first. */
  #untold: { readonly event: AgentEvent; readonly at: string }[] = [];

  /** Reads what was reported, and folds in the facts that were accepted after that was last written down. */
  constructor(options: { readonly outbox: OutboxPort; readonly state: AgentState; readonly clock: Clock }) {
    this.#outbox = options.outbox;
    this.#state = options.state;
    this.#clock = options.clock;
    const reading = options.state.reported.read();
    if (reading.kind === 'ok') {
      const { place, members, ...rest } = reading.value;
      this.#reported = { ...rest, members: members ?? undefined };
      this.#place = place ?? undefined;
    }
    for (const fact of options.outbox.acceptedAfter(this.#place)) {
      // The data of our own facts is the event without its kind; gaps and other kinds change nothing.
      this.#reported = withFact(this.#reported, { kind: fact.kind, ...fact.data } as AgentEvent);
      this.#place = { stream: fact.stream, seq: fact.seq };
      this.#dirty = true;
    }
    this.#roleDocument = this.#reported.roleDocument;
  }

  get reported(): Reported {
    return this.#reported;
  }

  /**
   * Reports one event: when this returns it is on disk and will arrive. Throws an AgentError if the disk refuses; then
   * nothing was reported, and a step that makes the fact unrecoverable must not be taken.
   */
  report(event: AgentEvent, certainty: Certainty = 'observed'): void {
    this.#report(event, timestamp(this.#clock), certainty);
  }

  /**
   * Reports what is done already, so that a refusal changes nothing: it is told by {@link tellLate}, as of now. Kept in memory,
   * the newest {@link keptUntold}: an agent that ends before the outbox takes it again takes it along.
   */
  tell(event: AgentEvent): void {
    this.#untold = [...this.#untold, { event, at: timestamp(this.#clock) }].slice(-keptUntold);
    try {
      this.tellLate();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
    }
  }

  /** Tells what became of a role document, unless that is what was told last: each agent reads the same one at its start. */
  tellRole(event: Parameters<typeof roleDocument>[0]): void {
    const text = roleDocument(event);
    if (text === this.#roleDocument) return;
    this.#roleDocument = text;
    this.tell(event);
  }

  /** Reports what the outbox has refused so far. Throws an AgentError if it refuses again. */
  tellLate(): void {
    for (let first = this.#untold[0]; first !== undefined; first = this.#untold[0]) {
      this.#report(first.event, first.at, 'observed');
      this.#untold.shift();
    }
  }

  #report(event: AgentEvent, at: string, certainty: Certainty): void {
    const { kind, ...data } = event;
    const identity = this.#state.knownIdentity();
    const about =
      identity === undefined ? {} : { cluster: formatId(identity.clusterId), member: formatId(identity.memberId) };
    const place = this.#outbox.append({ kind, certainty, at, important: isImportant(kind), data, ...about });
    this.#reported = withFact(this.#reported, event);
    this.#place = place;
    this.#dirty = true;
  }

  /** Writes down what was reported. Harmless to leave out: it is folded from the outbox at the next start. */
  save(): void {
    if (!this.#dirty) return;
    const { members, ...rest } = structuredClone(this.#reported) as Mutable<Reported>;
    this.#state.reported.write({ ...rest, members: members ?? null, place: this.#place ?? null });
    this.#dirty = false;
  }
}

/** The same, as the schema of the file has it. */
type Mutable<T> = T extends readonly (infer E)[]
  ? Mutable<E>[]
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T;

/** Facts that are given up last when the outbox is full: membership, and what became of the data. */
function isImportant(kind: AgentEvent['kind']): boolean {
  return /^(member|cluster|data|role)\./.test(kind);
}
