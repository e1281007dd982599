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
  #latest: MemberStatusAnswer | undefined;
  #dueMs = 0;
  #quiet = false;

  constructor(options: { readonly cluster: ClusterPort; readonly clock: Clock; readonly everyMs: () => number }) {
    this.#cluster = options.cluster;
    this.#clock = options.clock;
    this.#everyMs = options.everyMs;
  }

  get latest(): MemberStatusAnswer | undefined {
    return this.#latest;
  }

  /** No more Status for this life: the member is being removed, and the call would make it panic. */
  quiet(): void {
    this.#quiet = true;
  }

  /** A new life began, or the old one is over. */
  begin(): void {
    this.#quiet = false;
    this.#latest = undefined;
    this.#dueMs = 0;
  }

  /** Asks if it is due. Never throws. */
  async look(identity: IdentityRecord): Promise<void> {
    const now = this.#clock.monotonicMs();
    if (this.#quiet || now < this.#dueMs) return;
    this.#dueMs = now + this.#everyMs();
    const answer = await this.#cluster.status(identity.clientUrl, deadlineMs).catch(() => undefined);
    if (answer?.memberId === identity.memberId && answer.clusterId === identity.clusterId) this.#latest = answer;
  }
}
