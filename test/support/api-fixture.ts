import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiLimits, type ApiServer, startApi } from '../../src/agent/api/server.ts';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/base/system-clock.ts';
import { FakeControl } from './fake-control.ts';

/** A running API over a fake agent in a directory of its own; dispose of it with the test. */
export interface ApiFixture extends AsyncDisposable {
  readonly control: FakeControl;
  readonly api: ApiServer;
  readonly directory: string;
  readonly socket: string;
}

/** Starts it. */
export async function startFixture(limits: Partial<ApiLimits> = {}): Promise<ApiFixture> {
  const directory = mkdtempSync(join(tmpdir(), 'api-'));
  const socket = join(directory, 'run', 'agent.sock');
  const control = new FakeControl();
  const api = await startApi({ control, socketPath: socket, clock: systemClock, log: silentLog, limits });
  return {
    control,
    api,
    directory,
    socket,
    async [Symbol.asyncDispose]() {
      await api.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** An answer, with its body as text and, if it is JSON, as value. */
export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly json: unknown;
}

/** One request over the socket. A body that is no text is sent as JSON. */
export function call(
  socket: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const type: Record<string, string> = text === undefined ? {} : { 'content-type': 'application/json' };
    const request = httpRequest(
      { socketPath: socket, method, path, headers: { ...type, ...headers }, agent: false },
      (response) => {
        let received = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          received += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: received, json: asJson(received) }));
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(text);
  });
}

/** A connection that sends exactly these bytes, and what came back until it closed. */
export function raw(socket: string, bytes: string): { readonly socket: Socket; readonly closed: Promise<string> } {
  const connection = connect(socket);
  let received = '';
  connection.setEncoding('utf8');
  connection.on('data', (chunk: string) => {
    received += chunk;
  });
  const closed = new Promise<string>((resolve) => connection.on('close', () => resolve(received)));
  connection.on('error', () => {});
  if (bytes !== '') connection.write(bytes);
  return { socket: connection, closed };
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
