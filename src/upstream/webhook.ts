import { readFile } from 'node:fs/promises';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../base/clock.ts';
import { AgentError, errnoOf } from '../base/errors.ts';
import { batchContentType, toCloudEvent } from './cloud-event.ts';
import type { StoredFact } from './fact.ts';
import type { ReportTransport, SendResult } from './reporter.ts';

/** Where reports are posted to. All files are read anew for each batch, so that a renewal needs no restart. */
export interface WebhookOptions {
  /** `https://…`, or `http://…`. No user name or password in it. */
  readonly url: string;
  /** The name of this node in every event. */
  readonly nodeId: string;
  readonly clock: Clock;
  /** Certificates (PEM) that the receiver's is checked against. Default: those of Node. */
  readonly caFile?: string;
  /** Our own certificate and key (PEM), if the receiver asks for one. Both or none. */
  readonly certFile?: string;
  readonly keyFile?: string;
  /** A file with a token that is sent as `Authorization: Bearer`. Refused over plain HTTP, except on loopback. */
  readonly tokenFile?: string;
}

/** The webhook is set up in a way that cannot work or would give a secret away. */
export class WebhookConfigError extends AgentError {
  readonly code = 'WEBHOOK_CONFIG';
}

/** With 409 and `forked`: the receiver holds another report under a number of this batch, and asks for a new stream. */
const historyHeader = 'report-history';
/** Of an answer no more is read. Unit: bytes. */
const maxAnswerBytes = 64 * 1024;
/** So long the rest of an acknowledgement may take before its connection is given up. Unit: ms. */
const drainMs = 50;
/** The body of a refusal is not waited for longer. Unit: ms. */
const bodyDeadlineMs = 2_000;
/** Of an answer no more is shown. Unit: characters. */
const maxShownCharacters = 300;

/**
 * Posts reports as a batch of CloudEvents. Any 2xx answer acknowledges the whole batch, once its head is here: what
 * follows does not matter. 408, 429, 5xx, redirects and broken connections mean "again, later"; a 409 that says so
 * means "another history, please" ({@link historyHeader}); any other 4xx means "never".
 */
export class Webhook implements ReportTransport {
  readonly name: string;
  readonly #options: WebhookOptions;
  readonly #url: URL;
  #connections: Connections | undefined;

  /** Throws {@link WebhookConfigError}. */
  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#url = checkedUrl(options);
    // A query may hold a secret.
    this.name = `webhook ${this.#url.origin}${this.#url.pathname}`;
  }

  async send(batch: readonly StoredFact[], signal: AbortSignal): Promise<SendResult> {
    const last = batch.at(-1);
    if (last === undefined) return { kind: 'retry', why: 'an empty batch' };
    const body = JSON.stringify(batch.map((fact) => toCloudEvent(fact, this.#options.nodeId)));
    const response = await this.#post(body, signal, true);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) {
      await this.#drain(response);
      return { kind: 'acked', upTo: { stream: last.stream, seq: last.seq } };
    }
    const why = `${this.name} answered ${status}${shown(await this.#readSome(response))}`;
    if (status === 409 && response.headers[historyHeader] === 'forked') return { kind: 'forked', why };
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) return { kind: 'refused', why };
    if (status >= 300 && status < 400) return { kind: 'retry', why: `${why} (redirects are not followed)` };
    const afterMs = retryAfterMs(response.headers['retry-after'], this.#options.clock);
    return afterMs === undefined ? { kind: 'retry', why } : { kind: 'retry', why, afterMs };
  }

  /** Closes idle connections. */
  close(): void {
    this.#connections?.agent.destroy();
    this.#connections = undefined;
  }

  async #post(body: string, signal: AbortSignal, mayRepeat: boolean): Promise<IncomingMessage> {
    const { tokenFile } = this.#options;
    const token = tokenFile === undefined ? undefined : await readToken(tokenFile);
    const agent = await this.#agent();
    const options: RequestOptions = {
      method: 'POST',
      agent,
      signal,
      headers: {
        'content-type': batchContentType,
        'content-length': Buffer.byteLength(body),
        'user-agent': 'etcd-node-agent',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    };
    const make = this.#url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = make(this.#url, options);
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        request.on('response', resolve).on('error', reject).end(body);
      });
    } catch (error) {
      // The receiver closed an idle connection just as we used it: that says nothing about the receiver.
      const stale = request.reusedSocket && errnoOf(error) === 'ECONNRESET';
      if (stale && mayRepeat && !signal.aborted) return this.#post(body, signal, false);
      throw error;
    }
  }

  /** Connections are kept as long as the certificates stay the same. */
  async #agent(): Promise<HttpAgent> {
    if (this.#url.protocol === 'http:') {
      this.#connections ??= { agent: new HttpAgent(agentOptions), key: '' };
      return this.#connections.agent;
    }
    const { caFile, certFile, keyFile } = this.#options;
    const [ca, cert, key] = await Promise.all([caFile, certFile, keyFile].map(readOptional));
    const same = JSON.stringify([ca, cert, key]);
    if (this.#connections?.key !== same) {
      this.#connections?.agent.destroy();
      const tls = {
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
      };
      this.#connections = { agent: new HttpsAgent({ ...agentOptions, ...tls, minVersion: 'TLSv1.2' }), key: same };
    }
    return this.#connections.agent;
  }

  /** The start of an answer's body, for people. A body that breaks off, or comes slowly, is no reason to fail or to wait. */
  async #readSome(response: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const cancel = this.#options.clock.after(bodyDeadlineMs, () => response.destroy());
    try {
      for await (const chunk of response) {
        const part = Buffer.from(chunk);
        chunks.push(part);
        bytes += part.byteLength;
        if (bytes > 4 * maxShownCharacters) break;
      }
    } catch {
      // What came until then is shown.
    } finally {
      cancel();
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  /** Takes in the rest of an answer, so that its connection can be used again; one that is long or slow is given up. */
  #drain(response: IncomingMessage): Promise<void> {
    return new Promise((resolve) => {
      let bytes = 0;
      const cancel = this.#options.clock.after(drainMs, () => response.destroy());
      response.on('error', () => {});
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.byteLength;
        if (bytes > maxAnswerBytes) response.destroy();
      });
      response.on('close', () => {
        cancel();
        resolve();
      });
    });
  }
}

interface Connections {
  readonly agent: HttpAgent;
  /** The certificates that they were made with. */
  readonly key: string;
}

const agentOptions = { keepAlive: true, maxSockets: 2, maxFreeSockets: 1 } as const;

function checkedUrl({ url, certFile, keyFile, tokenFile }: WebhookOptions): URL {
  const parsed = URL.parse(url);
  if (parsed === null || (parsed.protocol !== 'https:' && parsed.protocol !== 'http:')) {
    throw new WebhookConfigError('the URL of the webhook is no http or https URL', {
      hint: 'For example https://host/path.',
    });
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new WebhookConfigError('the URL of the webhook holds a user name or a password', {
      hint: 'Put a token into a file and name it as the token file.',
    });
  }
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new WebhookConfigError('the webhook has a certificate without a key, or a key without a certificate');
  }
  const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(parsed.hostname);
  if (tokenFile !== undefined && parsed.protocol === 'http:' && !loopback) {
    throw new WebhookConfigError(`the token of the webhook would go to ${parsed.host} unencrypted`, {
      hint: 'Use https.',
    });
  }
  return parsed;
}

async function readToken(path: string): Promise<string> {
  const token = (await readOptional(path))?.trim() ?? '';
  if (!/^[\x21-\x7e]{1,8192}$/.test(token))
    throw new WebhookConfigError(`${path} holds no token of printable characters`);
  return token;
}

async function readOptional(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new WebhookConfigError(`${path} cannot be read`, { cause: error });
  }
}

function shown(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
  if (clean === '') return '';
  return `: ${clean.length > maxShownCharacters ? `${clean.slice(0, maxShownCharacters)}…` : clean}`;
}

/** RFC 9110 §10.2.3: seconds, or a date. Unit: ms; undefined if it is neither. */
function retryAfterMs(header: string | undefined, clock: Clock): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - clock.wallMs());
}
