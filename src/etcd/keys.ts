import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Compare_Result,
  Compare_Target,
  type CompareSchema,
  type KeyValue,
  KV,
  type RequestOpSchema,
} from '../../proto/gen/etcd/kv_pb.ts';
import type { EtcdChannel } from './channel.ts';
import { type CallWishes, callDeadlines, withDefaults } from './deadlines.ts';
import type { LeaseId } from './leases.ts';
import { type AnswerHeader, answerHeader } from './member-list.ts';

/** A key with its value, both as text. */
export interface EtcdKey {
  readonly key: string;
  readonly value: string;
  /** Revision in which it came to be. */
  readonly createRevision: bigint;
  /** Revision in which it was written last; what a conditional write compares. */
  readonly modRevision: bigint;
}

/** Keys of one moment. */
export interface KeysRead {
  readonly keys: readonly EtcdKey[];
  readonly header: AnswerHeader;
}

/** What a write may say besides. */
export interface WriteWishes extends CallWishes {
  /** The key ends with this lease. Default: it stays. */
  readonly lease?: LeaseId | undefined;
}

/** What a conditional write came to. `applied: false` means that the condition did not hold and nothing was written. */
export interface ConditionalWrite {
  readonly applied: boolean;
  readonly header: AnswerHeader;
}

/**
 * Keys and values of one cluster: every read is linearizable, every write is one transaction at most. A write that failed
 * by anything but a clear refusal may have been applied. Throws as EtcdClient does.
 */
export class EtcdKeys {
  readonly #channel: EtcdChannel;

  constructor(channel: EtcdChannel) {
    this.#channel = channel;
  }

  /** The key, or undefined if there is none. */
  async get(key: string, how: CallWishes = {}): Promise<EtcdKey | undefined> {
    const answer = await this.#channel.unary(
      KV.method.range,
      { key: bytes(key) },
      withDefaults(how, callDeadlines.keysMs),
    );
    const [found] = answer.kvs;
    return found === undefined ? undefined : keyOf(found);
  }

  /** Every key that begins with `prefix`, in their order. `prefix` is not empty. */
  async list(prefix: string, how: CallWishes = {}): Promise<readonly EtcdKey[]> {
    const request = { key: bytes(prefix), rangeEnd: endOfPrefix(prefix) };
    const answer = await this.#channel.unary(KV.method.range, request, withDefaults(how, callDeadlines.keysMs));
    return answer.kvs.map(keyOf);
  }

  /** The same, with who answered and at which revision. */
  async read(prefix: string, how: CallWishes = {}): Promise<KeysRead> {
    const request = { key: bytes(prefix), rangeEnd: endOfPrefix(prefix) };
    const answer = await this.#channel.unary(KV.method.range, request, withDefaults(how, callDeadlines.keysMs));
    return { keys: answer.kvs.map(keyOf), header: answerHeader(this.#channel.address.url, 'Range', answer.header) };
  }

  /** Writes, whatever was there. */
  async put(key: string, value: string, how: WriteWishes = {}): Promise<AnswerHeader> {
    const request = { key: bytes(key), value: bytes(value), lease: how.lease ?? 0n };
    const answer = await this.#channel.unary(KV.method.put, request, withDefaults(how, callDeadlines.keysMs));
    return answerHeader(this.#channel.address.url, 'Put', answer.header);
  }

  /** Writes only if the key is absent. */
  create(key: string, value: string, how: WriteWishes = {}): Promise<ConditionalWrite> {
    const absent = condition(key, Compare_Target.CREATE_REVISION, { case: 'createRevision', value: 0n });
    return this.#write(absent, putting(key, value, how.lease), how);
  }

  /** Writes only if nobody has written the key since it was read. */
  replace(read: EtcdKey, value: string, how: CallWishes = {}): Promise<ConditionalWrite> {
    return this.#write(unchanged(read), putting(read.key, value), how);
  }

  /** Removes the key only if nobody has written it since it was read. */
  remove(read: EtcdKey, how: CallWishes = {}): Promise<ConditionalWrite> {
    const removing = { request: { case: 'deleteRange' as const, value: { key: bytes(read.key) } } };
    return this.#write(unchanged(read), removing, how);
  }

  async #write(only: Condition, act: Act, how: CallWishes): Promise<ConditionalWrite> {
    const request = { compare: [only], success: [act] };
    const answer = await this.#channel.unary(KV.method.txn, request, withDefaults(how, callDeadlines.keysMs));
    return { applied: answer.succeeded, header: answerHeader(this.#channel.address.url, 'Txn', answer.header) };
  }
}

type Condition = MessageInitShape<typeof CompareSchema>;
type Act = MessageInitShape<typeof RequestOpSchema>;

function condition(key: string, target: Compare_Target, against: NonNullable<Condition['against']>): Condition {
  return { key: bytes(key), result: Compare_Result.EQUAL, target, against };
}

function unchanged(read: EtcdKey): Condition {
  return condition(read.key, Compare_Target.MOD_REVISION, { case: 'modRevision', value: read.modRevision });
}

function putting(key: string, value: string, lease: LeaseId = 0n): Act {
  return { request: { case: 'put', value: { key: bytes(key), value: bytes(value), lease } } };
}

function keyOf({ key, value, createRevision, modRevision }: KeyValue): EtcdKey {
  return { key: text(key), value: text(value), createRevision, modRevision };
}

/** The first key after all that begin with `prefix`: its last byte raised by one. UTF-8 has no byte 0xff. */
function endOfPrefix(prefix: string): Uint8Array {
  const end = bytes(prefix);
  const last = end.at(-1);
  if (last === undefined) throw new RangeError('a prefix is not empty');
  end[end.length - 1] = last + 1;
  return end;
}

function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function text(value: Uint8Array): string {
  return new TextDecoder().decode(value);
}
