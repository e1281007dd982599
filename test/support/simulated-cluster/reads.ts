import { requestTimeoutMs, type SimulatedEtcd } from './etcd.ts';
import { type Refusal, refusals } from './refusals.ts';
import type { World } from './world.ts';

type Done = (refusal: Refusal | undefined) => void;

/** etcd asks the leader for all reads that wait at once, and for those that come meanwhile only when that is answered. */
export class Reads {
  readonly #etcd: SimulatedEtcd;
  readonly #world: World;
  #current: Batch | undefined;
  #next: Done[] = [];

  constructor(etcd: SimulatedEtcd, world: World) {
    this.#etcd = etcd;
    this.#world = world;
  }

  /** Calls back once everything is applied that was committed when it was asked, as a quorum confirms. */
  read(done: Done) {
    this.#next.push(done);
    if (this.#current === undefined) this.#begin();
  }

  /** Another entry is applied. */
  applied() {
    const batch = this.#current;
    const index = batch?.confirmedIndex;
    if (batch !== undefined && index !== undefined && (this.#etcd.raft?.applied ?? 0) >= index)
      this.#end(batch, undefined);
  }

  /** A leader is known that was not: what waits for the old one is refused. */
  leaderChanged() {
    const batch = this.#current;
    if (batch !== undefined && batch.confirmedIndex === undefined) this.#end(batch, refusals.leaderChanged);
  }

  #begin() {
    const batch: Batch = { waiting: this.#next, confirmedIndex: undefined };
    this.#next = [];
    this.#current = batch;
    this.#ask(batch);
    this.#world.queue.after(requestTimeoutMs, () => this.#end(batch, refusals.requestTimedOut));
  }

  #ask(batch: Batch) {
    const { raft, running } = this.#etcd;
    const world = this.#world;
    if (raft === undefined || !running || this.#current !== batch || batch.confirmedIndex !== undefined) return;
    const leading = raft.leader === 0n ? undefined : world.raftOf(raft.clusterId, raft.leader);
    const isReached =
      leading === raft || (leading !== undefined && world.linked(raft, leading) && world.linked(leading, raft));
    const answers = leading?.role === 'leader' && leading.hasQuorum() && leading.hasCommittedInTerm();
    if (!isReached || !answers) {
      world.queue.after(retryMs, () => this.#ask(batch));
      return;
    }
    const index = leading.data.commit;
    world.queue.after(2 * world.latencyMs(), () => {
      batch.confirmedIndex = index;
      this.applied();
    });
  }

  #end(batch: Batch, refusal: Refusal | undefined) {
    if (this.#current !== batch) return;
    this.#current = undefined;
    if (this.#next.length > 0) this.#begin();
    for (const done of batch.waiting) done(refusal);
  }
}

/** Unit: ms. */
const retryMs = 500;

interface Batch {
  readonly waiting: readonly Done[];
  confirmedIndex: number | undefined;
}
