import type { FastifyError } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { AgentError, describeError } from '../../base/errors.ts';
import { OutboxRefusedError } from '../../upstream/outbox-errors.ts';
import { DiskRefusedError } from '../disk-refused.ts';
import { StateNotWrittenError } from '../state/durable-value.ts';
import { StrictJsonError } from './strict-json.ts';

/** Body of every answer that is not a success. */
export interface ApiErrorBody {
  /** Stable and machine-readable; docs/errors.md. */
  readonly code: string;
  readonly message: string;
  /** What helps; empty if nothing does. */
  readonly hint: string;
}

/**
 * How an error leaves the API. A refusal of the agent is 409 (nothing was done), a bad request 4xx, a disk that refused something on
 * the way and anything unforeseen 500 (it may be done in part).
 */
export function apiErrorOf(error: unknown): { readonly status: number; readonly body: ApiErrorBody } {
  if (error instanceof AgentError) {
    const status = failures.some((failure) => error instanceof failure) ? 500 : 409;
    return { status, body: { code: error.code, message: describeError(error), hint: error.hint } };
  }
  if (error instanceof StrictJsonError) return badRequest('API_BAD_JSON', `the body is refused: ${error.message}`);
  if (hasZodFastifySchemaValidationErrors(error)) {
    const faults = error.validation.map(({ instancePath, message }) => {
      const place = instancePath.slice(1).replaceAll('/', '.');
      return place === '' ? message : `${place}: ${message}`;
    });
    return badRequest('API_BAD_REQUEST', faults.join('; '));
  }
  const status = (error as Partial<FastifyError> | null | undefined)?.statusCode ?? 500;
  if (error instanceof Error && status >= 400 && status < 500) {
    return { status, body: { code: clientFaults.get(status) ?? 'API_BAD_REQUEST', message: error.message, hint: '' } };
  }
  if (status === 503) {
    return { status, body: { code: 'API_TIMEOUT', message: 'the agent did not finish this in time', hint: lookHint } };
  }
  return {
    status: 500,
    body: {
      code: 'API_INTERNAL',
      message: 'the agent failed to answer this; its log says why',
      hint: 'Look for "api request failed" in the log of the agent: journalctl -u etcd-node-agent',
    },
  };
}

const failures = [StateNotWrittenError, DiskRefusedError, OutboxRefusedError];

const lookHint = 'It may still happen. Look with: etcd-node-agent status';

const clientFaults: ReadonlyMap<number, string> = new Map([
  [404, 'API_NOT_FOUND'],
  [413, 'API_BODY_TOO_LARGE'],
  [415, 'API_NOT_JSON'],
]);

function badRequest(code: string, message: string): { status: number; body: ApiErrorBody } {
  return { status: 400, body: { code, message, hint: '' } };
}
