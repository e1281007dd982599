import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { CloudEvent } from '../../src/upstream/cloud-event.ts';

/** How the receiver treats one request. What is not named is done well: stored and answered with 204. */
export interface Answer {
  /** Default 204 if it stores, else 503. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether the events are kept. Default: true for 2xx. With `drop` it is the lost acknowledgement. */
  readonly store?: boolean;
  /** `cut`: the connection is closed without an answer. `hang`: no answer, ever. `trickle`: the body comes at one byte a second. */
  readonly drop?: 'cut' | 'hang' | 'trickle';
}

/** One request as it arrived. */
export interface ReceivedRequest {
  readonly headers: IncomingMessage['headers'];
  readonly method: string;
  readonly path: string;
  readonly events: readonly CloudEvent[];
  readonly answer: Answer;
  /** The subject of the client's certificate, if it sent one. */
  readonly clientName: string | undefined;
}

/** How a receiver is set up. */
export interface ReceiverOptions {
  /** PEM texts. With `ca` a certificate of the client is demanded. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
  /** Default: one that the system picks. */
  readonly port?: number;
}

/**
 * A receiver of reports as a user would write one: it keeps each event once, by (node, stream, seq, id), and it can be
 * told to misbehave. For tests and for the demo.
 */
export class WebhookReceiver {
  /** All requests, in order of arrival. */
  readonly requests: ReceivedRequest[] = [];
  /** Every event once, in order of first arrival. */
  readonly events: CloudEvent[] = [];
  /** How many events came again. */
  duplicates = 0;
  /** How many connections were made. */
  connections = 0;
  /** Events that came under a number which another event has already: the sender lost its history. Gaps are no fork. */
  readonly forks: CloudEvent[] = [];
  /** A request with an event for which this holds is refused as a whole with 400 (a poison event). */
  poison: (event: CloudEvent) => boolean = () => false;
  /** How requests are answered while nothing is queued by {@link answerNext}. */
  answerAlways: Answer = {};

  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #next: Answer[] = [];
  readonly #ids = new Map<string, string>();
  readonly #waiting = new Set<() => void>();
  readonly #scheme: string;

  private constructor(options: ReceiverOptions) {
    const handler = (request: IncomingMessage, response: ServerResponse) => {
      // A sender that goes away in the middle of its request has sent nothing.
      this.#handle(request, response).catch(() => response.destroy());
    };
    const { tls } = options;
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server =
      tls === undefined
        ? createServer(handler)
        : createTlsServer(
            { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined },
            handler,
          );
    this.#server.on('connection', (socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** Listens on loopback. */
  static async start(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver(options);
    await new Promise<void>((resolve, reject) => {
      receiver.#server.once('error', reject).listen(options.port ?? 0, '127.0.0.1', resolve);
    });
    return receiver;
  }

  get port(): number {
    return addressOf(this.#server).port;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}/reports`;
  }

  /** The next requests are answered like this, one each. */
  answerNext(...answers: readonly Answer[]): void {
    this.#next.push(...answers);
  }

  /** Resolves as soon as `holds`, looked at after each request; rejects after `withinMs` (default 10 s). */
  until(holds: () => boolean, withinMs = 10_000): Promise<void> {
    if (holds()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        const seen = `${this.requests.length} requests, ${this.events.length} events`;
        reject(new Error(`the receiver did not get there within ${withinMs} ms: ${seen}`));
      }, withinMs);
      this.#waiting.add(look);
    });
  }

  /** Drops every connection and stops listening. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const events = parseEvents(await readBody(request));
    const answer = this.#answerFor(events);
    const { method = '', url: path = '', headers } = request;
    const stored = answer.store ?? (answer.status ?? 204) < 300;
    if (stored && events !== undefined) for (const event of events) this.#keep(event);
    this.requests.push({ method, path, headers, events: events ?? [], answer, clientName: clientName(request) });
    this.#respond(response, answer, stored);
    for (const look of [...this.#waiting]) look();
  }

  #answerFor(events: readonly CloudEvent[] | undefined): Answer {
    if (events === undefined) return { status: 400, body: 'this is no batch of CloudEvents' };
    const queued = this.#next.shift();
    if (queued !== undefined) return queued;
    const poisoned = events.find((event) => this.poison(event));
    return poisoned === undefined
      ? this.answerAlways
      : { status: 400, body: `cannot take ${poisoned.type} ${poisoned.id}` };
  }

  #keep(event: CloudEvent): void {
    const place = `${event.node} ${event.stream} ${event.seq}`;
    const known = this.#ids.get(place);
    if (known === event.id) {
      this.duplicates++;
      return;
    }
    const isGap = event.type === 'etcd-node-agent.outbox.gap';
    // A gap only stands in for what the sender no longer has; here it is still known.
    if (known !== undefined && isGap) return;
    if (known !== undefined) this.forks.push(event);
    else this.#ids.set(place, event.id);
    this.events.push(event);
  }

  #respond(response: ServerResponse, answer: Answer, stored: boolean): void {
    if (answer.drop === 'cut') return void response.destroy();
    if (answer.drop === 'hang') return;
    const usual = answer.drop === 'trickle' ? 200 : 204;
    response.writeHead(answer.status ?? (stored ? usual : 503), answer.headers);
    if (answer.drop !== 'trickle') return void response.end(answer.body);
    response.flushHeaders();
    const timer = setInterval(() => response.write('.'), 1_000);
    response.on('close', () => clearInterval(timer));
  }
}

function addressOf(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the receiver does not listen');
  return address;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function parseEvents(body: string): readonly CloudEvent[] | undefined {
  try {
    const events: unknown = JSON.parse(body);
    return Array.isArray(events) ? events : undefined;
  } catch {
    return undefined;
  }
}

function clientName(request: IncomingMessage): string | undefined {
  const socket = request.socket as Socket & { getPeerCertificate?: () => { subject?: { CN?: string } } };
  return socket.getPeerCertificate?.().subject?.CN;
}
