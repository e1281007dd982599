/** Raft as far as an observer can tell: logs, terms, commits and who leads are right; messages are not simulated one by one. */
import type { CancelTimer } from '../../../src/base/clock.ts';
import type { ClusterId, MemberId } from '../../../src/etcd/member.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { EventQueue } from './event-queue.ts';
import { type Applied, type Command, type Entry, isMembershipChange, type Machine } from './machine.ts';

/**
 * What lies in a data directory. Every entry is durable the moment that it stands here; `commit` is the commit index in
 * memory while a process runs, and what a process that was killed had written of it afterwards.
 */
export interface MemberData {
  readonly clusterId: ClusterId;
  readonly memberId: MemberId;
  term: number;
  commit: number;
  readonly log: Entry[];
}

/** Unit: ms. etcd's defaults. */
export const electionMs = 1_000;

/** What one raft needs of the world. */
export interface RaftWorld {
  readonly queue: EventQueue;
  readonly random: SeededRandom;
  latencyMs(): number;
  /** The raft that runs under this id, wherever. */
  raftOf(clusterId: ClusterId, id: MemberId): Raft | undefined;
  /** Every raft that runs. */
  rafts(): readonly Raft[];
  /** Whether a message gets from one to the other now: both run, neither is frozen, nothing is cut. */
  linked(from: Raft, to: Raft): boolean;
  /** Something changed that others may have to react to. */
  changed(): void;
}

/** What a raft tells its process. */
export interface RaftHost {
  readonly frozen: boolean;
  onApplied(index: number, entry: Entry, applied: Applied): void;
  onLeader(before: MemberId, now: MemberId): void;
  onPanic(text: string): void;
}

export class Raft {
  readonly id: MemberId;
  readonly clusterId: ClusterId;
  readonly data: MemberData;
  readonly machine: Machine;
  role: 'follower' | 'leader' = 'follower';
  /** 0: it knows none. */
  leader: MemberId = 0n;
  applied = 0;
  /** The leader's: how much of the log each other member has, as far as it knows. */
  readonly progress = new Map<MemberId, number>();
  /** Leadership is on its way there; meanwhile nothing is proposed. */
  transferee: MemberId | undefined;
  /** Its process ended. */
  halted = false;
  /** It applied its own removal: what it sent before still arrives, and it does nothing more. */
  departed = false;
  readonly #world: RaftWorld;
  readonly #host: RaftHost;
  readonly #pushing = new Set<MemberId>();
  #inContact = false;
  #contactLostAtMs = Number.NEGATIVE_INFINITY;
  #cancelElection: CancelTimer | undefined;
  #cancelStepDown: CancelTimer | undefined;
  #cancelTransfer: CancelTimer = () => {};
  #lastMembershipChange = 0;
  /** etcd writes the commit index beside the next entry or term: one that is killed forgets the newest. */
  #writtenCommit: number;

  constructor(data: MemberData, machine: Machine, world: RaftWorld, host: RaftHost) {
    this.id = data.memberId;
    this.clusterId = data.clusterId;
    this.data = data;
    this.machine = machine;
    this.#world = world;
    this.#host = host;
    this.#writtenCommit = data.commit;
  }

  get term(): number {
    return this.data.term;
  }

  get last(): number {
    return this.data.log.length;
  }

  get frozen(): boolean {
    return this.#host.frozen;
  }

  /** True while a leader that works is heard, or this one leads: then nobody else gets a vote. */
  get holdsLease(): boolean {
    return this.role === 'leader' || this.#inContact || this.#world.queue.nowMs() < this.#contactLostAtMs + electionMs;
  }

  /** What is known as committed is applied again, as at every start. `firstElectionMs`: how soon it campaigns if nobody leads. */
  start(firstElectionMs: number) {
    this.advance();
    if (!this.halted && !this.departed) this.#armElection(firstElectionMs);
    this.#world.changed();
  }

  /** `clean`: everything was written. */
  stop(clean: boolean) {
    this.halted = true;
    if (!clean) this.data.commit = this.#writtenCommit;
    this.#disarm();
    this.#cancelTransfer();
  }

  /** Leader only. A second change of membership before the first is applied becomes an empty entry: its proposer waits in vain. */
  append(command: Command, proposal: number) {
    const isChange = isMembershipChange(command);
    const refused = isChange && this.#lastMembershipChange > this.applied;
    this.data.log.push(
      refused ? { term: this.term, command: { kind: 'empty' }, proposal: 0 } : { term: this.term, command, proposal },
    );
    if (isChange && !refused) this.#lastMembershipChange = this.last;
    this.#writtenCommit = this.data.commit;
    this.progress.set(this.id, this.last);
    this.#broadcast();
    this.#maybeCommit();
  }

  /** True if this leader reaches a quorum of voters now, both ways. */
  hasQuorum(): boolean {
    const { voters } = this.machine;
    let reached = 0;
    for (const { id } of voters) if (id === this.id || this.#reaches(id)) reached++;
    return reached > voters.length / 2;
  }

  /** True once an entry of the leader's own term is committed: before, it answers no linearizable read. */
  hasCommittedInTerm(): boolean {
    return this.data.commit > 0 && this.data.log[this.data.commit - 1]?.term === this.term;
  }

  /** Leader only. Ends by itself after an election timeout. */
  transfer(target: MemberId) {
    if (this.transferee === target) return;
    this.#cancelTransfer();
    this.transferee = target;
    this.#cancelTransfer = this.#world.queue.after(electionMs, () => {
      this.transferee = undefined;
    });
    this.push(target);
    this.#maybeHandOver(target);
  }

  /** Looks at the world anew: who is heard, who is reached, who lags. */
  assess() {
    if (this.halted || this.departed || this.frozen) return this.#disarm();
    if (this.role === 'leader') this.#assessAsLeader();
    else this.#assessAsFollower();
  }

  /** Brings a member up to date, once a message gets there. */
  push(id: MemberId) {
    if (id === this.id || this.#pushing.has(id)) return;
    this.#pushing.add(id);
    const { term } = this;
    this.#world.queue.after(this.#world.latencyMs(), () => {
      this.#pushing.delete(id);
      if (this.role === 'leader' && this.term === term) this.#deliver(id);
    });
  }

  /** Applies what is committed. */
  advance() {
    while (!this.halted && !this.departed && this.applied < this.data.commit) {
      const entry = this.data.log[this.applied];
      if (entry === undefined) return;
      this.applied++;
      const applied = this.machine.apply(entry.command);
      if (isMembershipChange(entry.command) && applied.kind === 'done') this.#reconfigured(entry.command);
      this.#host.onApplied(this.applied, entry, applied);
    }
  }

  /** Another term is known: who led does not any more. */
  observeTerm(term: number) {
    if (term <= this.term) return;
    this.data.term = term;
    this.#stepDown();
  }

  #assessAsLeader() {
    for (const id of this.progress.keys()) {
      const peer = this.#peer(id);
      if (peer === undefined || peer === this || !this.#world.linked(this, peer)) continue;
      const isBehind =
        peer.leader !== this.id ||
        peer.term !== this.term ||
        peer.data.commit < this.data.commit ||
        (this.progress.get(id) ?? 0) < this.last;
      if (isBehind) this.push(id);
    }
    if (this.hasQuorum()) {
      this.#cancelStepDown?.();
      this.#cancelStepDown = undefined;
      return;
    }
    const { queue, random } = this.#world;
    this.#cancelStepDown ??= queue.after(electionMs + random.fraction() * electionMs, () => {
      this.#cancelStepDown = undefined;
      if (this.role === 'leader' && !this.hasQuorum()) this.#stepDown();
    });
  }

  #assessAsFollower() {
    const { queue } = this.#world;
    const heard = this.#world.rafts().some((raft) => {
      const leads = raft.role === 'leader' && raft.clusterId === this.clusterId && raft.term >= this.term;
      const sends = leads && raft !== this && raft.progress.has(this.id) && this.#world.linked(raft, this);
      return sends && !this.machine.removed.has(raft.id);
    });
    if (heard) {
      this.#inContact = true;
      this.#cancelElection?.();
      this.#cancelElection = undefined;
      return;
    }
    if (this.#inContact) this.#contactLostAtMs = queue.nowMs();
    this.#inContact = false;
    // The last heartbeat was up to 100 ms ago.
    if (this.#cancelElection === undefined) this.#armElection(electionMs * (0.95 + this.#world.random.fraction()));
  }

  #armElection(afterMs: number) {
    this.#cancelElection = this.#world.queue.after(afterMs, () => {
      this.#cancelElection = undefined;
      if (this.halted || this.departed || this.frozen || this.role === 'leader' || this.#inContact) return;
      if (!this.campaign(false)) {
        this.#setLeader(0n);
        this.#armElection(electionMs * (1 + this.#world.random.fraction()));
      }
    });
  }

  /** Wins or does not, at this moment. `forced`: leadership was handed over, so nobody keeps its lease. */
  campaign(forced: boolean): boolean {
    const { voters, removed } = this.machine;
    if (this.machine.members.get(this.id)?.votes !== true || removed.has(this.id)) return false;
    const granting: Raft[] = [];
    for (const { id } of voters) {
      const peer = id === this.id ? undefined : this.#peer(id);
      if (peer !== undefined && this.#reaches(id) && peer.#grants(this, forced)) granting.push(peer);
    }
    if (granting.length + 1 <= voters.length / 2) return false;
    const term = Math.max(this.term, ...granting.map((peer) => peer.term)) + 1;
    for (const peer of granting) peer.observeTerm(term);
    this.#lead(term);
    return true;
  }

  #grants(candidate: Raft, forced: boolean): boolean {
    if (this.machine.removed.has(candidate.id) || (this.holdsLease && !forced)) return false;
    const [mine, theirs] = [this.data.log.at(-1)?.term ?? 0, candidate.data.log.at(-1)?.term ?? 0];
    return theirs > mine || (theirs === mine && candidate.last >= this.last);
  }

  #lead(term: number) {
    this.data.term = term;
    this.role = 'leader';
    this.transferee = undefined;
    this.#disarm();
    this.progress.clear();
    for (const id of this.machine.members.keys()) this.progress.set(id, 0);
    this.#lastMembershipChange = this.last;
    this.append({ kind: 'empty' }, 0);
    this.#setLeader(this.id);
    this.#world.changed();
  }

  #stepDown() {
    if (this.role === 'leader') {
      this.role = 'follower';
      this.#contactLostAtMs = Number.NEGATIVE_INFINITY;
      this.transferee = undefined;
      this.#cancelTransfer();
      this.#disarm();
    }
    this.#setLeader(0n);
    this.#world.changed();
  }

  #deliver(id: MemberId) {
    const peer = this.#peer(id);
    // Who knows this one as removed takes nothing from it.
    if (peer === undefined || !this.#world.linked(this, peer) || peer.machine.removed.has(this.id)) return;
    if (peer.term > this.term) {
      if (this.#world.linked(peer, this)) this.observeTerm(peer.term);
      return;
    }
    const known = this.progress.get(id);
    // Removed meanwhile: what was on its way may still arrive, and may not.
    if (known === undefined && !this.#world.random.chance(0.8)) return;
    peer.#follow(this.term, this.id);
    const toCommit = Math.min(known ?? 0, this.data.commit);
    if (toCommit > peer.last) {
      const text = `tocommit(${toCommit}) is out of range [lastIndex(${peer.last})]. Was the raft log corrupted, truncated, or lost?`;
      return peer.#host.onPanic(text);
    }
    if (!peer.#take(this.data.log)) return;
    const { term } = this;
    const acked = this.last;
    peer.#commitTo(Math.min(this.data.commit, acked));
    this.#world.queue.after(this.#world.latencyMs(), () => {
      const answers = this.role === 'leader' && this.term === term && this.#world.linked(peer, this);
      if (answers && !peer.halted) this.#acknowledged(id, acked);
    });
  }

  #acknowledged(id: MemberId, acked: number) {
    if (!this.progress.has(id)) return;
    this.progress.set(id, acked);
    this.#maybeCommit();
    const peer = this.#peer(id);
    if (acked < this.last || (peer !== undefined && peer.data.commit < this.data.commit)) this.push(id);
    if (this.transferee === id) this.#maybeHandOver(id);
  }

  #maybeHandOver(id: MemberId) {
    if ((this.progress.get(id) ?? 0) < this.last) return;
    this.#world.queue.after(this.#world.latencyMs(), () => {
      const peer = this.#peer(id);
      if (this.role !== 'leader' || this.transferee !== id || peer === undefined) return;
      if (this.#world.linked(this, peer) && !peer.halted) peer.campaign(true);
    });
  }

  #follow(term: number, leader: MemberId) {
    if (this.role === 'leader') this.#stepDown();
    this.data.term = term;
    this.#inContact = true;
    this.#cancelElection?.();
    this.#cancelElection = undefined;
    if (this.leader !== leader) {
      this.#setLeader(leader);
      this.#world.changed();
    }
  }

  /** The log becomes the leader's as far as that reaches. Equal index and term count as equal, as raft has it. */
  #take(log: readonly Entry[]): boolean {
    const own = this.data.log;
    let common = Math.min(own.length, log.length);
    while (common > 0 && own[common - 1]?.term !== log[common - 1]?.term) common--;
    if (common === log.length) return true;
    if (common < this.data.commit) {
      this.#host.onPanic(`entry ${common + 1} conflict with committed entry [committed(${this.data.commit})]`);
      return false;
    }
    own.length = common;
    this.#writtenCommit = this.data.commit;
    for (const entry of log.slice(common)) own.push(entry);
    return true;
  }

  #commitTo(commit: number) {
    if (commit <= this.data.commit) return;
    this.data.commit = commit;
    this.advance();
  }

  #maybeCommit() {
    const matches = this.machine.voters.map(({ id }) => this.progress.get(id) ?? 0).sort((a, b) => b - a);
    const index = matches[Math.floor(matches.length / 2)];
    if (index === undefined || index <= this.data.commit || this.data.log[index - 1]?.term !== this.term) return;
    this.data.commit = index;
    // Everybody is told before it is applied here: a member that is removed by it may hear of it yet.
    this.#broadcast();
    this.advance();
  }

  #broadcast() {
    for (const id of this.progress.keys()) this.push(id);
  }

  #reconfigured(command: Command) {
    if (this.role === 'leader') {
      if (command.kind === 'addMember') this.progress.set(command.member.id, 0);
      if (command.kind === 'removeMember') this.progress.delete(command.id);
      this.#maybeCommit();
    }
    this.#world.changed();
  }

  #setLeader(leader: MemberId) {
    if (leader === this.leader) return;
    const before = this.leader;
    this.leader = leader;
    this.#host.onLeader(before, leader);
  }

  #reaches(id: MemberId): boolean {
    const peer = this.#peer(id);
    return peer !== undefined && this.#world.linked(this, peer) && this.#world.linked(peer, this);
  }

  #peer(id: MemberId): Raft | undefined {
    return this.#world.raftOf(this.clusterId, id);
  }

  #disarm() {
    this.#cancelElection?.();
    this.#cancelElection = undefined;
    this.#cancelStepDown?.();
    this.#cancelStepDown = undefined;
  }
}
