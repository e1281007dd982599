import { formatId, type MemberId } from '../../../src/etcd/member.ts';
import type { SimulatedEtcd } from './etcd.ts';
import type { World } from './world.ts';

/** A connection over which nothing comes is given up after this. Unit: ms. Source: etcd's rafthttp, ConnReadTimeout. */
const readTimeoutMs = 5_000;

/** Since when a process has been connected to each peer, as it believes: that may be 5 s old when packets just vanish. */
export class Links {
  readonly #etcd: SimulatedEtcd;
  readonly #world: World;
  readonly #sinceMs = new Map<MemberId, number>();
  readonly #muteSinceMs = new Map<MemberId, number>();

  constructor(etcd: SimulatedEtcd, world: World) {
    this.#etcd = etcd;
    this.#world = world;
  }

  sinceMs(id: MemberId): number | undefined {
    return this.#sinceMs.get(id);
  }

  longestConnected(ids: readonly MemberId[]): MemberId | undefined {
    let longest: MemberId | undefined;
    for (const id of ids) {
      const since = this.#sinceMs.get(id);
      if (since === undefined) continue;
      if (longest === undefined || since < (this.#sinceMs.get(longest) ?? 0)) longest = id;
    }
    return longest;
  }

  /** Looks at every peer anew. */
  assess(): void {
    const { raft, frozen } = this.#etcd;
    if (raft === undefined || frozen) return;
    const known = new Set<MemberId>();
    for (const { id } of this.#etcd.members) {
      if (id === raft.id) continue;
      known.add(id);
      this.#assessOne(id);
    }
    for (const id of [...this.#sinceMs.keys()]) if (!known.has(id)) this.#sinceMs.delete(id);
  }

  #assessOne(id: MemberId): void {
    const { raft } = this.#etcd;
    const peer = raft === undefined ? undefined : this.#world.raftOf(raft.clusterId, id);
    const now = this.#world.queue.nowMs();
    if (raft === undefined || peer === undefined) {
      // Its process is gone: the connection was reset.
      this.#lost(id, 'EOF');
      this.#muteSinceMs.delete(id);
      return;
    }
    if (this.#world.linked(raft, peer) && this.#world.linked(peer, raft)) {
      this.#muteSinceMs.delete(id);
      if (!this.#sinceMs.has(id)) this.#sinceMs.set(id, now);
      return;
    }
    const muteSince = this.#muteSinceMs.get(id);
    if (muteSince === undefined) {
      this.#muteSinceMs.set(id, now);
      this.#world.queue.after(readTimeoutMs, () => this.#world.changed());
    } else if (now - muteSince >= readTimeoutMs) {
      this.#lost(id, 'i/o timeout');
    }
  }

  #lost(id: MemberId, error: string): void {
    if (!this.#sinceMs.delete(id)) return;
    const peer = formatId(id);
    const words = `failed to read ${peer} on stream MsgApp v2 (${error})`;
    this.#etcd.log('peer became inactive (message send to peer failed)', { 'peer-id': peer, error: words });
  }
}
