/** @pure file: the node as an operator sees it. */

import { formatId, type MemberId, type MemberList, votersOf } from '../etcd/member.ts';
import { faultToleranceOf, quorumOf } from '../etcd/quorum.ts';
import { describeBlocker } from './blockers.ts';
import type { ClusterStatus, MemberStatus, PlanView, ProcessStatus } from './control.ts';
import { ailmentOf, type Health } from './health.ts';
import type { Observed } from './observed.ts';
import { etcdStarts } from './plan.ts';
import type { ChildView, MemberStatusAnswer } from './ports.ts';
import type { EndRecord, IdentityRecord } from './state/schemas.ts';
import type { Plan } from './step.ts';

/**
 * @pure A plan in words; `failing`: why its step did not succeed when it was last tried. A node that wants nothing changed and
 * whose etcd ails is not converged: it waits.
 */
export function planView(made: Plan, health: Health, failing?: Failing): PlanView {
  switch (made.kind) {
    case 'converged': {
      const ailment = ailmentOf(health);
      if (ailment !== undefined) return { kind: 'waiting', what: '', ...ailment };
      return { kind: 'converged', what: '', because: made.because, hint: '' };
    }
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
  readonly health: Health;
  readonly pending: readonly string[];
  readonly intent: string;
  readonly version: string;
  readonly restarts: number;
  readonly lastEnd: EndRecord | undefined;
  readonly nextStartMs: number | undefined;
}): ProcessStatus {
  const { view, lastEnd } = parts;
  // When one that a former agent started became ready is not known: it was asked anew.
  const up = view.phase === 'ready' && !view.adopted ? view.readyAtMs : view.startedAtMs;
  const since = view.phase === 'down' ? (lastEnd?.endedAtMs ?? undefined) : up;
  return {
    phase: view.phase,
    pid: view.pid ?? null,
    life: view.life === 0 ? null : view.life,
    since: iso(since),
    adopted: view.phase !== 'down' && view.adopted,
    version: parts.version,
    restarts: parts.restarts,
    answers: parts.health.answers,
    notReady: parts.health.notReady,
    pending: parts.pending,
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
            at: iso(lastEnd.endedAtMs ?? undefined),
            noticedAt: new Date(lastEnd.noticedAtMs).toISOString(),
          },
    nextStart: iso(parts.nextStartMs),
  };
}

/** @pure The member, as recorded and as it last said of itself. */
export function memberStatus(
  identity: IdentityRecord | undefined,
  status: MemberStatusAnswer | undefined,
  clientUrl: string,
  now: { readonly quorum: boolean | undefined; readonly removed: boolean },
): MemberStatus | null {
  if (identity === undefined) return null;
  const recorded = identity.lastMembers.find((member) => member.id === identity.memberId);
  return {
    clusterId: formatId(identity.clusterId),
    memberId: formatId(identity.memberId),
    name: identity.name,
    peerUrl: identity.peerUrl,
    clientUrl,
    learner: isLearner(status?.isLearner, recorded?.isLearner),
    leader: status === undefined ? null : status.leader === identity.memberId && now.quorum !== false,
    quorum: now.quorum ?? null,
    removed: now.removed,
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

/** What the cluster is shown from. */
export interface ClusterKnown {
  /** The last linearizable list. */
  readonly latest: { readonly list: MemberList; readonly wallMs: number } | undefined;
  readonly identity: IdentityRecord | undefined;
  /** This node's member was removed: it is in the last list that it read, and not in the cluster. */
  readonly removed: boolean;
  /** Our own etcd is ready and answers. */
  readonly selfAnswers: boolean;
  /** The other voters that answered lately; undefined: they were not asked. */
  readonly others: ReadonlySet<MemberId> | undefined;
}

/** @pure The cluster: its members by the last linearizable list that our own member gave, and who of them answers now. */
export function clusterStatus(known: ClusterKnown): ClusterStatus | null {
  const { latest, identity, removed } = known;
  // A list that a former member of this node gave is not that of the present one.
  if (latest === undefined || identity?.memberId !== latest.list.answeredBy) return null;
  const self = identity.memberId;
  const members = latest.list.members.filter(({ id }) => !removed || id !== self);
  const others = known.selfAnswers ? known.others : undefined;
  const answers = (id: MemberId) => (others === undefined ? null : id === self || others.has(id));
  const voters = votersOf(members);
  const answering = others === undefined ? null : voters.filter(({ id }) => answers(id) === true).length;
  const quorum = voters.length === 0 ? 0 : quorumOf(voters.length);
  return {
    members: members.map((member) => ({
      memberId: formatId(member.id),
      name: member.name,
      learner: member.isLearner,
      peerUrls: member.peerUrls,
      clientUrls: member.clientUrls,
      answers: member.isLearner ? null : answers(member.id),
    })),
    voters: voters.length,
    quorum,
    answering,
    faultTolerance:
      voters.length === 0 ? 0 : answering === null ? faultToleranceOf(voters.length) : Math.max(0, answering - quorum),
    asOf: iso(latest.wallMs) ?? '',
  };
}

/** @pure The node in one sentence. */
export function sentence(
  made: Plan,
  seen: Observed,
  view: ChildView,
  cluster: ClusterStatus | null,
  health: Health,
  failing?: Failing,
): string {
  const process = processWords(view, health);
  const tolerance = cluster === null || view.phase !== 'ready' || !health.answers ? '' : `; ${toleranceWords(cluster)}`;
  if (made.kind === 'blocked') return `${process}; blocked: ${describeBlocker(made.by).because}`;
  if (made.kind === 'act') return `${process}; ${made.because}${failedWords(failing)}`;
  if (made.kind === 'waiting') return `${process}${waitingWords(made.because, seen)}`;
  return `${process}${tolerance}${seen.paused ? '; paused' : ''}`;
}

/** @pure `3 voters, 2 answer, none may fail`; all that are in the list answer unless it says otherwise. */
export function toleranceWords({ voters, quorum, answering, faultTolerance, asOf }: ClusterStatus): string {
  const all = voters === 1 ? '1 voter' : `${voters} voters`;
  const answer =
    answering === null || answering === voters ? '' : `, ${answering} ${answering === 1 ? 'answers' : 'answer'}`;
  if (answering !== null && answering < quorum) return `${all}${answer}, ${quorum} are needed`;
  const may = faultTolerance === 0 ? 'none may fail' : `${faultTolerance} may fail`;
  return `${all}${answer}, ${may}${answering === null && voters > 1 ? ` by the list of ${asOf}` : ''}`;
}

/** That it starts the process has said already; a founder alone in a new cluster of three is not ill: it waits. */
function waitingWords(because: string, { founding, identity }: Observed): string {
  if (because !== etcdStarts) return `; ${because}`;
  const founders = identity?.lastVoters.length ?? 0;
  if (founding !== 'started' || founders < 2) return '';
  return `; the new cluster is ready once ${quorumOf(founders)} of its ${founders} founders run`;
}

/** A step that was tried and did not succeed. */
interface Failing {
  readonly because: string;
  readonly hint: string;
}

function failedWords(failing: Failing | undefined): string {
  return failing === undefined ? '' : `; the last try failed: ${failing.because}`;
}

function processWords(view: ChildView, health: Health): string {
  const pid = `(pid ${view.pid ?? '?'})`;
  if (view.phase === 'down') return 'etcd is down';
  if (!health.answers) return `etcd runs and does not answer ${pid}`;
  if (health.withoutQuorum !== '') return `etcd runs without a quorum ${pid}: ${health.withoutQuorum}`;
  return `etcd is ${view.phase} ${pid}${health.notReady === '' ? '' : `: ${health.notReady}`}`;
}

function iso(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
