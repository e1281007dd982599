import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';

/** How hard a member is asked. */
export interface HammerOptions {
  /** How many calls are in flight on each connection. Default 8. */
  readonly callers?: number;
  /** Default 1. */
  readonly connections?: number;
}

/**
 * Status calls on one member, many at a time and without a rest: what makes IsLocalMemberLearner panic at a removal. Plain
 * HTTP/2 instead of our client: on a busy machine a call must cost the caller next to nothing, or etcd is not busy with them.
 */
export class StatusHammer {
  readonly #connections: readonly Promise<void>[];
  readonly #callers: number;
  readonly #stop = new AbortController();
  answered = 0;

  constructor(endpoint: string, { callers = 8, connections = 1 }: HammerOptions = {}) {
    this.#callers = callers;
    this.#connections = Array.from({ length: connections }, () => this.#keepAsking(endpoint));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#connections);
  }

  /** A connection that is lost is made anew: the member is gone, or on its way. */
  async #keepAsking(endpoint: string): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#ask(endpoint);
      await sleep(20);
    }
  }

  /** Asks on one connection, and resolves when it has ended. */
  #ask(endpoint: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const session = connect(endpoint);
    const hangUp = () => session.destroy();
    this.#stop.signal.addEventListener('abort', hangUp, { once: true });
    const call = () => {
      if (session.destroyed || session.closed) return;
      const stream = session.request(statusCall);
      stream.on('error', () => undefined);
      stream.on('trailers', (trailers) => {
        if (trailers['grpc-status'] === '0') this.answered++;
      });
      stream.on('close', call);
      stream.resume().end(emptyMessage);
    };
    session.on('error', () => undefined);
    session.on('connect', () => {
      for (let caller = 0; caller < this.#callers; caller++) call();
    });
    session.on('close', () => {
      this.#stop.signal.removeEventListener('abort', hangUp);
      resolve();
    });
    return promise;
  }
}

const statusCall = {
  ':method': 'POST',
  ':path': '/etcdserverpb.Maintenance/Status',
  'content-type': 'application/grpc',
  te: 'trailers',
};

/** A gRPC message without a field: not compressed, length 0. */
const emptyMessage = Buffer.alloc(5);
