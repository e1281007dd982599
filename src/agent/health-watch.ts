import type { Clock } from '../base/clock.ts';
import type { Health } from './health.ts';
import type { Membership } from './membership.ts';
import type { ChildPort } from './ports.ts';
import type { AgentState } from './state/agent-state.ts';
import type { StuckWatch } from './stuck-watch.ts';

/**
 * An election takes one to two seconds; but a read that comes while another one hangs waits for the 7 s of that one first
 * (docs/etcd-facts.md). What nobody confirms for longer is no election any more. Unit: ms.
 */
const noQuorumAfterMs = 10_000;

/** What ails an etcd that runs, beside its phase: whether it answers, and whether a quorum stands behind it. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  #leaderLost = false;
  #notReady = '';

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** What etcd's log said of its leader; `undefined`: it has none. */
  leader(leaderId: bigint | undefined): void {
    this.#leaderLost = leaderId === undefined;
  }

  /** Why it was not ready when it was last asked while it starts. */
  notReady(because: string): void {
    this.#notReady = because;
  }

  look(): Health {
    const { child, stuck, membership } = this.#options;
    const { phase } = child.view();
    const ready = phase === 'ready';
    // A new life is asked anew: what the former one did not confirm says nothing about it.
    if (!ready) membership.notAsked();
    return {
      answers: !(ready && stuck.unresponsive),
      quorum: ready ? this.#quorum() : undefined,
      withoutQuorum: ready ? this.#withoutQuorum() : '',
      notReady: phase === 'starting' ? this.#notReady : '',
    };
  }

  #quorum(): boolean | undefined {
    if (this.#withoutQuorum() !== '') return false;
    return this.#options.membership.latest === undefined || this.#options.membership.silent ? undefined : true;
  }

  /** A frozen etcd confirms nothing either, and a learner is not asked: neither says anything about the quorum. */
  #withoutQuorum(): string {
    const { stuck, membership, clock, state } = this.#options;
    const identity = state.knownIdentity();
    const votes = identity?.lastVoters.some(({ id }) => id === identity.memberId) === true;
    const since = membership.silentSinceMs;
    if (!votes || since === undefined || stuck.missing) return '';
    const forMs = clock.monotonicMs() - since;
    if (forMs < noQuorumAfterMs) return '';
    const words = `no quorum has confirmed a read for ${Math.round(forMs / 1000)} s`;
    return this.#leaderLost ? `${words}; it knows no leader` : words;
  }
}

export interface HealthWatchOptions {
  readonly child: ChildPort;
  readonly stuck: StuckWatch;
  readonly membership: Membership;
  readonly state: AgentState;
  readonly clock: Clock;
}
