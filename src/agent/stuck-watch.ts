import type { Clock } from '../base/clock.ts';
import type { Peers } from './peers.ts';
import type { Activity, ChildPort } from './ports.ts';
import { isStuck, isStuckInStart } from './stuck.ts';

/** Follows liveness probes and activity of the living etcd, for exit class 14. */
export class StuckWatch {
  readonly #child: ChildPort;
  readonly #peers: Peers;
  readonly #clock: Clock;
  readonly #missesUntilStuck: () => number;
  readonly #lastStuckEndMs: () => number | undefined;
  #misses = 0;
  #before: Activity | undefined;
  #firstMissMs = 0;
  #lastRestartMs: number | undefined;

  constructor(options: {
    readonly child: ChildPort;
    readonly peers: Peers;
    readonly clock: Clock;
    readonly missesUntilStuck: () => number;
    /** When an etcd last ended because it was stuck, by the records of this node. Wall time, ms. */
    readonly lastStuckEndMs: () => number | undefined;
  }) {
    this.#child = options.child;
    this.#peers = options.peers;
    this.#clock = options.clock;
    this.#missesUntilStuck = options.missesUntilStuck;
    this.#lastStuckEndMs = options.lastStuckEndMs;
  }

  /** Enough liveness probes were missed in a row to call it unresponsive. */
  get unresponsive(): boolean {
    return this.#misses >= this.#missesUntilStuck();
  }

  /** The last liveness probe was not answered. */
  get missing(): boolean {
    return this.#misses > 0;
  }

  /** One liveness probe was answered. */
  answered(): void {
    this.#misses = 0;
    this.#before = undefined;
  }

  /** One liveness probe was missed. */
  missed(): void {
    this.#misses++;
    if (this.#misses > 1) return;
    this.#before = this.#child.activity();
    this.#firstMissMs = this.#clock.monotonicMs();
  }

  /** It was restarted for being stuck. */
  restarted(): void {
    this.#lastRestartMs = this.#clock.monotonicMs();
    this.answered();
  }

  /** By this agent, or by one before it. A wall clock that went back makes it 0: rather no restart than one too many. */
  #sinceLastRestartMs(): number | undefined {
    if (this.#lastRestartMs !== undefined) return this.#clock.monotonicMs() - this.#lastRestartMs;
    const endedAt = this.#lastStuckEndMs();
    return endedAt === undefined ? undefined : Math.max(0, this.#clock.wallMs() - endedAt);
  }

  /** True if etcd is alive and does nothing, while the others make progress. */
  look(): boolean {
    const latest = this.#peers.latest;
    const sinceLastMs = this.#sinceLastRestartMs();
    const view = this.#child.view();
    if (view.phase === 'starting') return isStuckInStart(view.idleMs, sinceLastMs);
    return isStuck({
      misses: this.#misses,
      missesUntilStuck: this.#missesUntilStuck(),
      before: this.#before,
      now: this.#child.activity(),
      // A linearizable list that was given after our first miss was confirmed by a quorum without us.
      othersProgress: latest !== undefined && latest.askedAtMs > this.#firstMissMs && latest.lists.length > 0,
      sinceLastMs,
    });
  }
}
