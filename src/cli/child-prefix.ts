import type { Config } from '../agent/config.ts';
import type { Owner } from '../agent/host.ts';
import { AgentError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { runCommand } from '../supervisor/run.ts';

/** The user that etcd is to run as is not there, or may not be taken on. */
export class UserRefusedError extends AgentError {
  readonly code = 'ETCD_USER_REFUSED';
}

/** What stands before etcd on its command line, and who owns its data. */
export interface ChildPrefix {
  readonly prefix: readonly string[];
  readonly owner: Owner | undefined;
}

/**
 * Best effort where no systemd unit sets the limits: the oom score, and the user. Throws {@link UserRefusedError}: etcd never
 * runs as another user than the one that was asked for.
 */
export async function childPrefix(etcd: Config['etcd'], log: Log): Promise<ChildPrefix> {
  const score = ['choom', '-n', String(etcd.oomScoreAdjust), '--'];
  const tried = await runCommand('choom', [...score.slice(1), 'true'], { timeoutMs: 5_000 });
  const oom = tried.code === 0 ? score : [];
  if (tried.code !== 0)
    log.info({ oomScoreAdjust: etcd.oomScoreAdjust }, 'the oom score of etcd cannot be set here; it keeps ours');
  const owner = etcd.user === undefined ? undefined : await ownerOf(etcd.user);
  if (owner === undefined || process.getuid?.() === owner.uid) return { prefix: oom, owner: undefined };
  if (process.getuid?.() !== 0) {
    throw new UserRefusedError(`etcd is to run as ${etcd.user}, and this agent is not root`, {
      hint: 'Run the agent as root, or as that user, or leave etcd.user out.',
    });
  }
  const ids = [
    'setpriv',
    '--reuid',
    String(owner.uid),
    '--regid',
    String(owner.gid),
    '--init-groups',
    '--no-new-privs',
    '--',
  ];
  return { prefix: [...oom, ...ids], owner };
}

async function ownerOf(user: string): Promise<Owner> {
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map((flag) => runCommand('id', [flag, user], { timeoutMs: 5_000 })),
  );
  if (uid?.code === 0 && gid?.code === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  throw new UserRefusedError(`there is no user ${user} on this machine`, { hint: 'Create it, or correct etcd.user.' });
}
