import { type Clock, delay } from '../base/clock.ts';
import type { MemberId, MemberList } from '../etcd/member.ts';
import type { ClusterPort } from './ports.ts';
import type { IdentityRecord } from './state/schemas.ts';

/** What the other voters answered when they were asked. */
export interface PeerAnswers {
  /** When the asking began. Monotonic, ms. */
  readonly askedAtMs: number;
  /** Linearizable lists of the own cluster id, one for each voter that answered. */
  readonly lists: readonly MemberList[];
  /** How many other voters are known. */
  readonly others: number;
  readonly silent: number;
}

/**
 * How long a voter that has us in its own list may take to have that confirmed. A voter without a quorum never can, and the
 * quorum may well be waiting for us. Unit: ms.
 */
const confirmWithinMs = 500;

/** Asks the other last-known voters who is in the cluster. Silence is an answer of its own. */
export class Peers {
  readonly #cluster: ClusterPort;
  readonly #clock: Clock;
  #latest: PeerAnswers | undefined;
  /** When a voter last answered anything, since this agent runs. Monotonic, ms. */
  #lastAnswerMs: number | undefined;

  constructor(options: { readonly cluster: ClusterPort; readonly clock: Clock }) {
    this.#cluster = options.cluster;
    this.#clock = options.clock;
  }

  get latest(): PeerAnswers | undefined {
    return this.#latest;
  }

  get lastAnswerMs(): number | undefined {
    return this.#lastAnswerMs;
  }

  /**
   * Asks all of them at once, each at most `withinMs`, and those that have us in their own list {@link confirmWithinMs}. Only
   * lists that a quorum confirmed are answers. Never throws.
   */
  async ask(identity: IdentityRecord, withinMs: number): Promise<PeerAnswers> {
    const askedAtMs = this.#clock.monotonicMs();
    const others = identity.lastVoters.filter((voter) => voter.id !== identity.memberId);
    const answers = await Promise.all(others.map((voter) => this.#askOne(voter.clientUrls, identity, withinMs)));
    const lists = answers.filter(
      (list): list is MemberList => list !== undefined && list.clusterId === identity.clusterId,
    );
    if (lists.length > 0) this.#lastAnswerMs = this.#clock.monotonicMs();
    this.#latest = { askedAtMs, lists, others: others.length, silent: others.length - lists.length };
    return this.#latest;
  }

  /** Forgets the answers: what was said before a life began says nothing about the next. */
  forget(): void {
    this.#latest = undefined;
  }

  async #askOne(
    endpoints: readonly string[],
    identity: IdentityRecord,
    withinMs: number,
  ): Promise<MemberList | undefined> {
    const until = this.#clock.monotonicMs() + withinMs;
    for (const endpoint of endpoints) {
      const timeoutMs = until - this.#clock.monotonicMs();
      if (timeoutMs <= 0) return undefined;
      try {
        return await this.#confirmedList(endpoint, identity, timeoutMs);
      } catch {
        // The next address of the same member, if it has one.
      }
    }
    return undefined;
  }

  /** Undefined: it has us in its own list, and cannot have that confirmed. Throws on silence. */
  async #confirmedList(endpoint: string, identity: IdentityRecord, timeoutMs: number): Promise<MemberList | undefined> {
    const confirmed = this.#cluster.memberList(endpoint, { linearizable: true, timeoutMs });
    const waited = new AbortController();
    const enough = this.#hasUs(endpoint, identity, timeoutMs).then(async (hasUs) => {
      if (hasUs) await delay(this.#clock, confirmWithinMs, waited.signal);
      return hasUs ? undefined : await confirmed;
    });
    try {
      return await Promise.race([confirmed, enough]);
    } finally {
      waited.abort();
      // Whichever of the two was slower may fail now, and nobody waits for it any more.
      void Promise.allSettled([confirmed, enough]);
    }
  }

  /** Whether the own view of the voter behind `endpoint` has us; false if it does not say. */
  async #hasUs(endpoint: string, { clusterId, memberId }: IdentityRecord, timeoutMs: number): Promise<boolean> {
    try {
      const list = await this.#cluster.memberList(endpoint, { linearizable: false, timeoutMs });
      return list.clusterId === clusterId && listHas(list, memberId);
    } catch {
      return false;
    }
  }
}

/** @pure Whether a list has the member. */
export function listHas(list: MemberList, id: MemberId): boolean {
  return list.members.some((member) => member.id === id);
}
