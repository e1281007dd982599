import type { Clock } from '../base/clock.ts';
import type { MemberId } from '../etcd/member.ts';
import type { ClusterPort } from './ports.ts';
import type { IdentityRecord } from './state/schemas.ts';

/** The other voters are asked at this pace while our etcd is ready. Unit: ms. */
const everyMs = 10_000;
/** Deadline of one voter. Unit: ms. */
const withinMs = 2_000;
/** What was answered longer ago is not "now". Unit: ms. */
const freshMs = 30_000;

/**
 * Which of the other voters answer now, each for itself, with its own list: how many may fail depends on who is there and not
 * on who is in the list. Asked beside the turns, which do not wait for it; for the list, never for Status, which can kill a
 * member that is being removed.
 */
export class VoterWatch {
  readonly #cluster: ClusterPort;
  readonly #clock: Clock;
  #dueMs = 0;
  #asking = false;
  #latest:
    | { readonly by: MemberId; readonly atMs: number; readonly asked: string; readonly answered: ReadonlySet<MemberId> }
    | undefined;

  constructor(options: { readonly cluster: ClusterPort; readonly clock: Clock }) {
    this.#cluster = options.cluster;
    this.#clock = options.clock;
  }

  /** The other voters that answered lately; undefined if they were not asked. */
  answering(self: MemberId): ReadonlySet<MemberId> | undefined {
    const latest = this.#latest;
    if (latest === undefined || latest.by !== self || this.#clock.monotonicMs() - latest.atMs > freshMs)
      return undefined;
    return latest.answered;
  }

  /** Begins to ask if that is due. Never throws. */
  look(identity: IdentityRecord): void {
    const now = this.#clock.monotonicMs();
    // Who was not asked yet is not silent: a voter, or an address, that has just become known.
    if (this.#latest !== undefined && this.#latest.asked !== askedOf(identity)) {
      this.#latest = undefined;
      this.#dueMs = now;
    }
    if (this.#asking || now < this.#dueMs) return;
    this.#dueMs = now + everyMs;
    this.#asking = true;
    void this.#ask(identity).finally(() => {
      this.#asking = false;
    });
  }

  async #ask(identity: IdentityRecord): Promise<void> {
    const others = identity.lastVoters.filter(({ id }) => id !== identity.memberId);
    const answers = await Promise.all(
      others.map(async ({ id, clientUrls }) => ((await this.#answers(id, clientUrls, identity)) ? [id] : [])),
    );
    const answered = new Set(answers.flat());
    this.#latest = { by: identity.memberId, atMs: this.#clock.monotonicMs(), asked: askedOf(identity), answered };
  }

  /** False for a voter that never ran: it has told nobody its client URLs. */
  async #answers(id: MemberId, clientUrls: readonly string[], { clusterId }: IdentityRecord): Promise<boolean> {
    for (const endpoint of clientUrls) {
      const list = await this.#cluster
        .memberList(endpoint, { linearizable: false, timeoutMs: withinMs })
        .catch(() => undefined);
      if (list?.answeredBy === id && list.clusterId === clusterId) return true;
    }
    return false;
  }
}

function askedOf({ lastVoters }: IdentityRecord): string {
  return JSON.stringify(lastVoters.map(({ id, clientUrls }) => [id.toString(), ...clientUrls]));
}
