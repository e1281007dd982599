import { type Clock, timestamp } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { DataOfMember } from '../etcd/data-dir.ts';
import { logRegression, type NotedProgress } from '../etcd/log-regression.ts';
import type { MemberStatusAnswer } from './ports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord, ProgressRecord } from './state/schemas.ts';

export interface LogProgressOptions {
  readonly state: AgentState;
  readonly clock: Clock;
  readonly log: Log;
  /** The Status before the last one, of this life of etcd. */
  readonly beforeLast: () => MemberStatusAnswer | undefined;
}

/** Written at this pace. Unit: ms. */
const everyMs = 60_000;

type Self = Pick<IdentityRecord, 'clusterId' | 'memberId'>;

/**
 * How far the own member had come for certain, in a file of its own and in the member's key: before a start the end of the log is
 * compared with it. A voter whose data was put back from a copy loses acknowledged writes without a sound.
 */
export class LogProgress {
  readonly #options: LogProgressOptions;
  #dueMs = 0;
  /** From the member's key, as another member gave it before a start. */
  #heard: (NotedProgress & { readonly self: Self }) | undefined;
  /** The key was written in this life, so it says nothing of what was there before. */
  #keyIsNew = false;

  constructor(options: LogProgressOptions) {
    this.#options = options;
  }

  /** For the member's key. */
  noted(self: Self): NotedProgress | undefined {
    const seen = this.#options.beforeLast();
    if (seen !== undefined) return { term: seen.raftTerm, appliedIndex: seen.raftAppliedIndex };
    const record = this.#record(self);
    // What an operator gave up is not told again.
    return record?.accepted === null ? record : undefined;
  }

  /** Keeps what is known, at most each minute; `now`: etcd is about to be stopped. Never throws for a disk that refuses. */
  keep(self: Self, how: 'now' | 'ifDue' = 'ifDue'): void {
    const { clock, beforeLast } = this.#options;
    const seen = beforeLast();
    if (seen === undefined || (how === 'ifDue' && clock.monotonicMs() < this.#dueMs)) return;
    this.#dueMs = clock.monotonicMs() + everyMs;
    const accepted = this.#keyIsNew ? null : (this.#record(self)?.accepted ?? null);
    this.#tryToWrite(self, { term: seen.raftTerm, appliedIndex: seen.raftAppliedIndex, accepted });
  }

  /** The member's key, as another member gave it. Kept at once where it knows more than the file: nobody may give it again. */
  heard(self: Self, noted: NotedProgress): void {
    const record = this.#record(self);
    const known = this.#heard === undefined || !isSame(this.#heard.self, self) ? record : furthest(record, this.#heard);
    if (known !== undefined && known.term >= noted.term && known.appliedIndex >= noted.appliedIndex) return;
    const both = furthest(known, noted);
    this.#heard = { ...both, self };
    this.#tryToWrite(self, { ...both, accepted: record?.accepted ?? null });
  }

  /** Why the log must not be started; undefined if it may. */
  regression(self: Self, data: DataOfMember): string | undefined {
    const record = this.#record(self);
    const heard = this.#heard !== undefined && isSame(this.#heard.self, self) ? this.#heard : undefined;
    for (const noted of [record, heard]) {
      if (noted === undefined || isAccepted(noted, record?.accepted ?? null)) continue;
      const because = logRegression(noted, data);
      if (because !== undefined) return because;
    }
    return undefined;
  }

  /** An operator's word: what was noted so far counts no more. Throws StateNotWrittenError, StateNotOursError. */
  accept(self: Self): void {
    const { state, clock } = this.#options;
    const record = this.#record(self);
    const given = furthest(record, this.#heard ?? { term: 0n, appliedIndex: 0n });
    const at = timestamp(clock);
    state.progress.write({ ...idsOf(self), ...given, accepted: { ...given, at }, at });
    this.#heard = undefined;
    this.#keyIsNew = false;
  }

  /** The member's key was written by this life of etcd. */
  keyWritten(): void {
    this.#keyIsNew = true;
  }

  /** A life ended, or began. */
  begin(): void {
    this.#keyIsNew = false;
    this.#dueMs = 0;
  }

  #record(self: Self): ProgressRecord | undefined {
    const reading = this.#options.state.progress.read();
    return reading.kind === 'ok' && isSame(reading.value, self) ? reading.value : undefined;
  }

  #tryToWrite(self: Self, value: NotedProgress & Pick<ProgressRecord, 'accepted'>): void {
    const { state, clock, log } = this.#options;
    // Supervise-only: what is there is not written over.
    if (state.supervision().kind !== 'full') return;
    try {
      state.progress.write({ ...idsOf(self), ...value, at: timestamp(clock) });
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      log.warn({ error: describeError(error) }, 'how far the log has come could not be written down');
    }
  }
}

function idsOf({ clusterId, memberId }: Self): Self {
  return { clusterId, memberId };
}

function isSame(one: Self, other: Self): boolean {
  return one.clusterId === other.clusterId && one.memberId === other.memberId;
}

/** Both numbers only grow in an intact log. */
function furthest(one: NotedProgress | undefined, other: NotedProgress): NotedProgress {
  if (one === undefined) return { term: other.term, appliedIndex: other.appliedIndex };
  return { term: larger(one.term, other.term), appliedIndex: larger(one.appliedIndex, other.appliedIndex) };
}

function larger(one: bigint, other: bigint): bigint {
  return one < other ? other : one;
}

/** What goes beyond what the operator gave up counts again. */
function isAccepted(noted: NotedProgress, accepted: ProgressRecord['accepted']): boolean {
  return accepted !== null && noted.term <= accepted.term && noted.appliedIndex <= accepted.appliedIndex;
}
