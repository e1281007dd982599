import { type Clock, delay } from '../base/clock.ts';
import type { NotedProgress } from '../etcd/log-regression.ts';
import type { MemberId, MemberList } from '../etcd/member.ts';
import { decodeMemberKey, memberKeyOf } from '../etcd/member-key.ts';
import type { ClusterPort } from './ports.ts';
import type { IdentityRecord } from './state/schemas.ts';

/** What the other voters answered when they were asked. */
export interface PeerAnswers {
  /** The member that they were asked about. */
  readonly about: MemberId;
  /** When the asking began. Monotonic, ms. */
  readonly askedAtMs: number;
  /** Linearizable lists of the own cluster id, one for each voter that answered. */
  readonly lists: readonly MemberList[];
  /** How many other voters are known. */
  readonly others: number;
  readonly silent: number;
  /** How far the member's key says that we had come; undefined if nobody gave it. */
  readonly noted: NotedProgress | undefined;
}

/**
 * How long a voter that has us in its own list may take to have that confirmed. A voter without a quorum never can, and the
 * quorum may well be waiting for us. Unit: ms.
 */
const confirmWithinMs = 500;

/** Who has just confirmed its list reads a key at once. Unit: ms. */
const notedWithinMs = 500;

/** What one voter answered. */
interface Answer {
  readonly list: MemberList;
  readonly noted: NotedProgress | undefined;
}

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

  /** What they said of this very member; what they said of an earlier one of this node is no answer. */
  latestAbout(memberId: MemberId | undefined): PeerAnswers | undefined {
    return this.#latest?.about === memberId ? this.#latest : undefined;
  }

  /** The newest answers, about whichever member: they show that a quorum works, and nothing else. */
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
    const given = answers.filter(
      (answer): answer is Answer => answer !== undefined && answer.list.clusterId === identity.clusterId,
    );
    const lists = given.map(({ list }) => list);
    const noted = given.find((answer) => answer.noted !== undefined)?.noted;
    if (lists.length > 0) this.#lastAnswerMs = this.#clock.monotonicMs();
    this.#latest = {
      about: identity.memberId,
      askedAtMs,
      lists,
      others: others.length,
      silent: others.length - lists.length,
      noted,
    };
    return this.#latest;
  }

  /** Forgets the answers: what was said before a life began says nothing about the next. */
  forget(): void {
    this.#latest = undefined;
  }

  async #askOne(endpoints: readonly string[], identity: IdentityRecord, withinMs: number): Promise<Answer | undefined> {
    try {
      const list = await this.#askAddresses(endpoints, identity, withinMs);
      if (list === undefined) return undefined;
      // Who is removed is not started, whatever its log says.
      return { list, noted: listHas(list, identity.memberId) ? await this.#noted(endpoints, identity) : undefined };
    } catch {
      return undefined;
    }
  }

  /**
   * One address after the other: the next is asked as well once the one before has failed, or has had its share of the time.
   * Throws on silence.
   */
  async #askAddresses(
    [endpoint, ...more]: readonly string[],
    identity: IdentityRecord,
    withinMs: number,
  ): Promise<MemberList | undefined> {
    if (endpoint === undefined) throw new Error('it has no address');
    const answer = this.#confirmedList(endpoint, identity, withinMs);
    if (more.length === 0) return await answer;
    const startedMs = this.#clock.monotonicMs();
    const waited = new AbortController();
    const shareMs = withinMs / (more.length + 1);
    const share = delay(this.#clock, shareMs, waited.signal).then(() => undefined);
    const first = await Promise.race([answer.then((list) => ({ list })), share]).catch(() => undefined);
    waited.abort();
    if (first !== undefined) return first.list;
    const leftMs = withinMs - (this.#clock.monotonicMs() - startedMs);
    return await Promise.any([answer, this.#askAddresses(more, identity, leftMs)]);
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

  /** What the key of our member says; undefined if it is not given. Never throws. */
  async #noted(endpoints: readonly string[], { memberId }: IdentityRecord): Promise<NotedProgress | undefined> {
    for (const endpoint of endpoints) {
      try {
        const key = await this.#cluster.keys(endpoint).get(memberKeyOf(memberId), { deadlineMs: notedWithinMs });
        const said = key === undefined ? undefined : decodeMemberKey(key.value);
        return said === undefined ? undefined : { term: BigInt(said.term), appliedIndex: BigInt(said.index) };
      } catch {
        // The next address of the same member, if it has one.
      }
    }
    return undefined;
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
