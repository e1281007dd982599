import { type Clock, delay } from '../../base/clock.ts';
import { AgentError, describeError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type AcceptedRisk, isAccepted, listHash } from '../../etcd/accepted-risk.ts';
import { type Member, type MemberId, memberById, votersOf } from '../../etcd/member.ts';
import { quorumOf } from '../../etcd/quorum.ts';
import { refusalHint } from '../../etcd/safety-hint.ts';
import type { Effects } from '../effects.ts';
import { OrderRefusedError } from '../order-refused.ts';
import type { ChildPort, ClusterPort, StopOrder } from '../ports.ts';
import type { AgentState } from '../state/agent-state.ts';
import type { IdentityRecord } from '../state/schemas.ts';
import { type ChangeLock, ChangeUnderWayError } from './change-lock.ts';
import { ChangeRefusedError, type ChangeRequest, type ClusterChanges } from './cluster-change.ts';
import { handOver, handOverMs } from './hand-over.ts';
import { ClusterSilentError, type Hearings, sha256 } from './hearing.ts';

/** etcd did not end, although it was killed: it hangs in the kernel. */
export class StopNotOverError extends AgentError {
  readonly code = 'STOP_NOT_OVER';
}

/** What is to be stopped how. */
export interface StopWish {
  /** `dump`: it writes its stacks first. */
  readonly how: 'stop' | 'dump';
  readonly order: StopOrder;
  /** An operator's `--force`: the check is overruled. */
  readonly force: boolean;
  /** Goes on without record and check where no quorum of the cluster answers. */
  readonly evenIfSilent: boolean;
  /** With the check done, before anything is done to etcd: the intent. */
  readonly intend?: () => void;
  /** It was intended, and etcd was not told: takes the intent back. */
  readonly takeBack?: () => void;
}

export interface StopsOptions {
  readonly child: ChildPort;
  readonly changes: ClusterChanges;
  readonly lock: ChangeLock;
  readonly cluster: ClusterPort;
  readonly hearings: Hearings;
  readonly effects: Effects;
  readonly state: AgentState;
  readonly clock: Clock;
  readonly log: Log;
  /** Where the own etcd serves its clients. */
  readonly clientUrl: () => string;
  readonly endpoints: () => readonly string[];
  readonly accepted: () => readonly AcceptedRisk[];
  /** Keeps how far the member has come, for the next start. Never throws. */
  readonly keepProgress: () => void;
  /** Tells the other agents that the stop begins; takes half a second at most, and never throws. */
  readonly announce: () => Promise<void>;
}

/** Why etcd is stopped, in the run intent: a next agent that goes on with it knows by this that it was forced. */
export const forcedStop = 'an operator stopped it (forced)';
/** The same without `--force`. */
export const orderedStop = 'an operator stopped it';

/** How long an operator's stop waits while somebody else changes the cluster. Unit: ms. */
const patienceMs = 30_000;
const askAgainMs = 500;
/** Beyond the grace, for KILL to be seen. Unit: ms. */
const afterKillMs = 10_000;
/** A record that was left is looked for at this pace while nobody answers. Unit: ms. */
const tidyAgainMs = 30_000;
/** The end of etcd is looked for at this pace. Unit: ms. */
const lookMs = 50;

/** Why a stop needs no change record, for the operator. */
type NoRecord = { readonly because: string };

/**
 * Every wanted stop of the own etcd. A voter among others takes the change record for the one stop, and the check is made while
 * it is held: of agents that stop at the same instant each counts who is left.
 */
export class Stops {
  readonly #options: StopsOptions;
  #waiting = 0;
  #withdrawals = 0;
  #shutdown: Promise<readonly string[]> | undefined;
  #tidied = false;
  #tidyDueMs = 0;

  constructor(options: StopsOptions) {
    this.#options = options;
  }

  /** A stop is ordered, and waits for somebody else's change. */
  get waiting(): boolean {
    return this.#waiting > 0;
  }

  /** What a stop would come to now, in sentences. Throws as {@link end} does; nothing is changed. */
  async judge({ force }: { readonly force: boolean }): Promise<readonly string[]> {
    const identity = await this.#voter();
    if ('because' in identity) return [identity.because];
    try {
      const { verdict, text } = await this.#options.changes.judge(this.#request(identity, force));
      if (verdict.kind === 'refused') throw new ChangeRefusedError(text, verdict, refusalHint(verdict.refusal));
      return [text];
    } catch (error) {
      if (!(error instanceof ClusterSilentError)) throw error;
      if (force || this.#acceptsSilence(identity)) return [silentText(identity)];
      throw silent(identity, error);
    }
  }

  /**
   * Ends etcd and returns once it is gone, with what was judged in sentences. Throws {@link ChangeUnderWayError}, ChangeRefusedError,
   * OrderRefusedError (no quorum answers) with nothing done; {@link StopNotOverError}.
   */
  async end(wish: StopWish): Promise<readonly string[]> {
    const identity = await this.#voter();
    let intended = false;
    let told = false;
    const intend = () => {
      intended = true;
      wish.intend?.();
    };
    const endChild = async () => {
      told = true;
      await this.#endChild(wish);
    };
    try {
      if ('because' in identity) {
        intend();
        await endChild();
        return [identity.because];
      }
      return await this.#withRecord(identity, wish, intend, endChild, () => told);
    } catch (error) {
      if (intended && !told) wish.takeBack?.();
      throw error;
    }
  }

  /**
   * The machine goes down: leadership is handed over if it leads, for 8 s at most, then TERM and grace. Takes no record and is never
   * refused; whoever asks while it is under way gets the same. Returns what was done, in sentences.
   */
  shutdown(order: StopOrder): Promise<readonly string[]> {
    this.#shutdown ??= this.#goDown(order).finally(() => {
      this.#shutdown = undefined;
    });
    return this.#shutdown;
  }

  async #goDown(order: StopOrder): Promise<readonly string[]> {
    const { child, clock, log } = this.#options;
    if (child.view().phase === 'down') return ['etcd does not run'];
    const untilMs = clock.monotonicMs() + handOverMs;
    void this.#options.announce();
    const handed = this.#leadershipGone(untilMs).catch((error: unknown) => {
      log.warn({ error: describeError(error) }, 'nobody took leadership over before the machine goes down');
      return 'nobody took leadership over; the others elect';
    });
    const said = await Promise.race([
      handed,
      delay(clock, handOverMs).then(() => 'leadership was not taken over in time; the others elect'),
    ]);
    try {
      await this.#endChild({ how: 'stop', order });
      return [said, 'etcd is stopped'];
    } catch (error) {
      if (!(error instanceof StopNotOverError)) throw error;
      return [said, describeError(error)];
    }
  }

  async #leadershipGone(untilMs: number): Promise<string> {
    const { state, cluster, hearings, clock, endpoints, accepted } = this.#options;
    const identity = state.knownIdentity();
    if (identity === undefined || !(await cluster.isLeader(1_000))) return 'it does not lead';
    const { memberId, clusterId } = identity;
    const heard = await hearings.hear({ endpoints: endpoints(), clusterId });
    const nowMs = clock.monotonicMs();
    const question = { ...heard, nowMs, accepted: accepted(), force: false, sha256 };
    const self = { memberId, endpoint: this.#options.clientUrl() };
    const moved = await handOver(this.#options, { self, question, untilMs });
    return moved ? 'leadership was handed over' : 'nobody took leadership over; the others elect';
  }

  /** The last order counts: a stop that still waits is not carried out after a `start`. */
  withdraw(): void {
    this.#withdrawals++;
  }

  /**
   * Asks again while somebody else changes the cluster, for 30 s; each time between two turns of the agent. Throws OrderRefusedError
   * when that is over, or when {@link withdraw} was called meanwhile.
   */
  async patiently<T>(attempt: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const withdrawals = this.#withdrawals;
    const until = clock.monotonicMs() + patienceMs;
    this.#waiting++;
    try {
      for (;;) {
        try {
          return await attempt();
        } catch (error) {
          if (!(error instanceof ChangeUnderWayError)) throw error;
          if (clock.monotonicMs() >= until) {
            throw new OrderRefusedError(`one change at a time, and for ${patienceMs / 1000} s now ${error.message}`, {
              cause: error,
              hint: 'Look at that node, and give the order again.',
            });
          }
        }
        await delay(clock, askAgainMs);
        if (this.#withdrawals !== withdrawals) {
          throw new OrderRefusedError('the stop waited, and `start` was ordered after it', {
            hint: 'Give the order again.',
          });
        }
      }
    } finally {
      this.#waiting--;
    }
  }

  /** Once: a record that an earlier agent of this node left in a stop is in nobody's way any longer. Never throws for a silent cluster. */
  async tidy(): Promise<void> {
    const { clock, lock, endpoints, state, child } = this.#options;
    const quiet = child.view().phase === 'starting' || this.#tidied || clock.monotonicMs() < this.#tidyDueMs;
    const identity = state.knownIdentity();
    if (quiet || identity === undefined || state.supervision().kind !== 'full') return;
    this.#tidyDueMs = clock.monotonicMs() + tidyAgainMs;
    try {
      await Promise.any(endpoints().map((endpoint) => lock.dropOwn(endpoint, identity.clusterId)));
      this.#tidied = true;
    } catch {
      // Nobody answers; the record goes by itself, and it is tried again.
    }
  }

  async #withRecord(
    identity: IdentityRecord,
    wish: StopWish,
    intend: () => void,
    endChild: () => Promise<void>,
    told: () => boolean,
  ): Promise<readonly string[]> {
    try {
      const { text } = await this.#options.changes.make({
        ...this.#request(identity, wish.force),
        beforeAct: async () => {
          intend();
          await this.#options.announce();
        },
        down: endChild,
        downMs: wish.order.graceMs + afterKillMs,
        withoutRecord: wish.force,
      });
      return [text];
    } catch (error) {
      const none = error instanceof ClusterSilentError;
      const goesOn = wish.force ? isNoVerdict(error) : none && (wish.evenIfSilent || this.#acceptsSilence(identity));
      if (told() || !goesOn) throw none && !told() ? silent(identity, error) : error;
      this.#options.log.warn({ error: describeError(error) }, 'etcd is stopped without the change record');
      intend();
      await endChild();
      return [silentText(identity)];
    }
  }

  /** The role accepts the loss of the quorum, by the list that was read last. */
  #acceptsSilence(identity: IdentityRecord): boolean {
    const { memberId } = identity;
    return isAccepted(this.#options.accepted(), { kind: 'quorum-loss', memberId, listHash: lastListHash(identity) });
  }

  /** The own voter among others, or why no record is needed. */
  async #voter(): Promise<IdentityRecord | NoRecord> {
    const { child, state } = this.#options;
    if (child.view().phase === 'down') return { because: 'etcd does not run' };
    const identity = state.knownIdentity();
    if (identity === undefined) return { because: 'this node has no recorded identity, so nobody can be asked' };
    const { memberId } = identity;
    if (isAmongOthers(identity.lastVoters, memberId)) return identity;
    // What was recorded may be old: a vote, or another voter, may have come since.
    const voters = (await this.#votersNow(identity)) ?? identity.lastVoters;
    if (isAmongOthers(voters, memberId)) return identity;
    return memberById(voters, memberId) === undefined
      ? { because: 'it has no vote, so neither the change record nor a check is needed' }
      : { because: 'it is the only voter: the cluster is away while it is stopped' };
  }

  /** Undefined: nobody gives a list that a quorum confirmed. */
  async #votersNow({ clusterId }: IdentityRecord): Promise<readonly Member[] | undefined> {
    const { hearings, endpoints, clientUrl } = this.#options;
    const asked = [...new Set([...endpoints(), clientUrl()])];
    try {
      return votersOf((await hearings.hear({ endpoints: asked, clusterId })).list.members);
    } catch (error) {
      if (error instanceof AgentError) return undefined;
      throw error;
    }
  }

  #request({ memberId, clusterId }: IdentityRecord, force: boolean): ChangeRequest {
    const { endpoints, accepted, clientUrl } = this.#options;
    return {
      change: { kind: 'down', memberId },
      endpoints: endpoints(),
      clusterId,
      accepted: accepted(),
      force,
      self: { memberId, endpoint: clientUrl() },
    };
  }

  async #endChild({ how, order }: Pick<StopWish, 'how' | 'order'>): Promise<void> {
    const { child, clock } = this.#options;
    if (child.view().phase === 'down') return;
    const { life } = child.view();
    this.#options.keepProgress();
    await child[how](order);
    const until = clock.monotonicMs() + order.graceMs + afterKillMs;
    for (;;) {
      const view = child.view();
      if (view.phase === 'down' || view.life !== life) return;
      if (clock.monotonicMs() >= until) {
        throw new StopNotOverError(`etcd was killed and has not ended (${view.trouble || 'no reason is known'})`, {
          hint: 'It may hang in the kernel (its disk). The change record expires by itself.',
        });
      }
      await delay(clock, lookMs);
    }
  }
}

/** It votes, and it is not the only one. */
function isAmongOthers(voters: readonly Member[], memberId: MemberId): boolean {
  return voters.length > 1 && memberById(voters, memberId) !== undefined;
}

/** It says nothing about whether the others could go on, so a forced stop goes on without it. */
function isNoVerdict(error: unknown): boolean {
  return error instanceof AgentError && !(error instanceof ChangeUnderWayError);
}

function silentText({ lastVoters }: IdentityRecord): string {
  return `no quorum (${quorumOf(lastVoters.length)} of ${lastVoters.length} voters) answers: it is stopped without the change record and without a check`;
}

function lastListHash({ clusterId, lastMembers }: IdentityRecord): string {
  return listHash(clusterId, lastMembers, sha256);
}

function silent(identity: IdentityRecord, cause: unknown): OrderRefusedError {
  const { name, lastVoters } = identity;
  const [voters, quorum] = [lastVoters.length, quorumOf(lastVoters.length)];
  return new OrderRefusedError(
    `stopping ${name} is refused: no quorum (${quorum} of ${voters} voters) answers, so nobody can say who else is up; to accept that: quorum-loss for this member, list ${lastListHash(identity)}`,
    { cause, hint: refusalHint({ kind: 'quorum-loss', needed: quorum }) },
  );
}
