import { status } from '@grpc/grpc-js';
import { Lease } from '../../proto/gen/etcd/lease_pb.ts';
import { EtcdCallError } from './call.ts';
import type { EtcdChannel } from './channel.ts';
import { type CallWishes, callDeadlines, withDefaults } from './deadlines.ts';
import { type AnswerHeader, answerHeader } from './member-list.ts';

/** Identifies a lease in its cluster. */
export type LeaseId = bigint;

/** What a keepalive came to. */
export interface KeptAlive {
  /** False: the lease is gone, and with it every key that hung on it. */
  readonly alive: boolean;
  readonly header: AnswerHeader;
}

/**
 * Leases of one cluster, each call with a deadline of its own. Whoever holds one stops to rely on it by its own clock, counted from the
 * sending of the last keepalive that was answered: etcd's count began later. Throws as EtcdClient does.
 */
export class EtcdLeases {
  readonly #channel: EtcdChannel;

  constructor(channel: EtcdChannel) {
    this.#channel = channel;
  }

  /** A new lease. `ttlS` in seconds, at least 2 election timeouts (etcd's floor). */
  async grant(ttlS: number, how: CallWishes = {}): Promise<LeaseId> {
    const options = withDefaults(how, callDeadlines.keysMs);
    const answer = await this.#channel.unary(Lease.method.leaseGrant, { ttl: BigInt(ttlS) }, options);
    if (answer.error === '' && answer.id !== 0n) return answer.id;
    const about = { call: 'LeaseGrant', endpoint: this.#channel.address.url, grpcCode: status.UNKNOWN };
    throw new EtcdCallError({ ...about, details: answer.error || 'an answer without a lease' });
  }

  async keepAlive(id: LeaseId, how: CallWishes = {}): Promise<KeptAlive> {
    const options = withDefaults(how, callDeadlines.keysMs);
    const answer = await this.#channel.unary(Lease.method.leaseKeepAlive, { id }, options);
    return { alive: answer.ttl > 0n, header: answerHeader(this.#channel.address.url, 'LeaseKeepAlive', answer.header) };
  }

  /** Ends a lease with all its keys. One that is gone already is fine. */
  async revoke(id: LeaseId, how: CallWishes = {}): Promise<void> {
    try {
      await this.#channel.unary(Lease.method.leaseRevoke, { id }, withDefaults(how, callDeadlines.keysMs));
    } catch (error) {
      if (!(error instanceof EtcdCallError && error.grpcCode === status.NOT_FOUND)) throw error;
    }
  }
}
