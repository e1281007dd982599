import type { Member } from '../../src/etcd/member.ts';

/** A change that the model cluster has committed, under its raft index. */
export interface Commit {
  readonly index: number;
  readonly transition: 'founded' | 'added' | 'promoted' | 'removed' | 'urlsChanged';
  readonly memberId: string;
  readonly peerUrls: readonly string[];
  /** `added`: as a learner. */
  readonly learner: boolean;
}

/** What somebody wants to do to the cluster. `pick` chooses among the members that it can be done to. */
export interface Wish {
  readonly kind: 'addLearner' | 'addVoter' | 'promote' | 'remove' | 'updateUrls';
  readonly pick: number;
  readonly url: number;
}

/** The members of a cluster, and all changes that it has committed, in order. The first founder is never removed. */
export class ModelCluster {
  readonly commits: Commit[] = [];
  #members: readonly Member[] = [];
  #nextId: number;

  constructor(founders: readonly number[], firstId: number) {
    this.#nextId = firstId;
    for (const id of [...founders].sort((a, b) => a - b)) {
      const member = newMember(id, 'F', false);
      this.#members = [...this.#members, member];
      this.#commit('founded', member);
    }
  }

  /** As etcd lists them: by id. */
  get members(): readonly Member[] {
    return [...this.#members].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Commits what is wished, if it is possible; gives the id of a member that was added. */
  make({ kind, pick, url }: Wish): string | undefined {
    switch (kind) {
      case 'addLearner':
      case 'addVoter': {
        // Ids are as if drawn at random: neither in the order of adding nor above those of the founders.
        this.#nextId = 1 + ((this.#nextId * 7_919 + 13) % 1_048_573);
        const member = newMember(this.#nextId, 'A', kind === 'addLearner');
        if (this.commits.some(({ memberId }) => memberId === member.id.toString(16))) return undefined;
        this.#members = [...this.#members, member];
        this.#commit('added', member);
        return member.id.toString(16);
      }
      case 'promote':
        this.#change('promoted', pick, ({ isLearner }) => isLearner, { isLearner: false });
        return undefined;
      case 'updateUrls':
        this.#change('urlsChanged', pick, ({ isLearner }) => !isLearner, { peerUrls: [`U${url}`] });
        return undefined;
      case 'remove': {
        const member = this.#picked(pick, ({ id }) => id !== this.#first);
        if (member === undefined) return undefined;
        this.#members = this.#members.filter((one) => one !== member);
        this.#commit('removed', member);
        return undefined;
      }
    }
  }

  get #first(): bigint {
    return BigInt(`0x${this.commits[0]?.memberId ?? '0'}`);
  }

  #change(
    transition: Commit['transition'],
    pick: number,
    mayBe: (member: Member) => boolean,
    news: Partial<Member>,
  ): void {
    const isNews = (member: Member) => news.peerUrls === undefined || news.peerUrls.join() !== member.peerUrls.join();
    const member = this.#picked(pick, (one) => mayBe(one) && isNews(one));
    if (member === undefined) return;
    const changed = { ...member, ...news };
    this.#members = this.#members.map((one) => (one === member ? changed : one));
    this.#commit(transition, changed);
  }

  #picked(pick: number, mayBe: (member: Member) => boolean): Member | undefined {
    const members = this.members.filter(mayBe);
    return members[pick % Math.max(1, members.length)];
  }

  #commit(transition: Commit['transition'], { id, peerUrls, isLearner }: Member): void {
    const index = this.commits.length + 1;
    this.commits.push({ index, transition, memberId: id.toString(16), peerUrls, learner: isLearner });
  }
}

function newMember(id: number, url: string, isLearner: boolean): Member {
  return { id: BigInt(id), name: `m${id}`, peerUrls: [`${url}${id}`], clientUrls: [], isLearner };
}
