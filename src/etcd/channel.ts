import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { type ChannelCredentials, type ChannelOptions, Client, credentials, status } from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { readTlsFiles, type TlsFiles, type TlsMaterial } from '../pki/tls-files.ts';
import type { EtcdAddress } from './address.ts';
import { type CallOptions, EtcdCallError, unaryCall } from './call.ts';
import { addressOf } from './refused-url.ts';

/** Where a channel leads and how it shows who it is. */
export interface EtcdChannelOptions {
  /** A client URL of one member: `https://10.0.0.1:2379`. */
  readonly endpoint: string;
  /** Needed for https. */
  readonly tls?: TlsFiles | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The one gRPC channel to one member. It is made at the first call; made anew when a TLS file has changed (the old one ends
 * with its last call), and when {@link deadlinesUntilStuck} calls in a row ran out of time, since a channel can be stuck
 * for hours behind a connection that looks alive. Whoever makes it closes it.
 */
export class EtcdChannel {
  readonly address: EtcdAddress;
  readonly #options: EtcdChannelOptions;
  #current: Generation | undefined;
  #refusedStamp: string | undefined;
  #closed = false;

  /** Throws RefusedUrlError for a URL that is never dialled. */
  constructor(options: EtcdChannelOptions) {
    this.#options = options;
    this.address = addressOf(options.endpoint);
  }

  /** One call. Throws EtcdCallError, or TlsFileError before any dial when the files are missing or do not fit together. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions,
  ): Promise<MessageShape<O>> {
    const { endpoint, clock } = this.#options;
    if (this.#closed) {
      const about = { call: method.name, endpoint, grpcCode: status.CANCELLED };
      throw new EtcdCallError({ ...about, details: 'this client is closed' });
    }
    const generation = this.#generation();
    generation.calls++;
    try {
      const answer = await unaryCall({ grpc: generation.grpc, endpoint, clock }, method, request, options);
      generation.deadlinesInARow = 0;
      return answer;
    } catch (error) {
      this.#countFailure(generation, error);
      throw error;
    } finally {
      generation.calls--;
      if (generation.retired && generation.calls === 0) generation.grpc.close();
    }
  }

  /** Ends the connection. Calls in flight fail; later ones are refused. */
  close(): void {
    this.#closed = true;
    this.#current?.grpc.close();
    this.#current = undefined;
  }

  #countFailure(generation: Generation, error: unknown): void {
    const late = error instanceof EtcdCallError && error.grpcCode === status.DEADLINE_EXCEEDED;
    generation.deadlinesInARow = late ? generation.deadlinesInARow + 1 : 0;
    if (generation.deadlinesInARow < deadlinesUntilStuck || generation !== this.#current) return;
    this.#options.log.info({ endpoint: this.#options.endpoint }, 'calls keep running out of time: dialling anew');
    this.#retire(generation);
  }

  #retire(generation: Generation): void {
    generation.retired = true;
    if (generation.calls === 0) generation.grpc.close();
    if (this.#current === generation) this.#current = undefined;
  }

  /** The channel to use now. */
  #generation(): Generation {
    const current = this.#current;
    const stamp = stampOf(this.#options.tls);
    if (current?.stamp === stamp) return current;
    try {
      const next = this.#dial(stamp);
      if (current !== undefined) {
        this.#options.log.info({ endpoint: this.#options.endpoint }, 'TLS files have changed: new connection');
        this.#retire(current);
      }
      this.#current = next;
      return next;
    } catch (error) {
      if (current === undefined) throw error;
      // Half-replaced files: what was good goes on, and the next call looks again.
      if (this.#refusedStamp !== stamp) {
        const because = describeError(error);
        this.#options.log.warn({ endpoint: this.#options.endpoint, because }, 'changed TLS files are not used yet');
        this.#refusedStamp = stamp;
      }
      return current;
    }
  }

  #dial(stamp: string): Generation {
    const { tls } = this.#options;
    const { host, hostPort, secure } = this.address;
    if (secure && tls === undefined) {
      const about = { call: 'dial', endpoint: this.#options.endpoint, grpcCode: status.FAILED_PRECONDITION };
      throw new EtcdCallError({ ...about, details: 'the address is https and no TLS files are configured' });
    }
    const security =
      secure && tls !== undefined ? secureCredentials(readTlsFiles(tls), host) : credentials.createInsecure();
    // SNI may not carry an IP address; the identity is checked against the address all the same, see secureCredentials.
    const target = secure && isIP(host) !== 0 ? { 'grpc.ssl_target_name_override': 'localhost' } : {};
    const grpc = new Client(`dns:${hostPort}`, security, { ...channelOptions, ...target });
    return { grpc, stamp, calls: 0, deadlinesInARow: 0, retired: false };
  }
}

/** After so many calls in a row that ran out of time the channel is made anew. */
export const deadlinesUntilStuck = 3;

/** One life of the channel. */
interface Generation {
  readonly grpc: Client;
  /** Which state of the TLS files it was made from. */
  readonly stamp: string;
  calls: number;
  deadlinesInARow: number;
  retired: boolean;
}

const channelOptions: ChannelOptions = {
  // grpc's own backoff grows to minutes: a member that came back would be noticed late.
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.min_reconnect_backoff_ms': 200,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // etcd answers pings faster than every 5 s, or without a call, with GOAWAY.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 3_000,
  // A repeated membership change is another change: whether to repeat is decided by the caller.
  'grpc.enable_retries': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.service_config_disable_resolution': 1,
  // Members are reached directly, whatever proxy the environment names.
  'grpc.enable_http_proxy': 0,
};

function secureCredentials(material: TlsMaterial, host: string): ChannelCredentials {
  return credentials.createSsl(material.ca, material.key ?? null, material.cert ?? null, {
    checkServerIdentity: (_name, cert) => checkServerIdentity(host, cert),
  });
}

/** Changes when one of the files is replaced, written or gone. */
function stampOf(files: TlsFiles | undefined): string {
  if (files === undefined) return '';
  return [files.certFile, files.keyFile, files.caFile]
    .map((file) => (file === undefined ? '-' : stampOfFile(file)))
    .join();
}

function stampOfFile(file: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch {
    return 'unreadable';
  }
}
