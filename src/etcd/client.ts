import { status as grpcStatus } from '@grpc/grpc-js';
import { Auth } from '../../proto/gen/etcd/auth_pb.ts';
import { Cluster, type Member as WireMember } from '../../proto/gen/etcd/cluster_pb.ts';
import type { ResponseHeader } from '../../proto/gen/etcd/header_pb.ts';
import { KV } from '../../proto/gen/etcd/kv_pb.ts';
import { AlarmType, Maintenance } from '../../proto/gen/etcd/maintenance_pb.ts';
import type { Clock } from '../base/clock.ts';
import { EtcdCallError } from './call.ts';
import { EtcdChannel, type EtcdChannelOptions } from './channel.ts';
import { type CallWishes, callDeadlines, withDefaults } from './deadlines.ts';
import { EtcdKeys } from './keys.ts';
import { EtcdLeases } from './leases.ts';
import type { Member, MemberId, MemberList } from './member.ts';
import { type AnswerHeader, answerHeader, memberListOf, memberOf } from './member-list.ts';

/** What a client is made of. */
export interface EtcdClientOptions extends EtcdChannelOptions {
  /**
   * The version of the member behind the endpoint, `3.5.30`, where it is known. Unknown or 3.4: a linearizable member list
   * is preceded by a linearizable read, because 3.4 answers every list from its own view.
   */
  readonly etcdVersion?: string | undefined;
}

/** What a member says of itself. Indices are raft's; sizes in bytes. */
export interface MemberStatus {
  readonly header: AnswerHeader;
  readonly version: string;
  readonly isLearner: boolean;
  /** Undefined: it knows no leader. */
  readonly leaderId: MemberId | undefined;
  readonly raftTerm: bigint;
  readonly raftIndex: bigint;
  readonly raftAppliedIndex: bigint;
  readonly dbSizeBytes: bigint;
  readonly dbSizeInUseBytes: bigint;
  /** In etcd's words: `etcdserver: no leader`, alarms. */
  readonly errors: readonly string[];
  /** 3.6 and later; otherwise undefined. */
  readonly dbQuotaBytes: bigint | undefined;
  /** 3.6 and later; otherwise undefined. */
  readonly storageVersion: string | undefined;
}

/** An alarm that is raised. */
export interface EtcdAlarm {
  readonly memberId: MemberId;
  /** `UNKNOWN` is one that this client has no name for. */
  readonly alarm: 'NOSPACE' | 'CORRUPT' | 'UNKNOWN';
}

/**
 * The few calls to one member that this project makes. Each has a deadline; each throws EtcdCallError, or TlsFileError
 * before any dial. A change that failed by anything but a clear refusal may have been applied: read the list back.
 */
export class EtcdClient {
  readonly endpoint: string;
  /** Keys and values. */
  readonly keys: EtcdKeys;
  readonly leases: EtcdLeases;
  readonly #channel: EtcdChannel;
  readonly #clock: Clock;
  readonly #listIsLinearizable: boolean;

  /** Throws RefusedUrlError for a URL that is never dialled. */
  constructor(options: EtcdClientOptions) {
    this.endpoint = options.endpoint;
    this.#channel = new EtcdChannel(options);
    this.#clock = options.clock;
    this.#listIsLinearizable = knowsLinearizableLists(options.etcdVersion);
    this.keys = new EtcdKeys(this.#channel);
    this.leases = new EtcdLeases(this.#channel);
  }

  /** Ends the connection. */
  close(): void {
    this.#channel.close();
  }

  /** Who is in the cluster: as a quorum says (`linearizable`), or as this member sees it, which may be old. */
  async memberList(how: { readonly linearizable: boolean } & CallWishes): Promise<MemberList> {
    const { deadlineMs, signal } = withDefaults(how, callDeadlines.listMs);
    const until = this.#clock.monotonicMs() + deadlineMs;
    const readBefore = how.linearizable && !this.#listIsLinearizable;
    const before = readBefore ? await this.linearizableRead({ deadlineMs, signal }) : undefined;
    const left = { deadlineMs: Math.max(1, until - this.#clock.monotonicMs()), signal };
    const answer = await this.#channel.unary(Cluster.method.memberList, { linearizable: how.linearizable }, left);
    const header = this.#header('MemberList', answer.header);
    // The read made this very member catch up; a list from another one would prove nothing.
    if (before !== undefined && (before.memberId !== header.memberId || before.clusterId !== header.clusterId)) {
      throw this.#badAnswer('MemberList', 'the read before it was answered by another member');
    }
    return memberListOf(header, answer.members, how.linearizable);
  }

  /** Adds a member without a vote. `member` is the new one; `list` is what the cluster is with it. */
  async addLearner(peerUrl: string, how: CallWishes = {}): Promise<{ member: Member; list: MemberList }> {
    const request = { peerUrls: [peerUrl], isLearner: true };
    const answer = await this.#channel.unary(
      Cluster.method.memberAdd,
      request,
      withDefaults(how, callDeadlines.changeMs),
    );
    if (answer.member === undefined) throw this.#badAnswer('MemberAdd', 'an answer without the new member');
    return { member: memberOf(answer.member), list: this.#changed('MemberAdd', answer) };
  }

  /** Ends a membership. */
  async removeMember(id: MemberId, how: CallWishes = {}): Promise<MemberList> {
    const options = withDefaults(how, callDeadlines.changeMs);
    return this.#changed('MemberRemove', await this.#channel.unary(Cluster.method.memberRemove, { id }, options));
  }

  /** Makes a learner a voter. Asked of a voter. etcd promotes a dead learner that had caught up: look at it before. */
  async promoteMember(id: MemberId, how: CallWishes = {}): Promise<MemberList> {
    const options = withDefaults(how, callDeadlines.changeMs);
    return this.#changed('MemberPromote', await this.#channel.unary(Cluster.method.memberPromote, { id }, options));
  }

  /** Registers other peer URLs for a voter. Never for a learner: etcd before 3.5.31 and 3.6.12 spoils its learner flag. */
  async updateMember(id: MemberId, peerUrls: readonly string[], how: CallWishes = {}): Promise<MemberList> {
    const request = { id, peerUrls: [...peerUrls] };
    const options = withDefaults(how, callDeadlines.changeMs);
    return this.#changed('MemberUpdate', await this.#channel.unary(Cluster.method.memberUpdate, request, options));
  }

  /** Hands leadership to another voter. Only the leader itself does it; a frozen target makes it hang to the deadline. */
  async moveLeader(target: MemberId, how: CallWishes = {}): Promise<void> {
    const options = withDefaults(how, callDeadlines.moveLeaderMs);
    await this.#channel.unary(Maintenance.method.moveLeader, { targetId: target }, options);
  }

  /**
   * The member about itself. Never a probe, and never asked of a member that is being removed: in flight at that moment it
   * makes etcd panic.
   */
  async status(how: CallWishes = {}): Promise<MemberStatus> {
    const options = withDefaults(how, callDeadlines.statusMs);
    const answer = await this.#channel.unary(Maintenance.method.status, {}, options);
    return {
      header: this.#header('Status', answer.header),
      version: answer.version,
      isLearner: answer.isLearner,
      leaderId: answer.leader === 0n ? undefined : answer.leader,
      raftTerm: answer.raftTerm,
      raftIndex: answer.raftIndex,
      raftAppliedIndex: answer.raftAppliedIndex,
      dbSizeBytes: answer.dbSize,
      dbSizeInUseBytes: answer.dbSizeInUse,
      errors: [...answer.errors],
      dbQuotaBytes: answer.dbSizeQuota === 0n ? undefined : answer.dbSizeQuota,
      storageVersion: answer.storageVersion === '' ? undefined : answer.storageVersion,
    };
  }

  /** A read that a quorum confirms. Its header tells who answered. A learner refuses it. */
  async linearizableRead(how: CallWishes = {}): Promise<AnswerHeader> {
    return this.#read(false, how);
  }

  /** A read from the member's own data: needs no quorum, works on a learner, and never makes etcd panic. */
  async serializableRead(how: CallWishes = {}): Promise<AnswerHeader> {
    return this.#read(true, how);
  }

  /** Every alarm that is raised, whichever member it is about. Needs a quorum. */
  async alarms(how: CallWishes = {}): Promise<readonly EtcdAlarm[]> {
    const options = withDefaults(how, callDeadlines.keysMs);
    const answer = await this.#channel.unary(Maintenance.method.alarm, {}, options);
    return answer.alarms.map(({ memberId, alarm }) => ({ memberId, alarm: alarmNames[alarm] ?? 'UNKNOWN' }));
  }

  /** Whether users and passwords are in use. `unknown` on 3.4, which cannot be asked. */
  async authEnabled(how: CallWishes = {}): Promise<boolean | 'unknown'> {
    try {
      return (await this.#channel.unary(Auth.method.authStatus, {}, withDefaults(how, callDeadlines.keysMs))).enabled;
    } catch (error) {
      if (error instanceof EtcdCallError && error.grpcCode === grpcStatus.UNIMPLEMENTED) return 'unknown';
      throw error;
    }
  }

  async #read(serializable: boolean, how: CallWishes): Promise<AnswerHeader> {
    const request = { key: probeKey, serializable, countOnly: true };
    const options = withDefaults(how, callDeadlines.keysMs);
    return this.#header('Range', (await this.#channel.unary(KV.method.range, request, options)).header);
  }

  /** What is the list after a change: it is answered once a quorum has committed it and this member has applied it. */
  #changed(call: string, answer: { header?: ResponseHeader | undefined; members: readonly WireMember[] }): MemberList {
    return memberListOf(this.#header(call, answer.header), answer.members, true);
  }

  #header(call: string, header: ResponseHeader | undefined): AnswerHeader {
    return answerHeader(this.endpoint, call, header);
  }

  #badAnswer(call: string, details: string): EtcdCallError {
    return new EtcdCallError({ call, endpoint: this.endpoint, grpcCode: grpcStatus.INTERNAL, details });
  }
}

/** Any key will do: what counts is who answers, and how. It need not exist. */
const probeKey = Buffer.from('health');

const alarmNames: Readonly<Record<number, EtcdAlarm['alarm']>> = {
  [AlarmType.NOSPACE]: 'NOSPACE',
  [AlarmType.CORRUPT]: 'CORRUPT',
};

/** 3.5 and later honour `linearizable`. */
function knowsLinearizableLists(version: string | undefined): boolean {
  const match = /^(\d+)\.(\d+)\./.exec(version ?? '');
  if (match === null) return false;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  return major > 3 || (major === 3 && minor >= 5);
}
