import { AgentError } from '../base/errors.ts';

/** An operator's order that is refused: nothing was changed. */
export class OrderRefusedError extends AgentError {
  readonly code = 'ORDER_REFUSED';
}
