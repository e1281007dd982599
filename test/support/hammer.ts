import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/**
 * Status calls on one member, on several connections at a steady pace: what makes IsLocalMemberLearner panic at a removal. A
 * tight loop does not hit more often: it starves etcd, the leader with it. They run in a thread of their own (hammer-worker.ts).
 */
export class StatusHammer {
  readonly #worker: Worker;
  readonly #ended: Promise<unknown>;
  answered = 0;

  /** `connections`: default 4; on each a call every `everyMs` (default 10). */
  constructor(endpoint: string, how: { readonly connections?: number; readonly everyMs?: number } = {}) {
    const { connections = 4, everyMs = 10 } = how;
    this.#worker = new Worker(join(import.meta.dirname, 'hammer-worker.ts'), {
      workerData: { endpoint, connections, everyMs },
    });
    this.#worker.on('message', () => this.answered++);
    this.#ended = once(this.#worker, 'exit');
  }

  async stop(): Promise<void> {
    this.#worker.postMessage('stop');
    await this.#ended;
  }
}

export { withClient } from '../../lab/with-client.ts';
