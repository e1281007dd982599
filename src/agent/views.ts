/** @pure file: the node as an operator sees it. */

import { formatId, type MemberList, votersOf } from '../etcd/member.ts';
import { faultToleranceOf, quorumOf } from '../etcd/quorum.ts';
import { describeBlocker } from './blockers.ts';
import type { ClusterStatus, MemberStatus, PlanView, ProcessStatus } from './control.ts';
import type { Observed } from './observed.ts';
import type { ChildView, MemberStatusAnswer } from './ports.ts';
import type { EndRecord, IdentityRecord } from './state/schemas.ts';
import type { Plan } from './step.ts';

/** @pure A plan in words; `failing`: why its step did not succeed when it was last tried. */
export function planView(made: Plan, failing?: Failing): PlanView {
  switch (made.kind) {
    case 'converged':
      return { kind: 'converged', what: '', because: made.because, hint: '' };
    case 'act':
      return {
        kind: 'act',
        what: made.step.kind,
        because: `${made.because}${failedWords(failing)}`,
        hint: failing?.hint ?? '',
      };
    case 'waiting':
      return { kind: 'waiting', what: '', because: made.because, hint: '' };
    case 'blocked': {
      const { because, hint } = describeBlocker(made.by);
      return { kind: 'blocked', what: made.by.kind, because, hint };
    }
  }
}

/** @pure The process and how it last ended. */
export function processStatus(parts: {
  readonly view: ChildView;
  readonly intent: string;
  readonly version: string;
  readonly restarts: number;
  readonly lastEnd: EndRecord | undefined;
  readonly nextStartMs: number | undefined;
}): ProcessStatus {
  const { view, lastEnd } = parts;
  const since = view.phase === 'down' ? lastEnd?.endedAtMs : view.phase === 'ready' ? view.readyAtMs : view.startedAtMs;
  return {
    phase: view.phase,
    pid: view.pid ?? null,
    life: view.life === 0 ? null : view.life,
    since: iso(since),
    adopted: view.phase !== 'down' && view.adopted,
    version: parts.version,
    restarts: parts.restarts,
    intent: parts.intent,
    lastExit:
      lastEnd === undefined
        ? null
        : {
            life: lastEnd.life,
            class: lastEnd.class,
            code: lastEnd.code,
            signal: lastEnd.signal,
            because: lastEnd.because,
            at: iso(lastEnd.endedAtMs) ?? '',
          },
    nextStart: iso(parts.nextStartMs),
  };
}

/** @pure The member, as recorded and as it last said of itself. */
export function memberStatus(
  identity: IdentityRecord | undefined,
  status: MemberStatusAnswer | undefined,
): MemberStatus | null {
  if (identity === undefined) return null;
  const recorded = identity.lastMembers.find((member) => member.id === identity.memberId);
  return {
    clusterId: formatId(identity.clusterId),
    memberId: formatId(identity.memberId),
    name: identity.name,
    peerUrl: identity.peerUrl,
    clientUrl: identity.clientUrl,
    learner: isLearner(status?.isLearner, recorded?.isLearner),
    leader: status === undefined ? null : status.leader === identity.memberId,
    dbSizeBytes: status === undefined ? null : Number(status.dbSizeBytes),
    raftTerm: status?.raftTerm.toString() ?? null,
    raftAppliedIndex: status?.raftAppliedIndex.toString() ?? null,
  };
}

/** A member becomes a voter once and for good: whichever source knows that already is the newer one. */
function isLearner(...said: readonly (boolean | undefined)[]): boolean | null {
  const known = said.filter((one) => one !== undefined);
  return known.length === 0 ? null : known.every((one) => one);
}

/** @pure The cluster by the last linearizable list. */
export function clusterStatus(
  latest: { readonly list: MemberList; readonly wallMs: number } | undefined,
): ClusterStatus | null {
  if (latest === undefined) return null;
  const voters = votersOf(latest.list.members).length;
  return {
    members: latest.list.members.map((member) => ({
      memberId: formatId(member.id),
      name: member.name,
      learner: member.isLearner,
      peerUrls: member.peerUrls,
      clientUrls: member.clientUrls,
    })),
    voters,
    quorum: voters === 0 ? 0 : quorumOf(voters),
    faultTolerance: voters === 0 ? 0 : faultToleranceOf(voters),
    asOf: iso(latest.wallMs) ?? '',
  };
}

/** @pure The node in one sentence. */
export function sentence(
  made: Plan,
  seen: Observed,
  view: ChildView,
  cluster: ClusterStatus | null,
  failing?: Failing,
): string {
  const process = processWords(view);
  const tolerance = cluster === null || view.phase !== 'ready' ? '' : `; ${toleranceWords(cluster)}`;
  if (made.kind === 'blocked') return `${process}; blocked: ${describeBlocker(made.by).because}`;
  if (made.kind === 'act') return `${process}; ${made.because}${failedWords(failing)}`;
  if (made.kind === 'waiting') return `${process}; ${made.because}`;
  return `${process}${tolerance}${seen.paused ? '; paused' : ''}`;
}

/** @pure `3 voters, may lose 1`. */
export function toleranceWords(cluster: ClusterStatus): string {
  const voters = cluster.voters === 1 ? '1 voter' : `${cluster.voters} voters`;
  return cluster.faultTolerance === 0 ? `${voters}, none may fail` : `${voters}, ${cluster.faultTolerance} may fail`;
}

/** A step that was tried and did not succeed. */
interface Failing {
  readonly because: string;
  readonly hint: string;
}

function failedWords(failing: Failing | undefined): string {
  return failing === undefined ? '' : `; the last try failed: ${failing.because}`;
}

function processWords(view: ChildView): string {
  if (view.phase === 'down') return 'etcd is down';
  return `etcd is ${view.phase} (pid ${view.pid ?? '?'})`;
}

function iso(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
