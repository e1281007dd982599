/** @pure file: whether this curator campaigns, leads on, resigns or waits. */

/** What stands in the leader key. */
export interface LeaderValue {
  readonly nodeId: string;
  /** Where it serves, host:port. */
  readonly address: string;
  /** Random, one for each time that somebody leads. */
  readonly session: string;
  /** ISO 8601, for people. */
  readonly since: string;
}

/** What stands in a candidate key. */
export interface Candidate {
  readonly nodeId: string;
  readonly address: string;
  /** Its etcd leads the raft, as its metrics say. */
  readonly raftLeader: boolean;
}

/** All that the decision rests on. Times in ms; clocks that stand still in a suspended machine are not used. */
export interface LeadershipSeen {
  readonly self: string;
  /** Why nothing is to be changed by this curator, until somebody accepts the membership; empty if it may. */
  readonly readOnly: string;
  /** The database is full: nobody can write. */
  readonly noSpace: boolean;
  /** An order to lead no more: the agent stops this curator, or its node leaves. */
  readonly mustResign: boolean;
  /** How long this curator still may act without another answer of etcd; undefined: it does not lead. */
  readonly leadsForMs: number | undefined;
  /** Since the last keepalive was sent; undefined: there is no lease. */
  readonly keptAliveMs: number | undefined;
  /** Undefined: nobody leads. `unknown`: etcd did not say. */
  readonly leader: LeaderValue | undefined | 'unknown';
  /** Since the leader key has been seen absent, without a break. 0 while it is there. */
  readonly vacantForMs: number;
  /** Whether the own etcd leads the raft; undefined: not known. */
  readonly raftLeader: boolean | undefined;
  /** Since the own etcd was last seen to lead the raft. 0 while it does. */
  readonly notRaftLeaderForMs: number;
  /** The live candidates, this one included. */
  readonly candidates: readonly Candidate[];
}

export type LeadershipStep =
  /** A lease and the candidate key, or a keepalive. */
  | { readonly kind: 'keepAlive' }
  /** Removes a leader key that an earlier curator of this very node left. */
  | { readonly kind: 'clearOwn' }
  | { readonly kind: 'campaign' }
  | { readonly kind: 'resign'; readonly because: string }
  /** Its time is over: whatever was begun must not go on. */
  | { readonly kind: 'stepDown'; readonly because: string }
  | { readonly kind: 'wait' };

/** A leader's lease. Unit: s. */
export const leaseS = 10;
/** Between two keepalives. */
export const keepAliveEveryMs = 3_000;
/** After the sending of the last keepalive that was answered nobody acts any longer than this. */
export const actsForMs = 6_000;
/** Who does not lead the raft leaves this time to whoever does. */
const yieldMs = 4_000;
/** Raft leadership has to have been elsewhere for so long before the curator's follows. */
const affinityAfterMs = 2_000;

/** @pure The one thing to do now. */
export function leadershipStep(seen: LeadershipSeen): LeadershipStep {
  const { leadsForMs, keptAliveMs, leader, readOnly } = seen;
  const leads = leadsForMs !== undefined;
  if (leads && leadsForMs <= 0) return stepDown('etcd has not answered for too long');
  if (leads && readOnly !== '') return stepDown(readOnly);
  if (leads && leader !== 'unknown' && leader?.nodeId !== seen.self) {
    return stepDown(leader === undefined ? 'its leader key is gone' : `the curator of ${leader.nodeId} leads`);
  }
  if (keptAliveMs === undefined ? readOnly === '' && !seen.mustResign : keptAliveMs >= keepAliveEveryMs) {
    if (!seen.noSpace || keptAliveMs !== undefined) return { kind: 'keepAlive' };
  }
  if (leads) return whileLeading(seen);
  if (readOnly !== '' || leader === 'unknown') return wait;
  if (leader?.nodeId === seen.self) return { kind: 'clearOwn' };
  if (leader !== undefined || seen.mustResign || seen.noSpace || keptAliveMs === undefined) return wait;
  return mayCampaign(seen) ? { kind: 'campaign' } : wait;
}

function whileLeading({ mustResign, candidates, self, notRaftLeaderForMs }: LeadershipSeen): LeadershipStep {
  if (mustResign) return { kind: 'resign', because: 'it was told to' };
  const successor = candidates.find(({ nodeId, raftLeader }) => raftLeader && nodeId !== self);
  if (successor === undefined || notRaftLeaderForMs < affinityAfterMs) return wait;
  return { kind: 'resign', because: `the etcd of ${successor.nodeId} leads the raft` };
}

/** The curator beside the raft leader goes first, so that one hand-over of leadership moves both. */
function mayCampaign({ raftLeader, vacantForMs }: LeadershipSeen): boolean {
  return raftLeader === true || vacantForMs >= yieldMs;
}

function stepDown(because: string): LeadershipStep {
  return { kind: 'stepDown', because };
}

const wait: LeadershipStep = { kind: 'wait' };
