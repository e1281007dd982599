import type { ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';

/** One server-sent event: an id to resume after (or none), a name, and one line of JSON. */
export interface StreamItem {
  readonly id?: string;
  readonly data: unknown;
}

/** Bounds of streams that follow something. */
export interface StreamLimits {
  /** Unread bytes after which a slow reader is cut off. Default 1 MiB. It resumes where it was, by `Last-Event-ID`. */
  readonly maxUnreadBytes: number;
  /** Between two comments that keep the connection in use. Unit: ms, default 15 000. */
  readonly keepAliveMs: number;
  /** How many streams may be open. Default 16. */
  readonly maxStreams: number;
}

/**
 * Sends server-sent events until the reader goes away, is too slow, or the API closes. Nothing here waits for the reader:
 * a reader that stops reading costs at most `maxUnreadBytes`.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #limits: StreamLimits;
  readonly #ended = new AbortController();
  #cancelKeepAlive: () => void = () => {};

  constructor(options: { response: ServerResponse; clock: Clock; limits: StreamLimits; closing: AbortSignal }) {
    const { response, clock, limits, closing } = options;
    this.#response = response;
    this.#limits = limits;
    const end = () => this.end();
    response.once('close', end);
    response.once('error', end);
    closing.addEventListener('abort', end, { once: true });
    this.signal.addEventListener('abort', () => closing.removeEventListener('abort', end), { once: true });
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    const keepAlive = () => {
      this.#write(': still here\n\n');
      if (!this.signal.aborted) this.#cancelKeepAlive = clock.after(limits.keepAliveMs, keepAlive);
    };
    this.#cancelKeepAlive = clock.after(limits.keepAliveMs, keepAlive);
    if (closing.aborted) this.end();
  }

  /** Aborts when the stream has ended, for whatever reason. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  send(item: StreamItem): void {
    // JSON has no line break outside its escapes, so one `data:` line holds it.
    const id = item.id === undefined ? '' : `id: ${item.id}\n`;
    this.#write(`${id}data: ${JSON.stringify(item.data)}\n\n`);
  }

  end(): void {
    if (this.signal.aborted) return;
    this.#cancelKeepAlive();
    this.#ended.abort();
    this.#response.end();
  }

  #write(text: string): void {
    if (this.signal.aborted) return;
    this.#response.write(text);
    if (this.#response.writableLength <= this.#limits.maxUnreadBytes) return;
    this.end();
    this.#response.destroy();
  }
}
