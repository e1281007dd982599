import { readFileSync, statSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { Clock } from '../../base/clock.ts';
import { AgentError, describeError, errnoOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ListenAddress, TlsFiles } from '../config.ts';

/** Metrics cannot be served at the configured address. */
export class MetricsListenError extends AgentError {
  readonly code = 'METRICS_LISTEN_FAILED';
}

/** What the listener needs. */
export interface MetricsListenerOptions {
  readonly listen: ListenAddress;
  /** With files: https, and a client certificate of their `ca` is demanded, as on etcd's client port. Without: http. */
  readonly tls: TlsFiles | undefined;
  /** The text to serve. */
  render(): Promise<string>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The running listener. */
export interface MetricsListener {
  /** The port in use; of interest where 0 was asked for. */
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `GET /metrics` over TCP and nothing else; it exists only where the configuration asks for it. Renewed certificate
 * files are taken up within a minute; unreadable ones keep the last good. Throws MetricsListenError.
 */
export async function startMetricsListener(options: MetricsListenerOptions): Promise<MetricsListener> {
  const { listen, tls, log } = options;
  const handler = handlerOf(options);
  try {
    const server = tls === undefined ? createHttpServer(limits, handler) : secureServer(tls, handler);
    server.maxConnections = 32;
    await listening(server, listen);
    server.on('error', (error) => log.warn({ because: describeError(error) }, 'the metrics listener failed'));
    const stopWatching =
      tls === undefined || !('setSecureContext' in server) ? () => {} : watchFiles(server, tls, options);
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : listen.port;
    log.info({ host: listen.host, port, tls: tls !== undefined }, 'metrics are served over tcp');
    return {
      port,
      close() {
        stopWatching();
        return new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        });
      },
    };
  } catch (error) {
    throw new MetricsListenError(`metrics cannot be served at ${listen.host}:${listen.port}`, {
      cause: error,
      hint: 'Change or remove metrics.listen; the socket of the agent serves /metrics in any case.',
    });
  }
}

const limits = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 8192,
};

function handlerOf({ render, log }: MetricsListenerOptions): RequestListener {
  return (request, response) => {
    if (request.url !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(404, { 'content-type': 'text/plain', connection: 'close' }).end('there is GET /metrics\n');
      return;
    }
    render().then(
      (text) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text),
      (error: unknown) => {
        log.error({ because: describeError(error) }, 'metrics could not be rendered');
        response.writeHead(500, { 'content-type': 'text/plain' }).end('the log of the agent says why\n');
      },
    );
  };
}

function secureServer(tls: TlsFiles, handler: RequestListener): HttpsServer {
  return createHttpsServer(
    {
      ...limits,
      ...readFiles(tls),
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: 5000,
    },
    handler,
  );
}

function listening(server: Server | HttpsServer, { host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function watchFiles(server: HttpsServer, tls: TlsFiles, { clock, log }: MetricsListenerOptions): () => void {
  let seen = fingerprint(tls);
  let cancel = () => {};
  const look = (): void => {
    const now = fingerprint(tls);
    if (now !== seen) {
      try {
        server.setSecureContext(readFiles(tls));
        seen = now;
        log.info({ cert: tls.cert }, 'the metrics listener took up new certificate files');
      } catch (error) {
        log.warn({ because: describeError(error) }, 'new certificate files cannot be used; the last good ones stay');
      }
    }
    cancel = clock.after(60_000, look);
  };
  cancel = clock.after(60_000, look);
  return () => cancel();
}

const minVersion = 'TLSv1.2' as const;

function readFiles(tls: TlsFiles) {
  return { cert: readFileSync(tls.cert), key: readFileSync(tls.key), ca: readFileSync(tls.ca), minVersion };
}

function fingerprint({ cert, key, ca }: TlsFiles): string {
  return [cert, key, ca].map(fingerprintOf).join(' ');
}

function fingerprintOf(path: string): string {
  try {
    const { dev, ino, size, mtimeMs } = statSync(path);
    return `${dev}:${ino}:${size}:${mtimeMs}`;
  } catch (error) {
    return errnoOf(error) ?? 'unreadable';
  }
}
