import type { Clock } from '../base/clock.ts';
import type { ClusterPort, MemberStatusAnswer } from './ports.ts';
import type { IdentityRecord } from './state/schemas.ts';

/** Deadline of one Status. Unit: ms. */
const deadlineMs = 2_000;

/** Asks the own etcd for its Status now and then; never while the member may be on its way out. */
export class StatusWatch {
  readonly #cluster: ClusterPort;
  readonly #clock: Clock;
  readonly #everyMs: () => number;
  readonly #ownUrl: () => string;
  #latest: MemberStatusAnswer | undefined;
  #beforeLast: MemberStatusAnswer | undefined;
  #dueMs = 0;
  #quiet = false;

  constructor(options: {
    readonly cluster: ClusterPort;
    readonly clock: Clock;
    readonly everyMs: () => number;
    /** Where the own etcd serves clients. */
    readonly ownUrl: () => string;
  }) {
    this.#cluster = options.cluster;
    this.#clock = options.clock;
    this.#everyMs = options.everyMs;
    this.#ownUrl = options.ownUrl;
  }

  get latest(): MemberStatusAnswer | undefined {
    return this.#latest;
  }

  /**
   * The answer before that: what it had applied then is in its log for certain. etcd applies beside its own fsync, so the newest
   * may be ahead of the log after a power cut.
   */
  get beforeLast(): MemberStatusAnswer | undefined {
    return this.#beforeLast;
  }

  /** No more Status for this life: the member is being removed, and the call would make it panic. */
  quiet(): void {
    this.#quiet = true;
  }

  /** The removal did not come to be: Status is asked as before. */
  askAgain(): void {
    this.#quiet = false;
  }

  /** A new life began, or the old one is over. */
  begin(): void {
    this.#quiet = false;
    this.#latest = undefined;
    this.#beforeLast = undefined;
    this.#dueMs = 0;
  }

  /** Asks if it is due. Never throws. */
  async look(identity: IdentityRecord): Promise<void> {
    const now = this.#clock.monotonicMs();
    if (this.#quiet || now < this.#dueMs) return;
    this.#dueMs = now + this.#everyMs();
    const answer = await this.#cluster.status(this.#ownUrl(), deadlineMs).catch(() => undefined);
    if (answer?.memberId !== identity.memberId || answer.clusterId !== identity.clusterId) return;
    this.#beforeLast = this.#latest;
    this.#latest = answer;
  }
}
