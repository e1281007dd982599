import { chmodSync, lstatSync, mkdirSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { dirname } from 'node:path';
import { AgentError, errnoOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

/** Another agent answers on the socket. */
export class SocketInUseError extends AgentError {
  readonly code = 'AGENT_ALREADY_RUNNING';
  constructor(path: string) {
    super(`an agent already listens on ${path}`, {
      hint: 'Only one agent runs per node. Look at it with: etcd-node-agent status',
    });
  }
}

/** The socket cannot be made at its place. */
export class SocketError extends AgentError {
  readonly code = 'AGENT_SOCKET_UNUSABLE';
}

/**
 * Makes `server` listen on a unix socket of mode 0660 in a directory of mode 0750, so that whoever may speak to the agent
 * is decided by the group of that directory. A socket left by an agent that died is removed, but only after a connect was
 * refused. Throws SocketInUseError, SocketError.
 */
export async function listenOnSocket(server: Server, path: string, log: Log): Promise<void> {
  claimDirectory(dirname(path), log);
  await clearStaleSocket(path, log);
  await new Promise<void>((resolve, reject) => {
    const onError = (error: Error) => reject(new SocketError(`cannot listen on ${path}`, { cause: error }));
    server.once('error', onError);
    // bind(2) happens inside listen(), before it returns: the socket never exists with a wider mode.
    const before = process.umask(0o117);
    try {
      server.listen({ path, backlog: 64 }, () => {
        server.removeListener('error', onError);
        resolve();
      });
    } finally {
      process.umask(before);
    }
  });
}

function claimDirectory(directory: string, log: Log): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    const stats = lstatSync(directory);
    if (!stats.isDirectory()) throw new SocketError(`${directory} is no directory`);
    if ((stats.mode & 0o027) !== 0) {
      chmodSync(directory, 0o750);
      log.warn(
        { directory, mode: (stats.mode & 0o777).toString(8) },
        'the run directory was open to others; it is 0750 now',
      );
    }
  } catch (error) {
    if (error instanceof SocketError) throw error;
    throw new SocketError(`the run directory ${directory} cannot be used`, {
      cause: error,
      hint: 'The unit makes it (RuntimeDirectory=). Otherwise make it, owned by the user of the agent, with mode 0750.',
    });
  }
}

async function clearStaleSocket(path: string, log: Log): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isSocket()) throw new SocketError(`${path} is there and is no socket; it is left alone`);
  if (await answers(path)) throw new SocketInUseError(path);
  unlinkSync(path);
  log.info({ path }, 'removed the socket of an agent that is gone');
}

/** Only a refused connection proves that nobody listens; anything unexpected is thrown. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', (error) => {
      const errno = errnoOf(error);
      if (errno === 'ECONNREFUSED' || errno === 'ENOENT') resolve(false);
      // Its backlog is full: somebody is there.
      else if (errno === 'EAGAIN') resolve(true);
      else reject(new SocketError(`${path} cannot be asked whether an agent is there`, { cause: error }));
    });
  });
}
