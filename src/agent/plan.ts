/** @pure file: wanted + seen → the next step, or why none. The rules stand in the order in which they win. */

import { type Identity, isJoining, type Observed, type RemovalSeen } from './observed.ts';
import { planAddress, planCancelledJoin, planExpiredJoin, planJoin, planLeave, planPromotion } from './plan-change.ts';
import type { Blocker, Plan, Step } from './step.ts';

/** How long until the agent looks again while it waits for something that also wakes it. Unit: ms. */
const lookAgainMs = 1_000;

/** Why nothing is done while etcd starts. */
export const etcdStarts = 'etcd is starting';

/** @pure The next step of this node, or what blocks it. */
export function plan(seen: Observed): Plan {
  const made = planOf(seen);
  // Every change clears the way for itself; where none is to be made, what an interrupted one has left is cleared for the others.
  if (!seen.leftRecord || seen.supervision.kind !== 'full' || !isAtRest(made)) return made;
  return act({ kind: 'resolveChange' }, 'a change of this node was interrupted, and its record may stand in etcd');
}

/** Nothing is to be done here, and nothing about etcd itself is in question. */
function isAtRest(made: Plan): boolean {
  return made.kind === 'converged' || (made.kind === 'blocked' && restingBlockers.has(made.by.kind));
}

const restingBlockers: ReadonlySet<Blocker['kind']> = new Set([
  'changeRefused',
  'removedByOthers',
  'notAMember',
  'oldMemberListed',
  'joinExpired',
  'spaceForJoin',
]);

function planOf(seen: Observed): Plan {
  if (seen.volume.kind === 'missing') return blocked({ kind: 'volumeMissing', path: seen.volume.path });
  // Without a readable record of its marker the volume is known by our own data on it.
  if (seen.volume.kind === 'unknown' && !hasOwnData(seen))
    return blocked({ kind: 'volumeUnknown', because: seen.volume.because });
  if (seen.process.kind === 'unknown') return blocked({ kind: 'processUnknown', because: seen.process.because });
  if (seen.intent.kind === 'shutdown' && seen.process.kind === 'down')
    return blocked({ kind: 'shuttingDown', because: seen.intent.because });
  if (seen.removal.kind === 'proven' && seen.supervision.kind === 'full') return planAfterRemoval(seen, seen.removal);
  if (isRemoved(seen) && seen.process.kind === 'down') return removedByOthers(seen);
  const expired = planExpiredJoin(seen);
  if (expired !== undefined) return expired;
  if (seen.process.kind === 'up') return planWhileUp(seen, seen.process);
  if (!wantsToLeave(seen) || seen.identity === undefined) return planWhileDown(seen);
  // It can be removed through the others without being started. If they do not let it go, its vote may be what is missing.
  const leave = planLeave(seen, seen.identity);
  if (leave.kind === 'act') return leave;
  const start = planWhileDown(seen);
  return start.kind === 'blocked' ? leave : start;
}

/** Removed by others: the fact is recorded and reported first, then etcd leaves, then its data is moved aside. */
function planAfterRemoval(seen: Observed, removal: RemovalSeen & { kind: 'proven' }): Plan {
  if (!removal.recorded) {
    if (!removal.ripe) return waiting('this member was removed; etcd is about to end of it');
    return act(
      { kind: 'recordRemoval', evidence: removal.evidence },
      `this member was removed: ${removal.evidence.join('; ')}`,
    );
  }
  if (seen.process.kind === 'up') {
    if (removal.exitOverdue && isRunning(seen.process.phase)) {
      return act({ kind: 'stopEtcd' }, 'etcd was removed from its cluster and did not end by itself');
    }
    return waiting('the removed etcd is ending');
  }
  if (!removal.archived) return act({ kind: 'archiveData' }, 'the data of a removed member is never started again');
  if (seen.role.kind === 'known' && seen.role.role !== 'consensus-member') {
    if (isJoining(seen.join, seen.identity)) return planCancelledJoin(seen);
    return { kind: 'converged', because: 'the member is removed and the role asks for none' };
  }
  // The order to found came after the end of the cluster that this member was the last of.
  if (removal.retired && seen.founding === 'pending') {
    return act({ kind: 'beginFounding' }, 'an operator ordered this founding');
  }
  // Only a new grant counts: it makes a new member, with a fresh directory and a new id.
  if (seen.role.kind === 'known' && !seen.role.spent && hasRoom(seen)) return planJoin(seen);
  return removedByOthers(seen);
}

/** Nothing lies where the data of a new member would go. */
function hasRoom({ data }: Observed): boolean {
  return data.kind === 'absent' || data.kind === 'empty';
}

/** A recorded member whose role is to be none, by a founding or a join that is over. */
function wantsToLeave({ supervision, role, identity, founding }: Observed): boolean {
  const founds = founding === 'pending' || founding === 'started';
  return supervision.kind === 'full' && identity !== undefined && !founds && isUnwanted(role);
}

function isUnwanted(role: Observed['role']): boolean {
  return role.kind === 'known' && role.role !== 'consensus-member';
}

/** Proven now, or recorded earlier: never started again, whatever else can or cannot be read. */
function isRemoved(seen: Observed): boolean {
  return seen.removal.kind === 'proven' || seen.intent.kind === 'removed';
}

function removedByOthers(seen: Observed): Plan {
  const retired = seen.removal.kind === 'proven' && seen.removal.retired;
  return blocked({ kind: 'removedByOthers', memberId: seen.identity?.memberId, retired });
}

function planWhileUp(seen: Observed, process: Observed['process'] & { kind: 'up' }): Plan {
  if (process.phase === 'stopping' || process.phase === 'killing') return waiting('etcd is ending');
  if (seen.intent.kind === 'stopped' || seen.intent.kind === 'shutdown')
    return act({ kind: 'stopEtcd' }, seen.intent.because);
  if (seen.supervision.kind === 'superviseOnly') return superviseOnly(seen.supervision);
  if (process.ill === 'dataLocked') return act({ kind: 'stopLocked' }, 'another process holds its data directory');
  if (process.ill === 'stuck' && !seen.paused) return act({ kind: 'restartStuck' }, 'etcd is alive and does nothing');
  if (process.phase === 'starting') return waiting(etcdStarts);
  if (seen.founding === 'started') return act({ kind: 'completeFounding' }, 'the new cluster has committed');
  switch (seen.role.kind) {
    case 'unknown':
      return {
        kind: 'converged',
        because: `etcd runs; the role is unknown (${seen.role.because}), so nothing is changed`,
      };
    case 'known':
      return planMember(seen);
  }
}

/** etcd runs, and the role is known. */
function planMember(seen: Observed): Plan {
  const { identity } = seen;
  if (identity === undefined) return { kind: 'converged', because: 'etcd runs; this node has no recorded identity' };
  if (isUnwanted(seen.role)) return planLeave(seen, identity);
  if (seen.join.kind === 'started') return act({ kind: 'completeJoin' }, 'the joined member is ready');
  if (identity.isLearner) return planPromotion(seen, identity);
  return planAddress(seen, identity) ?? { kind: 'converged', because: 'etcd runs and is ready' };
}

function planWhileDown(seen: Observed): Plan {
  if (seen.intent.kind === 'stopped') return blocked({ kind: 'stoppedByOperator', because: seen.intent.because });
  if (seen.intent.kind === 'unknown') return blocked({ kind: 'intentUnknown', because: seen.intent.because });
  if (seen.founding === 'pending' && !isLeftover(seen)) {
    if (seen.supervision.kind === 'superviseOnly') return superviseOnly(seen.supervision);
    return act({ kind: 'beginFounding' }, 'an operator ordered this founding');
  }
  if (seen.identity === undefined) return planWithoutIdentity(seen);
  const data = planForData(seen, seen.identity);
  if (data !== undefined) return data;
  if (seen.removal.kind === 'suspected') {
    // Row 2 of the exit classes: the peers decide whether etcd may be started to find out.
    if (seen.removal.start === 'forbidden')
      return blocked({ kind: 'removalUnconfirmed', because: seen.removal.because });
    if (seen.removal.start === 'wait') return waiting(`a removal is not confirmed: ${seen.removal.because}`);
  }
  const permission = seen.start;
  if (permission.kind === 'hold') {
    if (!permission.recorded && seen.supervision.kind === 'full') {
      return act({ kind: 'recordHold', class: permission.class }, permission.because);
    }
    return blocked({ kind: 'held', class: permission.class, until: permission.until, because: permission.because });
  }
  if (permission.kind === 'later') {
    return { kind: 'waiting', because: permission.because, inMs: Math.max(1, permission.inMs) };
  }
  const [problem] = seen.preflight;
  if (problem !== undefined) {
    return blocked({ kind: 'preflight', problems: seen.preflight.map((one) => one.what), hint: problem.hint });
  }
  if (seen.peers.kind === 'notAsked') return act({ kind: 'askPeers' }, 'a removed member must not be started');
  if (seen.data.kind === 'prepared') {
    return seen.founding === 'started'
      ? act({ kind: 'startFounder' }, 'the founding has begun and etcd has no data yet')
      : act({ kind: 'startJoiner' }, 'the join has begun and etcd has no data yet');
  }
  return act({ kind: 'startMember' }, permission.because);
}

/**
 * A founding that never began, on a node that became a member otherwise: it counts no more. Between the identity and
 * `started` a founding that goes on has its mark and nothing else in the data directory.
 */
export function isLeftover(seen: Pick<Observed, 'founding' | 'identity' | 'data'>): boolean {
  const neverBegun = seen.founding === 'prepared' || seen.founding === 'pending';
  return neverBegun && seen.identity !== undefined && seen.data.kind !== 'prepared';
}

/** What the data directory says against a start; undefined if nothing. */
function planForData(seen: Observed, identity: Identity): Plan | undefined {
  switch (seen.data.kind) {
    case 'absent':
    case 'empty':
      if (seen.join.kind === 'added' && seen.join.memberId === identity.memberId) {
        return act({ kind: 'beginJoin' }, 'this node was added as a learner and has never run');
      }
      // An id that ran and lost its data has lost its memory of how it voted: it never starts again.
      return blocked({ kind: 'diskLost', memberId: identity.memberId });
    case 'prepared':
      if (seen.founding === 'started' || seen.join.kind === 'started') return undefined;
      if (seen.join.kind === 'added' && seen.join.memberId === identity.memberId) {
        return act({ kind: 'beginJoin' }, 'the new data directory has its mark, and the join is not recorded as begun');
      }
      return blocked({ kind: 'diskLost', memberId: identity.memberId });
    case 'emptyLog':
      return act(
        { kind: 'setEmptyLogAside' },
        `etcd was ended before the first record of its log; ${seen.founding === 'started' ? 'the founding' : 'the join'} begins it anew`,
      );
    case 'member':
      if (seen.data.memberId === identity.memberId && seen.data.clusterId === identity.clusterId) {
        const { regression } = seen.data;
        return regression === undefined
          ? undefined
          : blocked({ kind: 'logRegressed', memberId: identity.memberId, because: regression });
      }
      return blocked({ kind: 'dataOfAnotherMember', clusterId: seen.data.clusterId, memberId: seen.data.memberId });
    case 'broken':
      // Our reading of the files is no verdict: etcd repairs a torn tail, and names damage itself (class `data corrupt`).
      return undefined;
    case 'logLost':
      return blocked({ kind: 'dataBroken', because: seen.data.because });
    case 'unknown':
      return blocked({ kind: 'dataUnknown', because: seen.data.because });
  }
}

function planWithoutIdentity(seen: Observed): Plan {
  if (seen.supervision.kind === 'superviseOnly') return superviseOnly(seen.supervision);
  switch (seen.data.kind) {
    case 'member':
      return blocked({ kind: 'dataNotOurs', clusterId: seen.data.clusterId, memberId: seen.data.memberId });
    case 'broken':
    case 'logLost':
      return blocked({ kind: 'dataBroken', because: seen.data.because });
    case 'unknown':
      return blocked({ kind: 'dataUnknown', because: seen.data.because });
    case 'absent':
    case 'empty':
    case 'prepared':
    case 'emptyLog':
      if (seen.role.kind === 'unknown') return blocked({ kind: 'roleUnknown', because: seen.role.because });
      if (seen.role.role === 'consensus-member') {
        if (seen.role.spent || !seen.role.hasEndpoints) return blocked({ kind: 'notAMember' });
        if (seen.volume.kind === 'unknown') return blocked({ kind: 'volumeUnknown', because: seen.volume.because });
        return planJoin(seen);
      }
      if (isJoining(seen.join, undefined)) return planCancelledJoin(seen);
      return { kind: 'converged', because: 'this node is no member and its role asks for none' };
  }
}

function hasOwnData({ data, identity }: Observed): boolean {
  if (data.kind !== 'member' || identity === undefined) return false;
  return data.memberId === identity.memberId && data.clusterId === identity.clusterId;
}

function superviseOnly(supervision: Observed['supervision'] & { kind: 'superviseOnly' }): Plan {
  return blocked({ ...supervision });
}

function isRunning(phase: 'starting' | 'ready' | 'stopping' | 'killing'): boolean {
  return phase === 'starting' || phase === 'ready';
}

function act(step: Step, because: string): Plan {
  return { kind: 'act', step, because };
}

function waiting(because: string): Plan {
  return { kind: 'waiting', because, inMs: lookAgainMs };
}

function blocked(by: Blocker): Plan {
  return { kind: 'blocked', by };
}
