import { AgentError } from '../base/errors.ts';

/** The command line contradicts itself, or names something that cannot be read. Nothing was done. */
export class UsageError extends AgentError {
  readonly code = 'USAGE';
}
