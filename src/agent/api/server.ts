import { createServer, type RequestListener, type Server } from 'node:http';
import { fastify } from 'fastify';
import { validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Clock } from '../../base/clock.ts';
import { describeError, InvariantError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { AgentControl } from '../control.ts';
import { apiErrorOf } from './api-error.ts';
import { addRoutes, TooManyStreamsError } from './routes.ts';
import { listenOnSocket } from './socket.ts';
import { EventStream, type StreamLimits } from './stream.ts';
import { parseStrictJson } from './strict-json.ts';

/** What the local API needs. */
export interface ApiOptions {
  readonly control: AgentControl;
  /** Absolute path of the unix socket; its directory is made, mode 0750. */
  readonly socketPath: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Overrides for tests. */
  readonly limits?: Partial<ApiLimits>;
}

/** What one client may take from the agent. None of it is configurable: no honest client needs more. */
export interface ApiLimits extends StreamLimits {
  /** Unit: bytes, default 64 KiB. */
  readonly maxBodyBytes: number;
  /** Open connections; further ones are closed at once. Default 64. */
  readonly maxConnections: number;
  /** Until the head of a request is here. Unit: ms, default 5000. */
  readonly headersTimeoutMs: number;
  /** Until a whole request is here. Unit: ms, default 10 000. */
  readonly requestTimeoutMs: number;
  /** Until a command has to be done; it may happen nevertheless. Unit: ms, default 120 000 (a stop waits for etcd). */
  readonly handlerTimeoutMs: number;
  /** How often connections are looked at for the timeouts above. Unit: ms, default 1000. */
  readonly checkingIntervalMs: number;
}

/** The running API. */
export interface ApiServer {
  readonly socketPath: string;
  /** Ends streams and connections and removes the socket. */
  close(): Promise<void>;
}

/**
 * Serves AgentControl on a unix socket: HTTP, JSON, and server-sent events where something is followed. Whatever a client
 * sends ends in an answer or a closed connection; nothing of it reaches the agent as an exception. Throws SocketInUseError,
 * SocketError.
 */
export async function startApi(options: ApiOptions): Promise<ApiServer> {
  const limits: ApiLimits = { ...defaultLimits, ...options.limits };
  const closing = new AbortController();
  const app = buildApp(options, limits, closing.signal);
  await app.ready();
  const { server } = app;
  await listenOnSocket(server, options.socketPath, options.log);
  server.on('error', (error) => options.log.error({ error }, 'the socket of the local api failed'));
  options.log.info({ socket: options.socketPath }, 'the local api listens');
  return {
    socketPath: options.socketPath,
    async close() {
      closing.abort();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await app.close();
    },
  };
}

const defaultLimits: ApiLimits = {
  maxBodyBytes: 64 * 1024,
  maxConnections: 64,
  headersTimeoutMs: 5000,
  requestTimeoutMs: 10_000,
  handlerTimeoutMs: 120_000,
  checkingIntervalMs: 1000,
  maxUnreadBytes: 1024 * 1024,
  keepAliveMs: 15_000,
  maxStreams: 16,
};

function buildApp(options: ApiOptions, limits: ApiLimits, closing: AbortSignal) {
  const { control, clock, log } = options;
  const app = fastify({
    logger: false,
    bodyLimit: limits.maxBodyBytes,
    handlerTimeout: limits.handlerTimeoutMs,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 100 },
    serverFactory: (handler) => boundedServer(handler, limits),
    // Otherwise fastify loads compilers of its own (about 1 MB) that zod's, below, make useless.
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  // Only JSON, and only JSON that means one thing.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, async (_request: unknown, text: string) => {
    return text === '' ? undefined : parseStrictJson(text);
  });
  app.setErrorHandler((error, request, reply) => {
    const { status, body } = apiErrorOf(error);
    if (status >= 500)
      log.error({ method: request.method, path: request.routeOptions.url, error }, 'api request failed');
    else if (request.method === 'POST') log.warn({ path: request.url, ...body }, 'api command refused');
    return reply.status(status).send(body);
  });
  app.setNotFoundHandler((request, reply) => {
    const message = `there is no ${request.method} ${request.url.slice(0, 200)}`;
    return reply.status(404).send({ code: 'API_NOT_FOUND', message, hint: 'docs/commands.md lists all routes.' });
  });
  app.addHook('onResponse', async (request, reply) => {
    if (request.method === 'POST') log.info({ path: request.url, status: reply.statusCode }, 'api command answered');
  });
  let streams = 0;
  addRoutes(app, {
    control,
    openStream(reply) {
      if (streams >= limits.maxStreams)
        throw new TooManyStreamsError(`${streams} readers follow already; no more are served`);
      streams++;
      reply.hijack();
      const stream = new EventStream({ response: reply.raw, clock, limits, closing });
      stream.signal.addEventListener('abort', () => streams--, { once: true });
      if (stream.signal.aborted) streams--;
      return stream;
    },
    onStreamError: (error) => log.warn({ because: describeError(error) }, 'an api stream ended with an error'),
  });
  return app;
}

function unused(): never {
  throw new InvariantError('a compiler of fastify was asked for; zod validates here, and answers have no schema');
}

/** A server that no slow, silent or numerous clients can wear out. */
function boundedServer(handler: RequestListener, limits: ApiLimits): Server {
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: 5000,
      connectionsCheckingInterval: limits.checkingIntervalMs,
      maxHeaderSize: 8 * 1024,
    },
    handler,
  );
  server.maxConnections = limits.maxConnections;
  server.maxHeadersCount = 50;
  return server;
}
