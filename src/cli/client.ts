import { type IncomingMessage, request } from 'node:http';
import type { ApiErrorBody } from '../agent/api/api-error.ts';
import { AgentError, errnoOf } from '../base/errors.ts';

/** No agent answers on the socket, or this user may not ask it. */
export class AgentUnreachableError extends AgentError {
  readonly code = 'AGENT_UNREACHABLE';
}

/** The agent refused: a rule of its own, or a request that it does not understand. */
export class RefusedError extends AgentError {
  readonly code: string;
  constructor({ code, message, hint }: ApiErrorBody) {
    super(message, { hint });
    this.code = code;
  }
}

/** The agent tried and failed, or did not answer in time, or answered something that is no answer. */
export class AgentFailedError extends AgentError {
  readonly code: string;
  constructor({ code, message, hint }: ApiErrorBody) {
    super(message, { hint });
    this.code = code;
  }
}

/** Speaks to the agent on its unix socket. Throws AgentUnreachableError, RefusedError, AgentFailedError. */
export class ApiClient {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** What is asked for, as the agent of the same package answers it. */
  async get<T>(path: string): Promise<T> {
    return (await this.#call('GET', path, undefined)) as T;
  }

  /** Gives a command. */
  async post<T>(path: string, body: unknown): Promise<T> {
    return (await this.#call('POST', path, body)) as T;
  }

  /** Calls `onData` for each server-sent event, until the agent ends the stream, which is an AgentUnreachableError. */
  async follow(path: string, onData: (data: unknown) => void): Promise<never> {
    const response = await this.#open('GET', path, undefined, streamTimeoutMs);
    let rest = '';
    try {
      for await (const chunk of response) {
        const lines = (rest + String(chunk)).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) if (line.startsWith('data: ')) onData(JSON.parse(line.slice(6)));
      }
    } catch (error) {
      throw this.#unreachable(error);
    }
    throw new AgentUnreachableError('the agent ended the stream; it stops, or restarts', {
      hint: 'Follow again; --after NUMBER continues events where they ended.',
    });
  }

  async #call(method: string, path: string, body: unknown): Promise<unknown> {
    const response = await this.#open(method, path, body, commandTimeoutMs);
    try {
      return JSON.parse(await textOf(response));
    } catch (error) {
      throw new AgentFailedError({
        code: 'AGENT_ANSWER_UNREADABLE',
        message: `its answer cannot be read: ${error}`,
        hint: '',
      });
    }
  }

  async #open(method: string, path: string, body: unknown, timeoutMs: number): Promise<IncomingMessage> {
    const response = await this.#send(method, path, body, timeoutMs).catch((error: unknown) => {
      throw this.#unreachable(error);
    });
    const status = response.statusCode ?? 0;
    response.setEncoding('utf8');
    if (status === 200) return response;
    const fault = errorIn(await textOf(response), status);
    throw status >= 500 ? new AgentFailedError(fault) : new RefusedError(fault);
  }

  #send(method: string, path: string, body: unknown, timeoutMs: number): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'content-type': 'application/json' };
      const sent = request({ socketPath: this.#socketPath, method, path, headers, agent: false, timeout: timeoutMs });
      sent.on('response', resolve);
      sent.on('timeout', () => sent.destroy(new Error(`no word for ${timeoutMs / 1000} s`)));
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  #unreachable(error: unknown): AgentError {
    const errno = errnoOf(error);
    if (errno === 'EACCES') {
      return new AgentUnreachableError(`this user may not speak to the agent on ${this.#socketPath}`, {
        hint: 'Run it as root, or as a member of the group that owns the directory of the socket.',
      });
    }
    if (errno === 'ENOENT' || errno === 'ECONNREFUSED' || errno === 'ENOTSOCK') {
      return new AgentUnreachableError(`no agent listens on ${this.#socketPath}`, { hint: startHint });
    }
    return new AgentUnreachableError(`the agent on ${this.#socketPath} does not answer`, {
      cause: error,
      hint: startHint,
    });
  }
}

const startHint =
  'Start it: etcd-node-agent run --config FILE, or by the unit that runs it here. Elsewhere: --socket PATH. etcd may run without it.';
/** Longer than the agent takes for the slowest command. */
const commandTimeoutMs = 130_000;
/** The agent says something at least each 15 s. */
const streamTimeoutMs = 60_000;
/** No honest answer is longer. Unit: characters. */
const maxAnswerLength = 64 * 1024 * 1024;

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: string[] = [];
  let length = 0;
  for await (const chunk of response) {
    length += String(chunk).length;
    if (length > maxAnswerLength) throw new Error('it is too long');
    chunks.push(String(chunk));
  }
  return chunks.join('');
}

function errorIn(text: string, status: number): ApiErrorBody {
  const fallback = { code: 'AGENT_ANSWER_UNREADABLE', message: `it answered ${status} without saying why`, hint: '' };
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null) return fallback;
    const read = (key: string): string => String(Reflect.get(body, key) ?? '');
    return { code: read('code'), message: read('message'), hint: read('hint') };
  } catch {
    return fallback;
  }
}
