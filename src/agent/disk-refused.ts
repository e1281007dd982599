import { AgentError, errnoOf } from '../base/errors.ts';

/** A file system refused something in the middle of a step or a command; what was begun is safe to repeat. */
export class DiskRefusedError extends AgentError {
  readonly code = 'DISK_REFUSED';
  constructor(what: string, cause: unknown) {
    super(`${what} could not be done`, {
      cause,
      hint: 'Free space, or repair permissions or the file system of the path that is named; a step is tried again by itself.',
    });
  }
}

/** What `what` failed with: the word of a file system as an error that the agent lives on, anything else as it is. */
export function orDiskRefused(what: string, error: unknown): unknown {
  if (error instanceof AgentError || !/^E[A-Z0-9]+$/.test(errnoOf(error) ?? '')) return error;
  return new DiskRefusedError(what, error);
}
