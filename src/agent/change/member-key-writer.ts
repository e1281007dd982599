import { type Clock, timestamp } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { NotedProgress } from '../../etcd/log-regression.ts';
import { memberById } from '../../etcd/member.ts';
import { encodeMemberKey, type MemberKey, memberKeyOf } from '../../etcd/member-key.ts';
import type { Observed } from '../observed.ts';
import type { ChildPort, ClusterPort } from '../ports.ts';
import type { AgentState } from '../state/agent-state.ts';
import type { IdentityRecord } from '../state/schemas.ts';

export interface MemberKeyWriterOptions {
  readonly nodeId: string;
  readonly agentVersion: string;
  readonly cluster: ClusterPort;
  readonly child: ChildPort;
  readonly state: AgentState;
  readonly clock: Clock;
  readonly log: Log;
  /** What the member had applied for certain; undefined while nothing is known of that. */
  readonly progress: (identity: IdentityRecord) => NotedProgress | undefined;
  readonly onWritten: () => void;
  /** Where the own etcd serves its clients. */
  readonly clientUrl: () => string;
  /** As etcd itself says; empty while it has not. */
  readonly etcdVersion: () => string;
  /** A stop is ordered, and waits for somebody else's change. */
  readonly stopWaits: () => boolean;
}

/** It is written anew at this pace; who reads it believes it for 3 minutes. Unit: ms. */
const everyMs = 60_000;
/** And after this where that failed. Unit: ms. */
const againMs = 10_000;
/** Deadline of a write. Unit: ms. */
const writeMs = 1_000;
/** The same right before a stop, which it must not hold up. Unit: ms. */
const beforeStopMs = 500;

type Said = Omit<MemberKey, 'at' | 'term' | 'index'>;

/**
 * Tells the other agents of the own member, through its own etcd: on change and each minute. A failure to write is no error:
 * then nobody hears, and after 3 minutes the member's activity is unknown.
 */
export class MemberKeyWriter {
  readonly #options: MemberKeyWriterOptions;
  #said = '';
  #dueMs = 0;

  constructor(options: MemberKeyWriterOptions) {
    this.#options = options;
  }

  /** Writes if something has changed, or a minute is over. Never throws for an etcd that does not take it. */
  async look(seen: Observed): Promise<void> {
    const { clock, child, stopWaits, state } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined || child.view().phase !== 'ready' || seen.removal.kind !== 'none') return;
    // Without records of its own that it can trust an agent looks after its etcd, and has nothing to tell of it.
    if (seen.supervision.kind !== 'full') return;
    // A learner takes no writes.
    if (memberById(identity.lastMembers, identity.memberId)?.isLearner === true) return;
    const said = this.#saying(activityOf(seen, stopWaits()));
    if (JSON.stringify(said) === this.#said && clock.monotonicMs() < this.#dueMs) return;
    await this.#write(identity, said, writeMs);
  }

  /** A stop is about to begin: nobody shall choose this member as a leader any more. Never throws, and takes half a second at most. */
  async stopping(): Promise<void> {
    const { state, child } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined || child.view().phase !== 'ready') return;
    await this.#write(identity, this.#saying('stopping'), beforeStopMs);
  }

  #saying(activity: MemberKey['activity']): Said {
    const { nodeId, agentVersion, etcdVersion } = this.#options;
    return { nodeId, activity, agentVersion, etcdVersion: etcdVersion() };
  }

  async #write(identity: IdentityRecord, said: Said, deadlineMs: number): Promise<void> {
    const { cluster, clock, progress, onWritten, log } = this.#options;
    const { memberId } = identity;
    const { term, appliedIndex } = progress(identity) ?? { term: 0n, appliedIndex: 0n };
    const value = { ...said, term: term.toString(), index: appliedIndex.toString(), at: timestamp(clock) };
    const text = JSON.stringify(said);
    try {
      await cluster.keys(this.#options.clientUrl()).put(memberKeyOf(memberId), encodeMemberKey(value), { deadlineMs });
      this.#said = text;
      this.#dueMs = clock.monotonicMs() + everyMs;
      onWritten();
    } catch (error) {
      // Not at every turn: what was not taken is tried again a little later.
      this.#said = text;
      this.#dueMs = clock.monotonicMs() + againMs;
      log.debug({ error: String(error) }, "the member's key was not written");
    }
  }
}

/** @pure What the agent of a member says of it. Who stops or leaves is no target, whatever else it is. */
export function activityOf(
  { intent, role, identity, paused }: Pick<Observed, 'intent' | 'role' | 'identity' | 'paused'>,
  stopWaits: boolean,
): MemberKey['activity'] {
  if (intent.kind === 'stopped' || intent.kind === 'shutdown') return 'stopping';
  const leaves = identity !== undefined && role.kind === 'known' && role.role !== 'consensus-member';
  if (leaves || stopWaits) return 'draining';
  return paused ? 'paused' : 'active';
}
