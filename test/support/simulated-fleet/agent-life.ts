import type { CancelTimer, Clock } from '../../../src/base/clock.ts';
import { DiskCrash } from '../memory-disk.ts';

/** The agent was killed; whatever still runs in it ends here. Never an AgentError: the product must not take it for a refusal. */
export class AgentKilled extends Error {
  override readonly name = 'AgentKilled';
}

/**
 * One life of an agent, from boot to its end. Everything it has of the world goes through this: once it is dead nothing that
 * is left of it can do, hear or wait for anything.
 */
export class AgentLife {
  readonly #onDeath: () => void;
  #dead = false;

  constructor(onDeath: () => void) {
    this.#onDeath = onDeath;
  }

  get dead(): boolean {
    return this.#dead;
  }

  kill(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#onDeath();
  }

  /** The clock as it is for this life: no timer of a dead one fires. */
  clock(clock: Clock): Clock {
    return {
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      after: (delayMs, fire): CancelTimer => clock.after(delayMs, () => void (this.#dead || fire())),
    };
  }

  /** A port as it is for this life: the calls of a dead one are refused, and no answer reaches it. */
  through<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        const method = value as (...args: never[]) => unknown;
        return (...args: unknown[]) => this.#call(target, method, args);
      },
    });
  }

  #call(target: object, method: (...args: never[]) => unknown, args: unknown[]): unknown {
    if (this.#dead) throw new AgentKilled('the agent is dead');
    try {
      const result: unknown = Reflect.apply(method, target, args);
      if (result instanceof Promise) return this.#whileAlive(result);
      return isPort(result) ? this.through(result) : result;
    } catch (error) {
      if (!(error instanceof DiskCrash)) throw error;
      this.kill();
      throw new AgentKilled(error.message);
    }
  }

  #whileAlive<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => void (this.#dead || resolve(value)),
        (error) => void (this.#dead || reject(error)),
      );
    });
  }
}

/** An open file, or the keys of one endpoint: an object with calls of its own. */
function isPort(value: unknown): value is object {
  return typeof value === 'object' && value !== null && ('append' in value || 'create' in value);
}
