import { type LookupOptions, lookup } from 'node:dns';
import { type ClientRequest, type IncomingHttpHeaders, request as requestInClear } from 'node:http';
import { request as requestWithTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { AgentError } from '../base/errors.ts';
import { readTlsFiles, type TlsFiles } from '../pki/tls-files.ts';
import { whyNeverDialled } from './address.ts';
import { addressOf } from './refused-url.ts';

/** One GET to an etcd listener. */
export interface HttpGetOptions {
  /** `https://10.0.0.1:2380`; see parseEtcdUrl for what is dialled. */
  readonly baseUrl: string;
  /** `/health?serializable=true` */
  readonly path: string;
  /** Needed for https. Read anew for each request. */
  readonly tls?: TlsFiles | undefined;
  /** From the call to the last byte. Unit: ms. */
  readonly deadlineMs: number;
  /** A longer body is an error. Unit: bytes. Default 1 MiB. */
  readonly maxBytes?: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** An answer of whatever status. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A GET that got no whole answer in time. */
export class EtcdHttpError extends AgentError {
  readonly code = 'ETCD_HTTP';
  readonly url: string;

  constructor(url: string, because: string, cause?: unknown) {
    super(`GET ${url}: ${because}`, { cause });
    this.url = url;
  }
}

/**
 * One GET on a connection of its own: a pooled one could answer while new ones are no longer accepted. Redirects are not
 * followed, proxies of the environment not used. Throws {@link EtcdHttpError}, RefusedUrlError or TlsFileError.
 */
export async function httpGet(options: HttpGetOptions): Promise<HttpAnswer> {
  const { baseUrl, path, deadlineMs, clock, signal } = options;
  const url = `${baseUrl}${path}`;
  const maxBytes = options.maxBytes ?? 1_048_576;
  const request = open(options);
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const fail = (because: string, cause?: unknown) => {
    reject(new EtcdHttpError(url, because, cause));
    request.destroy();
  };
  const cancel = clock.after(deadlineMs, () => fail(`no whole answer within ${deadlineMs} ms`));
  const onAbort = () => fail('given up', signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  request.on('error', (cause) => fail('no answer', cause));
  request.on('response', (response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('error', (cause) => fail('the answer broke off', cause));
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) fail(`the answer is longer than ${maxBytes} bytes`);
      else chunks.push(chunk);
    });
    response.on('end', () => {
      const { statusCode = 0, headers } = response;
      resolve({ status: statusCode, headers, body: Buffer.concat(chunks).toString('utf8') });
    });
  });
  request.end();
  try {
    return await promise;
  } finally {
    cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}

function open({ baseUrl, path, tls }: HttpGetOptions): ClientRequest {
  const { host, port, secure } = addressOf(baseUrl);
  const common = {
    host,
    port,
    path,
    method: 'GET',
    agent: false as const,
    lookup: lookupGuarded,
    maxHeaderSize: 16_384,
  };
  if (!secure) return requestInClear(common);
  if (tls === undefined)
    throw new EtcdHttpError(`${baseUrl}${path}`, 'the address is https and no TLS files are configured');
  const { ca, cert, key } = readTlsFiles(tls);
  return requestWithTls({ ...common, ca, ...(cert === undefined ? {} : { cert, key }) });
}

/** The guard of parseEtcdUrl again, on what a name resolves to: the name may belong to somebody else. */
const lookupGuarded: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, options as LookupOptions, (error, address, family) => {
    const found = typeof address === 'string' ? [address] : (address ?? []).map((entry) => entry.address);
    const because = error === null ? found.map(whyNeverDialled).find((reason) => reason !== undefined) : undefined;
    if (because !== undefined)
      callback(new Error(`${hostname} resolves to an address that is not dialled: ${because}`), '');
    else callback(error, address, family);
  });
};
