import { type Clock, delay } from '../../base/clock.ts';
import { AgentError, describeError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { callDeadlines } from '../../etcd/deadlines.ts';
import { formatId, type MemberId } from '../../etcd/member.ts';
import { moveTargets } from '../../etcd/safety.ts';
import type { SafetyQuestion } from '../../etcd/safety-question.ts';
import type { Effects } from '../effects.ts';
import type { ClusterPort } from '../ports.ts';

/** All tries of a hand-over together. Unit: ms. */
export const handOverMs = 8_000;
/** A second member has this long to see the new leader. Unit: ms. */
const seenWithinMs = 1_500;
const lookAgainMs = 50;

export interface HandOverParts {
  readonly cluster: ClusterPort;
  readonly clock: Clock;
  readonly log: Log;
  readonly effects: Effects;
}

/** Who hands over, and what it was heard of the cluster. */
export interface HandOverOrder {
  readonly self: { readonly memberId: MemberId; readonly endpoint: string };
  readonly question: Omit<SafetyQuestion, 'wanted'>;
  /** Monotonic, ms. */
  readonly untilMs: number;
}

/** Moves leadership from the own member to one that may take it. Tells whether a second member confirmed it. Never throws for a silent cluster. */
export async function handOver(parts: HandOverParts, { self, question, untilMs }: HandOverOrder): Promise<boolean> {
  const { cluster, clock, log, effects } = parts;
  for (const target of moveTargets(question)) {
    const leftMs = untilMs - clock.monotonicMs();
    if (leftMs <= 0) break;
    try {
      await effects.doing('change.moveLeader', () =>
        cluster.moveLeader(self.endpoint, target.id, Math.min(callDeadlines.moveLeaderMs, leftMs)),
      );
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      log.warn({ target: formatId(target.id), error: describeError(error) }, 'leadership was not taken over');
    }
    const leader = await otherLeader(parts, target.clientUrls, self.memberId);
    if (leader === undefined) continue;
    log.info({ leader: formatId(leader) }, 'leadership was handed over');
    return true;
  }
  return false;
}

/** Who leads as the members behind these endpoints see it, if it is not `notId`. */
async function otherLeader(
  { cluster, clock }: HandOverParts,
  endpoints: readonly string[],
  notId: MemberId,
): Promise<MemberId | undefined> {
  const until = clock.monotonicMs() + seenWithinMs;
  for (;;) {
    for (const endpoint of endpoints) {
      const seen = await cluster.status(endpoint, 1_000).catch(() => undefined);
      if (seen !== undefined && seen.leader !== 0n && seen.leader !== notId) return seen.leader;
    }
    if (clock.monotonicMs() >= until) return undefined;
    await delay(clock, lookAgainMs);
  }
}
