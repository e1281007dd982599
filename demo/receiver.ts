/**
 * The upstream of the demo, a process of its own: takes batches of CloudEvents as they are posted, keeps each event once by
 * (node, stream, seq, id), and tells what it has. Prints its port when it listens.
 *
 *   receiver.ts DIRECTORY      (DIRECTORY only names the demo it belongs to)
 *
 *   POST /reports   a batch      GET /reports   what was received, as {@link Received}
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { CloudEvent } from '../src/upstream/cloud-event.ts';

/** What the receiver has. */
export interface Received {
  /** Each event once, in order of arrival. */
  readonly events: readonly CloudEvent[];
  /** How many came again. */
  readonly duplicates: number;
  /** How many came under a number that another event has already: the sender would have lost its history. */
  readonly forks: number;
}

function listen(): void {
  const received = new EventStore();
  const server = createServer((request, response) => {
    answer(request, response, received).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.stdout.write(`${typeof address === 'object' ? address?.port : address}\n`);
  });
}

async function answer(request: IncomingMessage, response: ServerResponse, received: EventStore): Promise<void> {
  if (request.url !== '/reports') return void response.writeHead(404).end();
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'application/json' });
    return void response.end(`${JSON.stringify(received.all())}\n`);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const batch: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  if (!Array.isArray(batch)) return void response.writeHead(400).end('this is no batch of CloudEvents');
  for (const event of batch as readonly CloudEvent[]) received.take(event);
  response.writeHead(204).end();
}

class EventStore {
  readonly #events: CloudEvent[] = [];
  readonly #ids = new Map<string, string>();
  #duplicates = 0;
  #forks = 0;

  take(event: CloudEvent): void {
    const place = `${event.node} ${event.stream} ${event.seq}`;
    const known = this.#ids.get(place);
    if (known === event.id) {
      this.#duplicates++;
      return;
    }
    if (known === undefined) this.#ids.set(place, event.id);
    else this.#forks++;
    this.#events.push(event);
  }

  all(): Received {
    return { events: this.#events, duplicates: this.#duplicates, forks: this.#forks };
  }
}

if (import.meta.main) listen();
