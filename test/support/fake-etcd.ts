import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type handleUnaryCall, Server, ServerCredentials, type status } from '@grpc/grpc-js';

/** What the fake answers to one method: a message, a refusal, or never. */
export type FakeAnswer<O extends DescMessage> = MessageInitShape<O> | FakeRefusal | 'never';

/** A refusal in etcd's form. */
export class FakeRefusal {
  readonly code: status;
  readonly details: string;

  constructor(code: status, details: string) {
    this.code = code;
    this.details = details;
  }
}

/**
 * A gRPC server on loopback that answers etcd's calls as a test wants, for what a real etcd does not do on demand. It
 * notes every request. `await using` ends it.
 */
export class FakeEtcd {
  readonly #server = new Server();
  /** Method names in the order of their arrival. */
  readonly asked: string[] = [];
  endpoint = '';

  /** Answers one method; a method without an answer is UNIMPLEMENTED. Called before {@link listen}. */
  answer<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    answer: (request: MessageShape<I>) => FakeAnswer<O>,
  ): this {
    const handler: handleUnaryCall<MessageShape<I>, Buffer> = (call, callback) => {
      this.asked.push(method.name);
      const given = answer(call.request);
      if (given === 'never') return;
      if (given instanceof FakeRefusal) callback(given);
      else callback(null, Buffer.from(toBinary(method.output, create(method.output, given as MessageInitShape<O>))));
    };
    const definition = {
      path: `/${method.parent.typeName}/${method.name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (value: Buffer) => value,
      requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    };
    this.#server.addService({ [method.name]: definition }, { [method.name]: handler });
    return this;
  }

  async listen(): Promise<this> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
    this.endpoint = `http://127.0.0.1:${await promise}`;
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
  }
}
