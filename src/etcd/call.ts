import type { MessageShape } from '@bufbuild/protobuf';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';

/**
 * A call to etcd that got no good answer. Which refusal it is, and whether a change may have been applied all the same, is
 * read from {@link grpcCode} and {@link details} elsewhere: etcd's text is the stable key, its codes differ by version.
 */
export class EtcdCallError extends AgentError {
  readonly code = 'ETCD_CALL';
  /** gRPC's number: 14 is UNAVAILABLE. */
  readonly grpcCode: number;
  /** The same as a word: `UNAVAILABLE`. */
  readonly grpcCodeName: string;
  /** etcd's text, or grpc's when none came from etcd. */
  readonly details: string;
  /** The URL that was dialled. */
  readonly endpoint: string;
  /** The method: `MemberAdd`. */
  readonly call: string;

  constructor(about: { call: string; endpoint: string; grpcCode: number; details: string; cause?: unknown }) {
    const name = status[about.grpcCode] ?? `code ${about.grpcCode}`;
    super(`${about.call} at ${about.endpoint}: ${name}: ${about.details}`, { cause: about.cause });
    this.grpcCode = about.grpcCode;
    this.grpcCodeName = name;
    this.details = about.details;
    this.endpoint = about.endpoint;
    this.call = about.call;
  }
}

/** How long a call may take, and who may end it early. */
export interface CallOptions {
  /** Unit: ms, from the moment of the call. No call is without. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Where a call goes. */
export interface CallTarget {
  readonly grpc: Client;
  readonly endpoint: string;
  readonly clock: Clock;
}

/** One unary call: it ends by its deadline whatever the other side does. Throws {@link EtcdCallError} and nothing else. */
export function unaryCall<I extends DescMessage, O extends DescMessage>(
  target: CallTarget,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  { deadlineMs, signal }: CallOptions,
): Promise<MessageShape<O>> {
  const about = { call: method.name, endpoint: target.endpoint };
  const { promise, resolve, reject } = Promise.withResolvers<MessageShape<O>>();
  if (signal?.aborted) {
    reject(new EtcdCallError({ ...about, grpcCode: status.CANCELLED, details: 'given up before it was sent' }));
    return promise;
  }
  const message = create(method.input, request);
  // etcd is told the deadline too, so that a handler which waits for a quorum ends with it.
  const deadline = new Date(target.clock.wallMs() + deadlineMs);
  const call = target.grpc.makeUnaryRequest(
    `/${method.parent.typeName}/${method.name}`,
    (value: MessageShape<I>) => Buffer.from(toBinary(method.input, value)),
    (bytes: Buffer) => fromBinary(method.output, bytes),
    message,
    new Metadata(),
    { deadline },
    (error, answer) => {
      cancelBackstop();
      signal?.removeEventListener('abort', onAbort);
      if (error !== null) reject(callError(error));
      else if (answer === undefined)
        reject(callError({ code: status.INTERNAL, details: 'an answer without a message' }));
      else resolve(answer);
    },
  );
  let late = false;
  // grpc's deadline is wall time; when the clock is set back during the call, this one still ends it.
  const cancelBackstop = target.clock.after(deadlineMs + backstopMs, () => {
    late = true;
    call.cancel();
  });
  signal?.addEventListener('abort', onAbort, { once: true });
  return promise;

  function onAbort(): void {
    call.cancel();
  }
  function callError(error: Pick<ServiceError, 'code' | 'details'>): EtcdCallError {
    if (late) {
      const details = `no answer within ${deadlineMs} ms`;
      return new EtcdCallError({ ...about, grpcCode: status.DEADLINE_EXCEEDED, details, cause: error });
    }
    const cause = signal?.aborted ? signal.reason : undefined;
    return new EtcdCallError({ ...about, grpcCode: error.code, details: error.details, cause });
  }
}

const backstopMs = 250;
