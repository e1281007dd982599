import { AgentError } from '../base/errors.ts';
import type { Holder, ProcessRecord } from './process.ts';

/** Another child or a process unknown to us holds the lock; nothing was started. */
export class LockHeldError extends AgentError {
  readonly code = 'SUPERVISOR_LOCK_HELD';
  readonly holders: readonly Holder[];

  constructor(lockFile: string, holders: readonly Holder[]) {
    const named = holders.map(({ pid, commandLine }) => `pid ${pid} (${commandLine.join(' ').slice(0, 120)})`);
    super(`the lock ${lockFile} is held by ${named.join(', ') || 'a process that cannot be seen from here'}`, {
      hint: 'Find out what that process is. It may be the same program, started by hand or by another agent.',
    });
    this.holders = holders;
  }
}

/** A child lives already, or one is being started; nothing was started. */
export class AlreadyRunningError extends AgentError {
  readonly code = 'SUPERVISOR_ALREADY_RUNNING';
  constructor(phase: string, pid: number | undefined) {
    super(`no second child: the first is ${phase}${pid === undefined ? '' : ` (pid ${pid})`}`);
  }
}

/** The child could not be launched: no keeper, or it ended before it had recorded a child. */
export class LaunchFailedError extends AgentError {
  readonly code = 'SUPERVISOR_LAUNCH_FAILED';
  constructor(what: string, cause?: unknown) {
    super(`the child was not started: ${what}`, { cause, hint: 'keeper.log in the directory of this life says more.' });
  }
}

/** The files of a new life could not be written; nothing was started. */
export class LifeNotPreparedError extends AgentError {
  readonly code = 'SUPERVISOR_LIFE_NOT_PREPARED';
  constructor(directory: string, cause: unknown) {
    super(`cannot prepare ${directory} for a start`, {
      cause,
      hint: 'Free space on that file system, or make it writable.',
    });
  }
}

/** The program cannot run on this machine, which was seen before trying. */
export class BinaryUnusableError extends AgentError {
  readonly code = 'SUPERVISOR_BINARY_UNUSABLE';
  constructor(path: string, problem: string, cause?: unknown) {
    super(`${path} cannot be run: ${problem}`, { cause, hint: 'Install a whole program for this machine there.' });
  }
}

/** The process that has the recorded pid is not surely ours; no signal was sent. */
export class NotOurProcessError extends AgentError {
  readonly code = 'SUPERVISOR_NOT_OUR_PROCESS';
  constructor(record: ProcessRecord, why: string) {
    super(`pid ${record.pid} gets no signal, since it is not surely the child: ${why}`);
  }
}

/** The supervisor was closed (the agent ends); the child runs on. */
export class SupervisorClosedError extends AgentError {
  readonly code = 'SUPERVISOR_CLOSED';
  constructor() {
    super('the supervisor was closed; the child was left as it is');
  }
}
