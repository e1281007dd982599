import type { ClusterPort, KeysPort, MemberStatusAnswer } from '../../../src/agent/ports.ts';
import { AgentError } from '../../../src/base/errors.ts';
import type { DataDir } from '../../../src/etcd/data-dir.ts';
import type { ClusterId, Member, MemberId, MemberList } from '../../../src/etcd/member.ts';
import { named, namedKeys } from '../../../src/etcd/named-call.ts';
import type { SimulatedClient } from './client.ts';
import type { SimulatedCluster } from './cluster.ts';
import type { SimulatedNode } from './node.ts';

/** Nobody has this address. */
class NobodyThereError extends AgentError {
  readonly code = 'NOBODY_THERE';
}

/** The simulated cluster as the agent of one node asks it. */
export class SimulatedClusterPort implements ClusterPort {
  readonly #cluster: SimulatedCluster;
  readonly #node: SimulatedNode;
  readonly #clients = new Map<string, SimulatedClient>();

  constructor(cluster: SimulatedCluster, node: SimulatedNode) {
    this.#cluster = cluster;
    this.#node = node;
  }

  /** The client of one endpoint. Throws if no node has the URL. */
  client(endpoint: string): SimulatedClient {
    const known = this.#clients.get(endpoint);
    if (known !== undefined) return known;
    const node = this.#cluster.nodeAt(endpoint);
    if (node === undefined) throw new NobodyThereError(`nobody has the address ${endpoint}`);
    const client = this.#cluster.client(node.name, { from: this.#node });
    this.#clients.set(endpoint, client);
    return client;
  }

  async memberList(
    endpoint: string,
    how: { readonly linearizable: boolean; readonly timeoutMs: number },
  ): Promise<MemberList> {
    return await this.client(endpoint).memberList({ linearizable: how.linearizable, deadlineMs: how.timeoutMs });
  }

  async peerCluster(
    peerUrl: string,
    timeoutMs: number,
  ): Promise<{ readonly clusterId: ClusterId; readonly memberIds: readonly MemberId[] }> {
    await new Promise<void>((resolve) => this.#cluster.clock.after(Math.min(2, timeoutMs), resolve));
    const view = this.#cluster.peerView(peerUrl, this.#node);
    if (view === undefined) throw new NobodyThereError(`nobody answers at ${peerUrl}`);
    return { clusterId: view.clusterId, memberIds: view.members.map(({ id }) => id) };
  }

  async status(endpoint: string, timeoutMs: number): Promise<MemberStatusAnswer> {
    const { header, leaderId, ...status } = await this.client(endpoint).status({ deadlineMs: timeoutMs });
    return { ...status, memberId: header.memberId, clusterId: header.clusterId, leader: leaderId ?? 0n };
  }

  /** The metrics port answers before etcd serves, and not while it is frozen. */
  async isLeader(timeoutMs: number): Promise<boolean> {
    const { etcd } = this.#node;
    if (etcd?.frozen === true) await new Promise<void>((resolve) => this.#cluster.clock.after(timeoutMs, resolve));
    return etcd?.running === true && !etcd.frozen && etcd.raft?.role === 'leader';
  }

  async activePeers(endpoint: string): Promise<ReadonlySet<MemberId> | undefined> {
    const node = this.#cluster.nodeAt(endpoint);
    if (node?.etcd?.running !== true || node.etcd.frozen) return undefined;
    const { etcd } = node;
    return new Set(etcd.members.map(({ id }) => id).filter((id) => etcd.links.sinceMs(id) !== undefined));
  }

  async moveLeader(endpoint: string, target: MemberId, timeoutMs: number): Promise<void> {
    await named(this.client(endpoint).moveLeader(target, { deadlineMs: timeoutMs }));
  }

  async addLearner(endpoint: string, peerUrl: string, timeoutMs: number): Promise<Member> {
    return (await named(this.client(endpoint).addLearner(peerUrl, { deadlineMs: timeoutMs }))).member;
  }

  async promoteMember(endpoint: string, id: MemberId, timeoutMs: number): Promise<void> {
    await named(this.client(endpoint).promoteMember(id, { deadlineMs: timeoutMs }));
  }

  async removeMember(endpoint: string, id: MemberId, timeoutMs: number): Promise<void> {
    await named(this.client(endpoint).removeMember(id, { deadlineMs: timeoutMs }));
  }

  async updateMember(endpoint: string, id: MemberId, peerUrls: readonly string[], timeoutMs: number): Promise<void> {
    await named(this.client(endpoint).updateMember(id, peerUrls, { deadlineMs: timeoutMs }));
  }

  keys(endpoint: string): KeysPort {
    return namedKeys(this.client(endpoint).keys);
  }
}

/** What the offline inspection of a node's data directory finds. */
export function dataDirOf({ disk }: SimulatedNode): DataDir {
  if (disk === undefined) return { kind: 'absent' };
  const last = disk.log.at(-1);
  return {
    kind: 'member',
    memberId: disk.memberId,
    clusterId: disk.clusterId,
    last: { index: BigInt(disk.log.length), term: BigInt(last?.term ?? 0) },
    commit: BigInt(disk.commit),
    term: BigInt(disk.term),
    tornTail: false,
    hasDb: true,
    hasSnapshots: false,
    segments: 1,
  };
}
