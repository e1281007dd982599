import { AgentError } from '../base/errors.ts';

/** A fact could not be made durable. The step that it reports must not be taken, or must be reported later. */
export class OutboxRefusedError extends AgentError {
  readonly code = 'OUTBOX_REFUSED';
  constructor(what: string, directory: string, cause: unknown) {
    super(`${what} could not be written to the outbox ${directory}`, {
      cause,
      hint: 'Free space or repair the disk below this directory; the agent tries again by itself.',
    });
  }
}

/** The outbox was written by a newer agent. Nothing is changed: the agent is supervise-only. */
export class OutboxNewerError extends AgentError {
  readonly code = 'OUTBOX_NEWER';
  constructor(path: string, version: number) {
    super(`${path} is of version ${version}, which this agent does not know`, {
      hint: 'Run the newer agent again; its records are never overwritten.',
    });
  }
}

/** The outbox cannot be read. That is not the same as empty. */
export class OutboxUnreadableError extends AgentError {
  readonly code = 'OUTBOX_UNREADABLE';
  constructor(path: string, cause: unknown) {
    super(`${path} cannot be read`, {
      cause,
      hint: 'Check the disk and the permissions of the state directory, then restart the agent; etcd runs on.',
    });
  }
}

/** Somebody named a place in the history that is not the right one. */
export class OutboxPlaceError extends AgentError {
  readonly code = 'OUTBOX_PLACE';
}
