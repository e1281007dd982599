import { type Clock, delay } from '../../base/clock.ts';
import { AgentError, describeError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type AcceptedRisk, isAccepted, listHash } from '../../etcd/accepted-risk.ts';
import { callDeadlines } from '../../etcd/deadlines.ts';
import { outcomeOf } from '../../etcd/error-table.ts';
import { MemberNotFoundError, NoSpaceError, NotALearnerError } from '../../etcd/errors.ts';
import { type ClusterId, formatId, type MemberId, type MemberList, memberById, sameUrls } from '../../etcd/member.ts';
import { judgeChange } from '../../etcd/safety.ts';
import { refusalHint } from '../../etcd/safety-hint.ts';
import type { SafetyQuestion, SafetyVerdict, WantedChange } from '../../etcd/safety-question.ts';
import { describeSafety } from '../../etcd/safety-text.ts';
import { answerFault, newestAnswer } from '../../etcd/survivors.ts';
import type { Effects } from '../effects.ts';
import type { Journal, JournalEntry } from '../journal.ts';
import type { ClusterPort } from '../ports.ts';
import type { Step } from '../step.ts';
import type { ChangeLock, HeldRecord } from './change-lock.ts';
import { handOver, handOverMs } from './hand-over.ts';
import { type Heard, type Hearings, reachedOf, sha256 } from './hearing.ts';

/** The safety check said no, with its numbers. Nothing was changed. */
export class ChangeRefusedError extends AgentError {
  readonly code = 'CHANGE_REFUSED';
  readonly verdict: SafetyVerdict;
  constructor(message: string, verdict: SafetyVerdict, hint: string) {
    super(message, { hint });
    this.verdict = verdict;
  }
}

/** The change record cannot be written: the database is full. Nothing was changed. */
export class RecordNotWrittenError extends AgentError {
  readonly code = 'RECORD_NOT_WRITTEN';
}

/** What was heard of the cluster was too old before the change could be sent. Nothing was sent. */
export class ChangeLateError extends AgentError {
  readonly code = 'CHANGE_LATE';
}

/** Nobody can say yet whether the change was applied; the next turn reads the list. */
export class ChangeUnknownError extends AgentError {
  readonly code = 'CHANGE_UNKNOWN';
}

/** Leadership could not be moved away before a removal or a stop. Nothing was changed. */
export class HandOverFailedError extends AgentError {
  readonly code = 'HAND_OVER_FAILED';
}

/** A change of the cluster, or a stop of one member of it. */
export type Change =
  | Exclude<WantedChange, { kind: 'moveLeader' }>
  /** The registered peer URLs of a voter are replaced. */
  | { readonly kind: 'updateUrls'; readonly memberId: MemberId; readonly peerUrls: readonly string[] };

export interface ChangeRequest {
  readonly change: Change;
  /** Client URLs of members to ask, the likeliest first. */
  readonly endpoints: readonly string[];
  /** Undefined only for a joiner that was told none. */
  readonly clusterId: ClusterId | undefined;
  readonly accepted: readonly AcceptedRisk[];
  readonly force: boolean;
  /** The own member: its etcd is the one that hands leadership over. */
  readonly self: { readonly memberId: MemberId; readonly endpoint: string } | undefined;
  /** Right before the call is sent, with the check done: an intent of a flow is written here. */
  readonly beforeAct?: (heard: Heard) => void | Promise<void>;
  /** For `down`: ends the child and returns once it is gone. */
  readonly down?: () => Promise<void>;
  /** For `down`: how long that may take. Unit: ms, default 45 000. */
  readonly downMs?: number;
  /** Right after it is known to be applied, before the record is cleared. `needless`: the list showed it so before anything was sent. */
  readonly afterwards?: (list: MemberList, how: ChangeOutcome['kind'], heard: Heard) => void;
  /** Goes on without the change record when etcd cannot be written (NOSPACE). An operator's flag. */
  readonly withoutRecord?: boolean;
}

export interface ChangeOutcome {
  /** `needless`: it was so already. */
  readonly kind: 'applied' | 'needless';
  readonly list: MemberList;
  /** The judgement in one sentence. */
  readonly text: string;
}

/** A late application is waited for; longer than that is for the next turn. Unit: ms. */
const readBackMs = 15_000;
const readBackEveryMs = 500;
/** What was heard counts for so long by the wall clock, which a suspended machine does not stop. Unit: ms. */
const freshForMs = 5_000;
/** So often the cluster is heard before one act. */
const freshTries = 3;
/** No record may ask others to wait longer. Unit: ms. */
const maxWaitMs = 600_000;

export interface ClusterChangesOptions {
  readonly cluster: ClusterPort;
  readonly hearings: Hearings;
  readonly lock: ChangeLock;
  readonly journal: Journal;
  readonly effects: Effects;
  readonly clock: Clock;
  readonly log: Log;
  /** Stop asking the own member for its Status, and ask again after all. */
  readonly quiet: (quiet: boolean) => void;
}

/**
 * Makes one change: record, hearing and check, journal, `sending`, act, verify, clear. Every error before the act leaves the
 * cluster as it was; after it the list decides.
 */
export class ClusterChanges {
  readonly #options: ClusterChangesOptions;
  /** The own member, after a removal whose fate is not known: it is not asked for its Status. */
  #mayBeGone: MemberId | undefined;

  constructor(options: ClusterChangesOptions) {
    this.#options = options;
  }

  /** A change of this node was interrupted, or its record could not be cleared: it may stand in etcd. */
  get mayHaveLeft(): boolean {
    return this.#options.lock.mayStand;
  }

  /** Finds out what became of an interrupted change of this node, and clears its record. Throws as {@link make} does. */
  async resolve(endpoints: readonly string[], clusterId: ClusterId | undefined): Promise<void> {
    const { hearings, lock, journal, cluster, effects } = this.#options;
    const { list, through } = await hearings.hear({ endpoints, clusterId });
    const listNow = async () =>
      await cluster.memberList(through, { linearizable: true, timeoutMs: callDeadlines.listMs });
    await lock.resolveOwn(through, list.clusterId, listNow);
    await this.#askAgainUnlessGone(listNow);
    for (const entry of journal.interrupted().filter(({ what }) => isChangeEntry(what))) {
      effects.do('change.done', () => journal.end(entry, 'failed', 'it was interrupted; its record was resolved'));
    }
  }

  /** The removal of the own member did not come to be, and cannot be on its way any more: its Status is asked as before. */
  async #askAgainUnlessGone(listNow: () => Promise<MemberList>): Promise<void> {
    if (this.#mayBeGone === undefined) return;
    const stays = memberById((await listNow()).members, this.#mayBeGone) !== undefined;
    this.#mayBeGone = undefined;
    if (stays) this.#options.quiet(false);
  }

  /** What the check says now; nothing is changed, and no record is taken. Throws ClusterSilentError, OtherClusterError. */
  async judge(request: Omit<ChangeRequest, 'beforeAct' | 'down' | 'afterwards'>): Promise<Judged> {
    return this.#judge(request, await this.#options.hearings.hear(request));
  }

  /**
   * Throws {@link ChangeRefusedError}, ChangeUnderWayError, {@link RecordNotWrittenError}, {@link HandOverFailedError}, {@link ChangeLateError}, {@link ChangeUnknownError},
   * ClusterSilentError, OtherClusterError, EtcdError (a refusal of etcd's own).
   */
  async make(request: ChangeRequest): Promise<ChangeOutcome> {
    const { hearings, lock, log } = this.#options;
    // Whoever leads is asked first: it knows most, and it stays when another one goes.
    const before = await hearings.hear(request);
    const through = this.#survivorEndpoint(request, before);
    const listNow = async () =>
      await this.#options.cluster.memberList(through, { linearizable: true, timeoutMs: callDeadlines.listMs });
    let held: HeldRecord | undefined;
    try {
      held = await lock.take(
        through,
        {
          clusterId: before.list.clusterId,
          kind: request.change.kind,
          target: targetOf(request.change),
          waitMs: waitMsOf(request),
        },
        listNow,
      );
    } catch (error) {
      if (!(error instanceof NoSpaceError)) throw error;
      if (!mayGoWithoutRecord(request, before.list)) {
        throw new RecordNotWrittenError(`the change record cannot be written: ${describeError(error)}`, {
          cause: error,
          hint: `Free space first: docs/runbook.md, "a full database".${withoutRecordHint(request)}`,
        });
      }
      log.warn({}, 'the change record cannot be written (NOSPACE); an operator let the change go on without it');
    }
    return await this.#withRecord(request, through, held);
  }

  async #withRecord(request: ChangeRequest, through: string, taken: HeldRecord | undefined): Promise<ChangeOutcome> {
    const { hearings, lock } = this.#options;
    let held = taken;
    let sent = false;
    let hushed = false;
    let entry: JournalEntry | undefined;
    try {
      let judged = this.#allowed(request, await hearings.hear(request));
      if (judged.verdict.kind === 'needless') return await this.#needless(request, judged, through, held);
      // What was judged first says what is done, the hand-over among it.
      const { text } = judged;
      // A stop goes on after a crash from its intent, so that stands before anything is done to etcd.
      if (request.change.kind === 'down') await request.beforeAct?.(judged.heard);
      if (judged.handOverFirst) {
        await this.#handOver(request, judged.question);
        judged = this.#handedOver(request, await hearings.hear(request));
      }
      if (request.change.kind !== 'down') await request.beforeAct?.(judged.heard);
      entry = this.#begin(request, text);
      for (let tries = 1; ; tries++) {
        if (held !== undefined) held = await lock.sending(through, held);
        if (this.#isFresh(request, judged)) break;
        if (tries === freshTries)
          throw new ChangeLateError('etcd is too slow: what it says is old by the time that the record is written');
        judged = this.#handedOver(request, await hearings.hear(request));
        if (judged.verdict.kind === 'needless') {
          this.#end(request, entry);
          return await this.#needless(request, judged, through, held);
        }
        if (request.change.kind !== 'down') await request.beforeAct?.(judged.heard);
      }
      hushed = concernsSelf(request) && (request.change.kind === 'remove' || request.change.kind === 'down');
      if (hushed) this.#options.quiet(true);
      sent = true;
      const list = await this.#actAndVerify(request, judged.heard);
      this.#end(request, entry);
      request.afterwards?.(list, 'applied', judged.heard);
      await this.#clear(through, held);
      return { kind: 'applied', list, text };
    } catch (error) {
      // A change whose fate is unknown keeps its record: whoever comes next resolves it first.
      const settled = !sent || (error instanceof AgentError && outcomeOf(error) === 'refused');
      if (settled && hushed) this.#options.quiet(false);
      if (!settled && hushed && request.change.kind === 'remove') this.#mayBeGone = request.change.memberId;
      if (settled && error instanceof AgentError) {
        if (entry !== undefined) this.#options.journal.end(entry, 'failed', describeError(error));
        await this.#clear(through, held);
      }
      throw error;
    }
  }

  async #needless(
    request: ChangeRequest,
    { heard, text }: Judged,
    through: string,
    held: HeldRecord | undefined,
  ): Promise<ChangeOutcome> {
    request.afterwards?.(heard.list, 'needless', heard);
    await this.#clear(through, held);
    return { kind: 'needless', list: heard.list, text };
  }

  /** Throws {@link ChangeRefusedError}. */
  #allowed(request: ChangeRequest, heard: Heard): Judged {
    const judged = this.#judge(request, heard);
    const { verdict, text } = judged;
    if (verdict.kind === 'refused') throw new ChangeRefusedError(text, verdict, refusalHint(verdict.refusal));
    return judged;
  }

  /** The judgement anew after leadership was moved: that may have taken seconds, in which another voter may have died. */
  #handedOver(request: ChangeRequest, heard: Heard): Judged {
    const judged = this.#allowed(request, heard);
    if (!judged.handOverFirst || request.change.kind === 'down') return judged;
    throw new HandOverFailedError('it leads again, although leadership was handed over', {
      hint: 'Look at the other voters (`etcd-node-agent members`); the agent tries again.',
    });
  }

  /**
   * Right before the act: whether what was heard still counts. Writing the record may have taken seconds, and the machine may have been
   * suspended, in which case somebody else may hold the record by now: it is written once more after the cluster was heard anew.
   */
  #isFresh(request: ChangeRequest, { heard }: Judged): boolean {
    const wallAgeMs = this.#options.clock.wallMs() - heard.listAtWallMs;
    if (wallAgeMs < 0 || wallAgeMs > freshForMs) return false;
    return this.#judge(request, heard).verdict.kind === 'allowed';
  }

  /** A stop has its intent on disk, and a journal that cannot be written keeps no etcd up. */
  #begin({ change }: ChangeRequest, text: string): JournalEntry | undefined {
    const { effects, journal } = this.#options;
    const begin = () => effects.do('change.journal', () => journal.begin(`change.${change.kind}`, text));
    return change.kind === 'down' ? this.#tryTo(begin) : begin();
  }

  #end({ change }: ChangeRequest, entry: JournalEntry | undefined): void {
    const { effects, journal } = this.#options;
    const end = () => effects.do('change.done', () => entry !== undefined && journal.end(entry, 'done', ''));
    if (change.kind === 'down') this.#tryTo(end);
    else end();
  }

  #tryTo<T>(write: () => T): T | undefined {
    try {
      return write();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#options.log.warn({ error: describeError(error) }, 'a stop could not be written to the journal');
      return undefined;
    }
  }

  /** The record goes; if that fails it is resolved by whoever comes next. */
  async #clear(through: string, held: HeldRecord | undefined): Promise<void> {
    if (held === undefined) return;
    try {
      await this.#options.lock.clear(through, held);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#options.log.warn(
        { error: describeError(error) },
        'the change record could not be cleared; it is resolved later',
      );
    }
  }

  #judge(request: Omit<ChangeRequest, 'beforeAct' | 'down' | 'afterwards'>, heard: Heard): Judged {
    const { accepted, force } = request;
    const change = consentNow(request.change, heard, this.#options.clock.monotonicMs());
    const question = this.#question(heard, accepted, force);
    if (change.kind === 'updateUrls') {
      const member = memberById(heard.list.members, change.memberId);
      const same = change.peerUrls.every((url) => member?.peerUrls.includes(url) === true);
      const text = `member ${formatId(change.memberId)} is registered at ${change.peerUrls.join(', ')}${same ? ' already' : ''}`;
      // Its vote counts before and after; what could go wrong is that the change cannot be committed now.
      const asAdd = judgeChange({ ...question, wanted: { kind: 'addLearner', peerUrl: '' }, maxLearners: 99 });
      const verdict: SafetyVerdict = same ? { ...asAdd, kind: 'needless' } : asAdd;
      return { verdict, text, question, heard, handOverFirst: false };
    }
    const asked = { ...question, wanted: change };
    const verdict = judgeChange(asked);
    const handOverFirst = verdict.kind === 'allowed' && verdict.handOverFirst;
    return { verdict, text: describeSafety(asked, verdict), question, heard, handOverFirst };
  }

  #question(heard: Heard, accepted: readonly AcceptedRisk[], force: boolean): Omit<SafetyQuestion, 'wanted'> {
    return {
      list: heard.list,
      listAtMs: heard.listAtMs,
      answers: heard.answers,
      leader: heard.leader,
      nowMs: this.#options.clock.monotonicMs(),
      activities: heard.activities,
      accepted,
      force,
      sha256,
    };
  }

  /** Keys are written through one that stays. */
  #survivorEndpoint({ change, self }: ChangeRequest, heard: Heard): string {
    const goes = change.kind === 'remove' || change.kind === 'down' ? change.memberId : undefined;
    const stay = heard.list.members.filter(({ id }) => id !== goes);
    const leader = heard.leader?.memberId === goes ? undefined : heard.leader?.memberId;
    const [endpoint] = reachedOf(heard, stay, leader);
    return endpoint ?? self?.endpoint ?? heard.through;
  }

  async #handOver(request: ChangeRequest, question: Omit<SafetyQuestion, 'wanted'>): Promise<void> {
    const { clock, log } = this.#options;
    const { self } = request;
    if (self === undefined || !concernsSelf(request)) {
      throw new HandOverFailedError('it leads, and only its own agent can hand leadership over', {
        hint: 'Give the order on that node, or stop its etcd there first.',
      });
    }
    if (await handOver(this.#options, { self, question, untilMs: clock.monotonicMs() + handOverMs })) return;
    if (request.change.kind === 'down') {
      // It stays a member: at worst the others elect, and etcd tries once more by itself when it is told to end.
      log.warn({}, 'nobody took leadership over before the stop');
      return;
    }
    throw new HandOverFailedError('no other voter took leadership over', {
      hint: 'Look at the other voters (`etcd-node-agent members`); the agent tries again.',
    });
  }

  async #actAndVerify(request: ChangeRequest, heard: Heard): Promise<MemberList> {
    const { change } = request;
    const goes = change.kind === 'remove' || change.kind === 'down' ? change.memberId : undefined;
    const learner = change.kind === 'promote' ? change.memberId : undefined;
    const askable = heard.list.members.filter(({ id }) => id !== goes && id !== learner);
    const endpoints = reachedOf(heard, askable, heard.leader?.memberId);
    const act = endpoints[0] ?? request.self?.endpoint ?? heard.through;
    if (change.kind === 'down') {
      await this.#options.effects.doing('change.down', async () => await request.down?.());
      return heard.list;
    }
    let failure: unknown;
    try {
      await this.#act(change, act);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const isDone =
        error instanceof MemberNotFoundError ? change.kind === 'remove' : error instanceof NotALearnerError;
      if (!isDone && outcomeOf(error) === 'refused') throw error;
      failure = isDone ? undefined : error;
    }
    return await this.#verify(change, [...endpoints.slice(1), act], failure);
  }

  async #act(change: Exclude<Change, { kind: 'down' }>, endpoint: string): Promise<void> {
    const { cluster, effects } = this.#options;
    const withinMs = callDeadlines.changeMs;
    switch (change.kind) {
      case 'addLearner':
        await effects.doing('change.addLearner', () => cluster.addLearner(endpoint, change.peerUrl, withinMs));
        return;
      case 'promote':
        await effects.doing('change.promote', () => cluster.promoteMember(endpoint, change.memberId, withinMs));
        return;
      case 'remove':
        await effects.doing('change.remove', () => cluster.removeMember(endpoint, change.memberId, withinMs));
        return;
      case 'updateUrls':
        await effects.doing('change.updateUrls', () =>
          cluster.updateMember(endpoint, change.memberId, change.peerUrls, withinMs),
        );
    }
  }

  /** Reads the list, from another member first, until it shows the change. */
  async #verify(change: Change, endpoints: readonly string[], failure: unknown): Promise<MemberList> {
    const { cluster, clock } = this.#options;
    const until = clock.monotonicMs() + readBackMs;
    for (;;) {
      for (const endpoint of endpoints) {
        const list = await cluster
          .memberList(endpoint, { linearizable: true, timeoutMs: 2_000 })
          .catch(() => undefined);
        if (list !== undefined && isApplied(change, list)) return list;
      }
      if (clock.monotonicMs() >= until) break;
      await delay(clock, readBackEveryMs);
    }
    throw new ChangeUnknownError(`it is not known yet whether ${change.kind} ${targetOf(change)} was applied`, {
      cause: failure,
      hint: 'The agent reads the list again before it changes anything else.',
    });
  }
}

/** A judgement with what it rests on. */
export interface Judged {
  readonly verdict: SafetyVerdict;
  readonly text: string;
  readonly question: Omit<SafetyQuestion, 'wanted'>;
  readonly heard: Heard;
  /** It leads, and leadership is moved before it goes. */
  readonly handOverFirst: boolean;
}

/** Steps of the plan that make a change; they stand in the journal from before the record is written. */
const changeSteps: ReadonlySet<string> = new Set<Step['kind']>([
  'addLearner',
  'promoteSelf',
  'cancelJoin',
  'expireJoin',
  'removeSelf',
  'updatePeerUrl',
]);

/** @pure Whether an entry of the journal that has no end means that a change record of this node may stand in etcd. */
export function isChangeEntry(what: string): boolean {
  return what.startsWith('change.') || changeSteps.has(what);
}

/** @pure Whether the list shows the change. */
export function isApplied(change: Change, list: MemberList): boolean {
  switch (change.kind) {
    case 'addLearner':
      return list.members.some(({ peerUrls }) => peerUrls.includes(change.peerUrl));
    case 'promote':
      return memberById(list.members, change.memberId)?.isLearner === false;
    case 'remove':
      return memberById(list.members, change.memberId) === undefined;
    case 'updateUrls':
      return sameUrls(memberById(list.members, change.memberId)?.peerUrls ?? [], change.peerUrls);
    case 'down':
      return true;
  }
}

function targetOf(change: Change): string {
  return change.kind === 'addLearner' ? change.peerUrl : formatId(change.memberId);
}

/** The call, what a hand-over may take before it, and some time for a late application. */
function waitMsOf({ change, downMs = 45_000 }: ChangeRequest): number {
  return Math.min(maxWaitMs, (change.kind === 'down' ? downMs : callDeadlines.changeMs) + handOverMs);
}

function concernsSelf({ change, self }: ChangeRequest): boolean {
  return change.kind !== 'addLearner' && change.memberId === self?.memberId;
}

/** An operator's flag, or an acceptance in the role for this member and this list. */
function mayGoWithoutRecord({ change, accepted, withoutRecord }: ChangeRequest, list: MemberList): boolean {
  if (withoutRecord === true || change.kind !== 'remove') return withoutRecord === true;
  const hash = listHash(list.clusterId, list.members, sha256);
  return isAccepted(accepted, { kind: 'without-record', memberId: change.memberId, listHash: hash });
}

function withoutRecordHint({ change }: ChangeRequest): string {
  if (change.kind !== 'remove') return '';
  return " If the member must go before that: the order with `--without-record` goes on etcd's own checks alone.";
}

/**
 * What the learner shows of itself in this very hearing: a plan that rests on an earlier one must not count its age twice, nor what was so
 * before. Undefined if it is not in sync now.
 */
function consentNow(change: Change, heard: Heard, nowMs: number): Change {
  if (change.kind !== 'promote' || change.consent === undefined) return change;
  const { consent, memberId } = change;
  const answer = newestAnswer(heard.answers, memberId);
  if (answer === undefined || answerFault(answer, { ...heard, nowMs }) !== undefined)
    return { ...change, consent: undefined };
  const stableForMs = consent.stableForMs + Math.max(0, answer.atMs - consent.atMs);
  return { ...change, consent: { stableForMs, atMs: answer.atMs } };
}
