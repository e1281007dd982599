import { noop } from 'cockatiel';
import { Etcd3, type IOptions } from 'etcd3';
import type { Clock } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type AnswerHeader, answerHeader } from '../etcd/member-list.ts';
import { readTlsFiles, type TlsFiles } from '../pki/tls-files.ts';
import type { AnswerKind, HighWater } from './header-guard.ts';
import { type Fence, NotLeadingError } from './leader.ts';

/** A key of the curator's with its value. */
export interface StoredKey {
  readonly key: string;
  readonly value: string;
  readonly modRevision: bigint;
}

/** What is written as one, or not at all. */
export interface StoreChange {
  /** Only if nobody has written these since they were read; 0: only if there is none. */
  readonly expect: readonly { readonly key: string; readonly modRevision: bigint }[];
  readonly put: readonly { readonly key: string; readonly value: string }[];
  readonly remove: readonly string[];
}

/** `conflict`: somebody has written one of the expected keys; nothing was written. */
export type StoreResult = { readonly kind: 'committed'; readonly revision: bigint } | { readonly kind: 'conflict' };

/** etcd did not say whether it was written; this curator leads all the same. Reading tells. */
export class StoreUnknownError extends AgentError {
  readonly code = 'CURATOR_STORE_UNKNOWN';
}

/** etcd gave no answer to a read. */
export class StoreSilentError extends AgentError {
  readonly code = 'CURATOR_STORE_SILENT';
}

/** Who leads, as the store needs it. */
export interface Leadership {
  fence(): Fence;
  readonly highWater: HighWater | undefined;
  check(known: HighWater | undefined, header: AnswerHeader, kind: AnswerKind): void;
}

export interface StoreOptions {
  /** The client URL of the own member, and of no other: one that lags would show an older state. */
  readonly endpoint: string;
  readonly tls?: TlsFiles | undefined;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly log: Log;
}

/** Each call has this long. Unit: ms. */
const callMs = 5_000;
const fenceMs = 2_000;

/**
 * The curator's keys in etcd. A write is one transaction that holds only while this curator's leader key stands as it was made, whoever
 * believes what; a read is linearizable. Throws {@link NotLeadingError}, {@link StoreUnknownError}, {@link StoreSilentError}.
 */
export class CuratorStore {
  readonly #options: StoreOptions;
  readonly #client: Etcd3;

  /** Throws TlsFileError if the files are missing or do not fit together. New certificates take a new store. */
  constructor(options: StoreOptions) {
    this.#options = options;
    const { endpoint, tls, clock } = options;
    this.#client = new Etcd3({
      hosts: endpoint,
      ...(tls === undefined ? {} : { credentials: credentialsOf(tls) }),
      // A second try by itself makes a transaction that was committed look refused.
      faultHandling: { host: () => noop, global: noop },
      defaultCallOptions: ({ isStream }) => (isStream ? {} : { deadline: clock.wallMs() + callMs }),
    });
  }

  close(): void {
    this.#client.close();
  }

  /** Every key that begins with `prefix`, and the revision at which they stood so. */
  async list(prefix: string): Promise<{ readonly keys: readonly StoredKey[]; readonly revision: bigint }> {
    const { highWater } = this.#options.leadership;
    const answer = await this.#read(() => this.#client.getAll().prefix(prefix).exec());
    const header = this.#headerOf('Range', answer.header);
    this.#options.leadership.check(highWater, header, 'confirmed');
    return {
      keys: answer.kvs.map(({ key, value, mod_revision }) => ({
        key: key.toString(),
        value: value.toString(),
        modRevision: BigInt(mod_revision),
      })),
      revision: header.revision,
    };
  }

  async commit({ expect, put, remove }: StoreChange): Promise<StoreResult> {
    const { leadership } = this.#options;
    const { key, createRevision, value } = leadership.fence();
    const known = leadership.highWater;
    const client = this.#client;
    let transaction = client.if(key, 'Create', '==', createRevision.toString()).and(key, 'Value', '==', value);
    for (const one of expect) transaction = transaction.and(one.key, 'Mod', '==', one.modRevision.toString());
    const acts = [
      ...put.map((one) => client.put(one.key).value(one.value)),
      ...remove.map((one) => client.delete().key(one)),
    ];
    let answer: Awaited<ReturnType<typeof transaction.commit>>;
    try {
      answer = await transaction
        .then(...acts)
        .else(client.get(key))
        .commit();
    } catch (cause) {
      await this.#mustStillLead(cause);
      throw new StoreUnknownError('etcd did not say whether it was written', {
        cause,
        hint: 'The curator reads it back.',
      });
    }
    const header = this.#headerOf('Txn', answer.header);
    leadership.check(known, header, 'confirmed');
    if (answer.succeeded) return { kind: 'committed', revision: header.revision };
    const [found] = answer.responses[0]?.response_range?.kvs ?? [];
    if (found?.value.toString() === value && found.create_revision === createRevision.toString())
      return { kind: 'conflict' };
    throw new NotLeadingError('another curator leads by now; nothing was written');
  }

  /** After an answer that is not clean the fence is read again: whoever has lost it must not even try once more. */
  async #mustStillLead(cause: unknown): Promise<void> {
    const { leadership, clock, log } = this.#options;
    const { key, createRevision } = leadership.fence();
    try {
      const read = this.#client.get(key).options({ deadline: clock.wallMs() + fenceMs });
      const [found] = (await read.exec()).kvs;
      if (found?.create_revision === createRevision.toString()) return;
    } catch (error) {
      log.warn({ error: describeError(error) }, 'the leader key could not be read after a write of unknown fate');
      return;
    }
    throw new NotLeadingError('another curator leads by now; what was written before may stand', { cause });
  }

  async #read<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      throw new StoreSilentError('etcd did not answer a read of the curator', { cause });
    }
  }

  #headerOf(call: string, header: WireHeader | undefined): AnswerHeader {
    const found =
      header === undefined
        ? undefined
        : {
            $typeName: 'etcdserverpb.ResponseHeader' as const,
            clusterId: BigInt(header.cluster_id),
            memberId: BigInt(header.member_id),
            revision: BigInt(header.revision),
            raftTerm: BigInt(header.raft_term),
          };
    try {
      return answerHeader(this.#options.endpoint, call, found);
    } catch (cause) {
      throw new StoreSilentError('what answered is no etcd', { cause });
    }
  }
}

/** As etcd3 gives it: 64-bit numbers as texts. */
interface WireHeader {
  readonly cluster_id: string;
  readonly member_id: string;
  readonly revision: string;
  readonly raft_term: string;
}

function credentialsOf(files: TlsFiles): NonNullable<IOptions['credentials']> {
  const { ca, key, cert } = readTlsFiles(files);
  return {
    rootCertificate: ca,
    ...(key === undefined ? {} : { privateKey: key }),
    ...(cert === undefined ? {} : { certChain: cert }),
  };
}
