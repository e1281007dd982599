/** What a member has applied: members, removed ids, keys. The same entries give the same state, also one by one from the beginning. */
import type { EtcdKey } from '../../../src/etcd/keys.ts';
import type { Member, MemberId } from '../../../src/etcd/member.ts';
import { type Refusal, refusals } from './refusals.ts';

/** One thing that a log entry does. */
export type Command =
  | { readonly kind: 'empty' }
  | { readonly kind: 'addMember'; readonly member: Member }
  | { readonly kind: 'removeMember'; readonly id: MemberId }
  | { readonly kind: 'promoteMember'; readonly id: MemberId }
  | { readonly kind: 'updateMember'; readonly id: MemberId; readonly peerUrls: readonly string[] }
  | {
      readonly kind: 'publish';
      readonly id: MemberId;
      readonly name: string;
      readonly clientUrls: readonly string[];
    }
  | { readonly kind: 'put'; readonly key: string; readonly value: string }
  | {
      readonly kind: 'txn';
      readonly key: string;
      /** The revision that the key must have been written in; 0: it must not exist. */
      readonly ifModRevision: bigint;
      /** Undefined: the key is removed. */
      readonly value: string | undefined;
    };

/** One entry of a raft log; its index is its place, from 1. */
export interface Entry {
  readonly term: number;
  readonly command: Command;
  /** Whose proposal it is: unique in a run; 0 for none. */
  readonly proposal: number;
}

/** A member as the list gives it, and as raft counts it: they differ after MemberUpdate on a learner in older versions. */
export interface AppliedMember extends Member {
  readonly votes: boolean;
}

/** What came of an entry. */
export type Applied =
  | { readonly kind: 'done'; readonly revision: bigint; readonly succeeded: boolean }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Whether an entry is a change of membership: raft takes one at a time. */
export function isMembershipChange(command: Command): boolean {
  return command.kind.endsWith('Member');
}

export class Machine {
  readonly members = new Map<MemberId, AppliedMember>();
  /** Ids are never used again. */
  readonly removed = new Set<MemberId>();
  readonly keys = new Map<string, EtcdKey>();
  revision = 1n;
  readonly #spoilsLearners: boolean;
  readonly #maxLearners: number;

  constructor(options: { readonly spoilsLearners: boolean; readonly maxLearners: number }) {
    this.#spoilsLearners = options.spoilsLearners;
    this.#maxLearners = options.maxLearners;
  }

  get voters(): readonly AppliedMember[] {
    return [...this.members.values()].filter((member) => member.votes);
  }

  apply(command: Command): Applied {
    switch (command.kind) {
      case 'empty':
        return this.#done();
      case 'addMember':
        return this.#add(command.member);
      case 'removeMember':
        return this.#remove(command.id);
      case 'promoteMember':
        return this.#promote(command.id);
      case 'updateMember':
        return this.#update(command.id, command.peerUrls);
      case 'publish':
        return this.#publish(command.id, command.name, command.clientUrls);
      case 'put':
        this.#write(command.key, command.value);
        return this.#done();
      case 'txn':
        return this.#transact(command.key, command.ifModRevision, command.value);
    }
  }

  #add(member: Member): Applied {
    if (this.removed.has(member.id)) return refused(refusals.memberNotFound);
    if (this.members.has(member.id)) return refused(refusals.memberExists);
    if (this.#isTaken(member.peerUrls, member.id)) return refused(refusals.peerUrlExists);
    const learners = [...this.members.values()].filter((other) => other.isLearner).length;
    if (member.isLearner && learners >= this.#maxLearners) return refused(refusals.tooManyLearners);
    this.members.set(member.id, { ...member, votes: !member.isLearner });
    return this.#done();
  }

  #remove(id: MemberId): Applied {
    if (!this.members.delete(id)) return refused(refusals.memberNotFound);
    this.removed.add(id);
    return this.#done();
  }

  #promote(id: MemberId): Applied {
    const member = this.members.get(id);
    if (member === undefined) return refused(refusals.memberNotFound);
    if (!member.isLearner) return refused(refusals.notALearner);
    this.members.set(id, { ...member, isLearner: false, votes: true });
    return this.#done();
  }

  #update(id: MemberId, peerUrls: readonly string[]): Applied {
    const member = this.members.get(id);
    if (member === undefined) return refused(refusals.memberNotFound);
    if (this.#isTaken(peerUrls, id)) return refused(refusals.peerUrlExists);
    const isLearner = member.isLearner && !this.#spoilsLearners;
    this.members.set(id, { ...member, peerUrls: [...peerUrls], isLearner });
    return this.#done();
  }

  #publish(id: MemberId, name: string, clientUrls: readonly string[]): Applied {
    const member = this.members.get(id);
    if (member !== undefined) this.members.set(id, { ...member, name, clientUrls: [...clientUrls] });
    return this.#done();
  }

  #transact(key: string, ifModRevision: bigint, value: string | undefined): Applied {
    const known = this.keys.get(key);
    if ((known?.modRevision ?? 0n) !== ifModRevision) return this.#done(false);
    if (value !== undefined) this.#write(key, value);
    else if (this.keys.delete(key)) this.revision++;
    return this.#done();
  }

  #write(key: string, value: string): void {
    this.revision++;
    const createRevision = this.keys.get(key)?.createRevision ?? this.revision;
    this.keys.set(key, { key, value, createRevision, modRevision: this.revision });
  }

  #isTaken(peerUrls: readonly string[], byOtherThan: MemberId): boolean {
    for (const member of this.members.values()) {
      if (member.id !== byOtherThan && member.peerUrls.some((url) => peerUrls.includes(url))) return true;
    }
    return false;
  }

  #done(succeeded = true): Applied {
    return { kind: 'done', revision: this.revision, succeeded };
  }
}

function refused(refusal: Refusal): Applied {
  return { kind: 'refused', refusal };
}
