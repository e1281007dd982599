import type { Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { formatId, type Member } from '../etcd/member.ts';
import type { ClusterPort, MemberStatusAnswer } from './ports.ts';
import type { IdentityRecord } from './state/schemas.ts';

/** All of it together takes at most this. Unit: ms. */
const withinMs = 8_000;
/** One target has this long: three elections; a frozen one costs an election. Unit: ms. */
const targetMs = 3_000;
/** How many targets are tried. */
const maxTargets = 2;

/**
 * Moves leadership away before a wanted stop: to the most caught-up voter that answers now. Best effort: a stop is not
 * refused because nobody can take over. Tells whether another member leads afterwards.
 */
export async function handOver(
  options: { readonly cluster: ClusterPort; readonly clock: Clock; readonly log: Log },
  identity: IdentityRecord,
): Promise<boolean> {
  const { cluster, clock, log } = options;
  const until = clock.monotonicMs() + withinMs;
  if (!(await cluster.isLeader(1_000).catch(() => false))) return true;
  for (const target of (await candidates(cluster, identity)).slice(0, maxTargets)) {
    const leftMs = until - clock.monotonicMs();
    if (leftMs <= 0) break;
    try {
      await cluster.moveLeader(identity.clientUrl, target.memberId, Math.min(targetMs, leftMs));
      const seen = await cluster.status(target.endpoint, 1_000);
      if (seen.leader !== identity.memberId) {
        log.info({ leader: formatId(seen.leader) }, 'leadership was handed over');
        return true;
      }
    } catch (error) {
      log.warn({ target: formatId(target.memberId), error: describeError(error) }, 'leadership was not taken over');
    }
  }
  return false;
}

/** The other voters that answer now, the most caught-up first. */
async function candidates(
  cluster: ClusterPort,
  identity: IdentityRecord,
): Promise<readonly (MemberStatusAnswer & { readonly endpoint: string })[]> {
  const others = identity.lastVoters.filter((voter) => voter.id !== identity.memberId);
  const answers = await Promise.all(others.map((voter) => statusOf(cluster, voter)));
  return answers
    .filter((answer): answer is NonNullable<typeof answer> => answer !== undefined)
    .filter((answer) => answer.clusterId === identity.clusterId && !answer.isLearner)
    .sort((a, b) => (a.raftAppliedIndex > b.raftAppliedIndex ? -1 : 1));
}

async function statusOf(
  cluster: ClusterPort,
  voter: Member,
): Promise<(MemberStatusAnswer & { readonly endpoint: string }) | undefined> {
  const [endpoint] = voter.clientUrls;
  if (endpoint === undefined) return undefined;
  const answer = await cluster.status(endpoint, 1_000).catch(() => undefined);
  return answer === undefined ? undefined : { ...answer, endpoint };
}
