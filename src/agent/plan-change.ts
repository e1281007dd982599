/** @pure file: joining, promotion and leaving: the next step, or what blocks it, with the numbers. */

import { type MemberId, memberById } from '../etcd/member.ts';
import { judgeChange } from '../etcd/safety.ts';
import { refusalHint } from '../etcd/safety-hint.ts';
import type { Refusal, SafetyQuestion, SafetyVerdict, WantedChange } from '../etcd/safety-question.ts';
import { describeSafety } from '../etcd/safety-text.ts';
import { newestAnswer } from '../etcd/survivors.ts';
import { type ClusterSeen, type Identity, isOverdue, joinExpiresMs, joinRestsMs, type Observed } from './observed.ts';
import type { Blocker, Plan, Step } from './step.ts';

/** While the cluster is asked anew. Unit: ms. */
const askAgainMs = 1_000;
/** The pace at which a learner is asked whether it may vote: a small one is in sync in about 0.1 s. Unit: ms. */
const promotionPollMs = 250;

type Heard = ClusterSeen & { readonly kind: 'heard' };

/** @pure The way of a node that is no member into the cluster, up to the recorded identity. */
export function planJoin(seen: Observed): Plan {
  if (seen.paused) return blocked({ kind: 'paused', what: 'joining' });
  const heard = heardOf(seen.cluster, 'the cluster is asked who is in it');
  if (isPlan(heard)) return heard;
  const { members } = heard.question.list;
  const { identity, join, role } = seen;
  // Under another grant it begins at once.
  if (join.kind === 'expired' && role.kind === 'known' && join.grantId === role.grantId && join.forMs < joinRestsMs) {
    return blocked({ kind: 'joinExpired', inMs: joinRestsMs - join.forMs });
  }
  if (identity !== undefined && memberById(members, identity.memberId) !== undefined) {
    return blocked({ kind: 'oldMemberListed', memberId: identity.memberId });
  }
  const mine = members.find(({ peerUrls }) => peerUrls.includes(heard.peerUrl));
  const begun = join.kind === 'intended' || join.kind === 'added';
  const intended = begun && join.clusterId === heard.question.list.clusterId;
  if (mine !== undefined && intended && mine.isLearner && mine.name === '') {
    return act(
      { kind: 'takeUpLearner', memberId: mine.id },
      'a learner with our peer URL and our intent is in the list',
    );
  }
  const { freeBytes, neededBytes } = heard.space;
  if (freeBytes === undefined || freeBytes < neededBytes) {
    return blocked({ kind: 'spaceForJoin', neededBytes, freeBytes });
  }
  return judged(heard, { kind: 'addLearner', peerUrl: heard.peerUrl }, { kind: 'addLearner' });
}

/** @pure A join that is no longer wanted: whatever it has put into the cluster is taken out again. */
export function planCancelledJoin(seen: Observed): Plan {
  if (seen.paused) return blocked({ kind: 'paused', what: 'taking the learner out again' });
  const heard = heardOf(seen.cluster, 'the cluster is asked whether the cancelled join was applied');
  if (isPlan(heard)) return heard;
  const mine = heard.question.list.members.find(({ peerUrls }) => peerUrls.includes(heard.peerUrl));
  const ours = mine?.isLearner === true && mine.name === '' ? mine.id : undefined;
  return act({ kind: 'cancelJoin', memberId: ours }, 'the role no longer asks for this join');
}

/**
 * @pure Our learner has not started in time, and the cluster says so too: it is taken out again, so that another node can have
 * the one slot for learners. Undefined where that is not so.
 */
export function planExpiredJoin({ supervision, identity, join, cluster, paused, intent }: Observed): Plan | undefined {
  if (supervision.kind !== 'full' || paused || identity === undefined || !isOverdue(join, identity)) return undefined;
  if (intent.kind === 'shutdown' || cluster.kind !== 'heard') return undefined;
  const mine = memberById(cluster.question.list.members, identity.memberId);
  if (mine?.isLearner !== true || mine.name !== '') return undefined;
  const minutes = joinExpiresMs / 60_000;
  return act(
    { kind: 'expireJoin' },
    `its etcd has not started within ${minutes} min, and a cluster has one slot for learners`,
  );
}

/** @pure Our learner on its way to its vote. */
export function planPromotion(seen: Observed, identity: Identity): Plan {
  if (seen.paused) return blocked({ kind: 'paused', what: 'the promotion' });
  const heard = heardOf(seen.cluster, 'the cluster is asked how far the learner is');
  if (isPlan(heard)) return heard;
  const { question, consent } = heard;
  const wanted = { kind: 'promote', memberId: identity.memberId, consent } as const;
  const verdict = judgeChange({ ...question, wanted });
  if (verdict.kind === 'allowed' && consent !== undefined) {
    return act({ kind: 'promoteSelf', consent }, describeSafety({ ...question, wanted }, verdict));
  }
  if (verdict.kind === 'needless') return waiting('the learner has its vote; the list is read again', askAgainMs);
  const progress = progressText(question, identity.memberId);
  return waiting(`${describeSafety({ ...question, wanted }, verdict)}${progress}`, promotionPollMs);
}

/** @pure A voter whose configuration names another peer URL than the one that is registered. */
export function planAddress(seen: Observed, identity: Identity): Plan | undefined {
  if (seen.cluster.kind === 'notAsked') return undefined;
  if (seen.paused) return blocked({ kind: 'paused', what: 'the change of the peer URL' });
  const heard = heardOf(seen.cluster, 'the cluster is asked for the registered peer URL');
  if (isPlan(heard)) return heard;
  const registered = memberById(heard.question.list.members, identity.memberId)?.peerUrls;
  if (registered === undefined) return undefined;
  // Registered and not recorded: the agent was killed in between, and writes it down under the change record.
  if (registered.includes(heard.peerUrl) && identity.peerUrl === heard.peerUrl) return undefined;
  const owner = heard.question.list.members.find(
    ({ id, peerUrls }) => id !== identity.memberId && peerUrls.includes(heard.peerUrl),
  );
  if (owner === undefined) {
    const because = `the configuration names ${heard.peerUrl}, registered is ${registered.join(', ')}`;
    return act({ kind: 'updatePeerUrl', peerUrl: heard.peerUrl }, because);
  }
  const refusal: Refusal = { kind: 'peerUrlTaken', by: owner };
  const because = `${owner.name || 'an unstarted member'} is registered at ${heard.peerUrl}`;
  return blocked({ kind: 'changeRefused', refusal: refusal.kind, because, hint: refusalHint(refusal) });
}

/** @pure The own member leaves: `up` while its etcd runs. */
export function planLeave(seen: Observed, identity: Identity): Plan {
  if (seen.paused) return blocked({ kind: 'paused', what: 'leaving' });
  const heard = heardOf(seen.cluster, 'the other members are asked before this one leaves');
  if (isPlan(heard)) return heard;
  const wanted = { kind: 'remove', memberId: identity.memberId, provenDead: false } as const;
  // The grant of this very role: by the time of the removal the document may carry the next one.
  const grantId = seen.role.kind === 'known' ? seen.role.grantId : '';
  return judged(heard, wanted, { kind: 'removeSelf', grantId });
}

function judged(heard: Heard, wanted: WantedChange, step: Step): Plan {
  const question = { ...heard.question, wanted };
  const verdict: SafetyVerdict = judgeChange(question);
  const text = describeSafety(question, verdict);
  // `needless`: the step looks once more, under the change record, and writes down that it is so.
  return verdict.kind === 'refused'
    ? blocked({
        kind: 'changeRefused',
        refusal: verdict.refusal.kind,
        because: text,
        hint: refusalHint(verdict.refusal),
      })
    : act(step, text);
}

function heardOf(cluster: ClusterSeen, asking: string): Heard | Plan {
  switch (cluster.kind) {
    case 'notAsked':
      return waiting(asking, askAgainMs);
    case 'silent':
      return blocked({ kind: 'clusterSilent', because: cluster.because, hint: cluster.hint });
    case 'heard':
      return cluster;
  }
}

function isPlan(value: Heard | Plan): value is Plan {
  return value.kind !== 'heard';
}

/** `; it has applied 57 % of the leader's log (index 570 of 1000)` */
function progressText({ answers, leader }: Omit<SafetyQuestion, 'wanted'>, id: MemberId): string {
  const answer = newestAnswer(answers, id);
  if (answer === undefined || leader === undefined || leader.index === 0n) return '';
  const percent = (answer.appliedIndex * 100n) / leader.index;
  return `; it has applied ${percent > 100n ? 100n : percent} % of the leader's log (index ${answer.appliedIndex} of ${leader.index})`;
}

function act(step: Step, because: string): Plan {
  return { kind: 'act', step, because };
}

function waiting(because: string, inMs: number): Plan {
  return { kind: 'waiting', because, inMs };
}

function blocked(by: Blocker): Plan {
  return { kind: 'blocked', by };
}
