import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { EtcdClient } from '../etcd/client.ts';
import { askMetrics } from '../etcd/health.ts';
import type { ClusterId, Member, MemberId, MemberList } from '../etcd/member.ts';
import { named, namedKeys } from '../etcd/named-call.ts';
import { askPeerMembers } from '../etcd/peer-http.ts';
import type { TlsFiles } from '../pki/tls-files.ts';
import type { ClusterPort, KeysPort, MemberStatusAnswer } from './ports.ts';

export interface EtcdClusterOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** The agent as a client of etcd; needed for https. */
  readonly clientTls: TlsFiles | undefined;
  /** The node's peer certificate, to ask the peer side of others; needed for https. */
  readonly peerTls: TlsFiles | undefined;
  /** Where the own etcd serves its metrics. */
  readonly metricsUrl: string;
}

/** The cluster through gRPC and HTTP: one client for each endpoint, made at its first use. */
export class EtcdCluster implements ClusterPort {
  readonly #options: EtcdClusterOptions;
  readonly #clients = new Map<string, EtcdClient>();

  constructor(options: EtcdClusterOptions) {
    this.#options = options;
  }

  /** The client of one endpoint. Throws RefusedUrlError for a URL that is never dialled. */
  client(endpoint: string): EtcdClient {
    const known = this.#clients.get(endpoint);
    if (known !== undefined) return known;
    const { clock, log, clientTls } = this.#options;
    const client = new EtcdClient({ endpoint, clock, log, tls: clientTls });
    this.#clients.set(endpoint, client);
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
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
    const { clock, peerTls } = this.#options;
    const view = await askPeerMembers({ peerUrl, tls: peerTls, clock, deadlineMs: timeoutMs });
    return { clusterId: view.clusterId, memberIds: view.members.map((member) => member.id) };
  }

  async status(endpoint: string, timeoutMs: number): Promise<MemberStatusAnswer> {
    const status = await this.client(endpoint).status({ deadlineMs: timeoutMs });
    return {
      memberId: status.header.memberId,
      clusterId: status.header.clusterId,
      leader: status.leaderId ?? 0n,
      isLearner: status.isLearner,
      raftTerm: status.raftTerm,
      raftIndex: status.raftIndex,
      raftAppliedIndex: status.raftAppliedIndex,
      dbSizeBytes: status.dbSizeBytes,
      version: status.version,
      errors: status.errors,
    };
  }

  async isLeader(timeoutMs: number): Promise<boolean> {
    const { clock, clientTls, metricsUrl } = this.#options;
    const metrics = await askMetrics({ metricsUrl, tls: clientTls, clock, deadlineMs: timeoutMs });
    return typeof metrics !== 'string' && metrics.isLeader === true;
  }

  /** Metrics are served on the client URL too, whatever the metrics URL is. */
  async activePeers(endpoint: string, timeoutMs: number): Promise<ReadonlySet<MemberId> | undefined> {
    const { clock, clientTls } = this.#options;
    const metrics = await askMetrics({ metricsUrl: endpoint, tls: clientTls, clock, deadlineMs: timeoutMs });
    return typeof metrics === 'string' ? undefined : metrics.activePeers;
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
