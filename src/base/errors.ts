/** @pure file: errors of our own, and how they are printed. */

/**
 * An expected failure: it says what was tried and with which values; `hint` says what helps. The cause stays in `cause`
 * and is printed once, at the edge, by {@link describeError}.
 */
export abstract class AgentError extends Error {
  /** Stable and machine-readable, for example `ETCD_LEARNER_NOT_READY`. Listed in docs/errors.md. */
  abstract readonly code: string;
  /** What the operator can do, as one sentence; empty if nothing is needed. */
  readonly hint: string;

  constructor(message: string, options: { readonly cause?: unknown; readonly hint?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.hint = options.hint ?? '';
  }
}

/** A belief of ours that turned out wrong. The agent ends with it and is started anew; etcd runs on. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** The message of an error and of its whole chain of causes, in one line, outermost first. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current !== undefined && current !== null && depth < 8; depth++) {
    parts.push(current instanceof Error ? current.message : String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(': ');
}

/** The errno name of a system error (`ENOSPC`, `ENOENT`, …), or undefined. */
export function errnoOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}
