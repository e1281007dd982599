import type { LogQuery } from '../agent/control.ts';
import type { LogControl } from '../agent/node-control.ts';
import { AgentError } from '../base/errors.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';

/** The log of that life is not kept any more, or never was. */
export class NoSuchLifeError extends AgentError {
  readonly code = 'NO_SUCH_LIFE';
}

/** etcd's logs, one file for each life. */
export class EtcdLogs implements LogControl {
  readonly #supervisor: Supervisor;
  readonly #listeners = new Set<(line: string) => void>();

  constructor(supervisor: Supervisor) {
    this.#supervisor = supervisor;
  }

  /** Tells those who follow. */
  heard(line: string): void {
    for (const listener of this.#listeners) listener(line);
  }

  async lines({ life, lines }: LogQuery): Promise<readonly string[]> {
    const view = this.#supervisor.view();
    const number = life ?? view.life?.number ?? view.lastEnd?.number;
    if (number === undefined) return [];
    let kept: string[] = [];
    const found = await this.#supervisor.replay(number, (line) => {
      kept.push(line.text);
      // Cut in large steps: a log has many more lines than anybody asks for.
      if (kept.length >= 2 * lines + 1_000) kept = kept.slice(-lines);
    });
    if (!found)
      throw new NoSuchLifeError(`the log of life ${number} is not here`, {
        hint: 'Without --life the newest is shown.',
      });
    return kept.slice(-lines);
  }

  follow(listener: (line: string) => void, signal: AbortSignal): void {
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener), { once: true });
  }
}
