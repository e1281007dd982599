import type { Clock } from '../base/clock.ts';
import type { Evidence } from '../etcd/evidence.ts';
import type { MemberId } from '../etcd/member.ts';
import { type RemovalProof, removalProof } from '../etcd/removal-proof.ts';
import { mayStartUnconfirmed } from '../etcd/start-rule.ts';
import type { RemovalSeen } from './observed.ts';
import type { Peers } from './peers.ts';
import { listHas } from './peers.ts';
import type { AgentState } from './state/agent-state.ts';
import type { IdentityRecord, Tombstone } from './state/schemas.ts';

/** How long a removed etcd may take to end by itself before it is stopped. Unit: ms. */
const ownExitMs = 5_000;
/**
 * How long a proven removal waits for etcd's end, so that the end stands in the report. Once etcd has applied its removal it
 * ends within about 1.1 s; what only the others say, it may never learn. Unit: ms.
 */
const ripenMs = { applied: 3_000, told: 1_000 };

/** What one turn knows about the process when it asks whether this member was removed. */
export interface RemovalMoment {
  readonly identity: IdentityRecord | undefined;
  readonly evidence: Evidence;
  readonly processUp: boolean;
  /** It serves, or did in this life, with the ids that were expected: whoever is removed never gets that far. */
  readonly ready: boolean;
  /** The newest life of etcd. */
  readonly life: number;
  /** The life whose end was classed as an unconfirmed removal, if none has become ready since. */
  readonly unconfirmedLife: number | undefined;
}

/** Follows whether this node's member was removed by others: from suspicion to proof, and never by silence. */
export class RemovalWatch {
  readonly #state: AgentState;
  readonly #peers: Peers;
  readonly #clock: Clock;
  readonly #wasReported: (memberId: MemberId) => boolean;
  #latest: RemovalSeen['kind'] = 'none';
  #provenSinceMs: number | undefined;
  #suspectedSince: { readonly life: number; readonly atMs: number } | undefined;
  /** A list lacked us while etcd was down, and none that has us came since. Neither silence nor a start takes that back. */
  #lackedUs = false;

  constructor(options: {
    readonly state: AgentState;
    readonly peers: Peers;
    readonly clock: Clock;
    /** Whether the removal of this own member was reported upstream. */
    readonly wasReported: (memberId: MemberId) => boolean;
  }) {
    this.#state = options.state;
    this.#peers = options.peers;
    this.#clock = options.clock;
    this.#wasReported = options.wasReported;
  }

  /** What the last look found. */
  get latest(): RemovalSeen['kind'] {
    return this.#latest;
  }

  look(moment: RemovalMoment): RemovalSeen {
    const seen = this.#look(moment);
    this.#latest = seen.kind;
    return seen;
  }

  #look(moment: RemovalMoment): RemovalSeen {
    const { identity } = moment;
    if (identity === undefined) return { kind: 'none' };
    const tombstone = this.#tombstone(identity);
    if (tombstone !== undefined) return this.#proven(tombstone.evidence, moment, tombstone);
    const proof = this.proof(moment);
    if (proof.kind === 'proven') return this.#proven(proof.evidence, moment, undefined);
    this.#provenSinceMs = undefined;
    return this.#suspicion(moment, proof);
  }

  /** What is known, before anybody's patience is asked. An operator's word counts as proof. */
  proof(moment: RemovalMoment): RemovalProof {
    const { identity, evidence } = moment;
    if (identity === undefined) return { kind: 'unknown' };
    const word = this.#operatorsWord(identity);
    if (word?.verdict === 'confirmed') return { kind: 'proven', evidence: [`an operator confirmed it (${word.at})`] };
    return removalProof({
      ownId: identity.memberId,
      clusterId: identity.clusterId,
      evidence,
      ownRemovalJournalled: this.#state.hasLeft(identity),
      lists: this.#peers.latestAbout(identity.memberId)?.lists ?? [],
      lastKnownVoters: identity.lastVoters.map((voter) => voter.id),
    });
  }

  #proven(evidence: readonly string[], moment: RemovalMoment, tombstone: Tombstone | undefined): RemovalSeen {
    const now = this.#clock.monotonicMs();
    this.#provenSinceMs ??= now;
    const waitedMs = now - this.#provenSinceMs;
    return {
      kind: 'proven',
      evidence,
      ripe:
        !moment.processUp || waitedMs >= (moment.evidence.ownRemoval === undefined ? ripenMs.told : ripenMs.applied),
      recorded: tombstone !== undefined && this.#isRecorded(tombstone),
      exitOverdue: moment.processUp && waitedMs >= ownExitMs,
      archived: tombstone !== undefined && tombstone.archive !== '',
      retired: tombstone?.retired === true,
    };
  }

  /** All that a tombstone stands for is done: a crash between its writing and the report, or the run intent, is made good. */
  #isRecorded({ archive, memberId }: Tombstone): boolean {
    if (archive !== '') return true;
    const intent = this.#state.runIntent();
    return this.#wasReported(memberId) && intent.kind === 'ok' && intent.value.intent === 'removed';
  }

  /** An end that spoke of a removal, or a list that lacks us: either forbids or delays a start, and proves nothing. */
  #suspicion(moment: RemovalMoment, proof: RemovalProof): RemovalSeen {
    const { identity } = moment;
    const lists = this.#peers.latestAbout(identity?.memberId)?.lists ?? [];
    const lacking = identity !== undefined && lists.some((list) => !listHas(list, identity.memberId));
    // A start that tries it raises no question of its own, and keeps the one that there is.
    if (!moment.processUp) this.#lackedUs = lacking || (this.#lackedUs && lists.length === 0);
    const refuted = moment.ready || (moment.processUp && lists.length > 0 && !lacking);
    if (identity === undefined || refuted || !this.#isOpen(identity, moment)) {
      this.#suspectedSince = undefined;
      this.#lackedUs = false;
      return { kind: 'none' };
    }
    const now = this.#clock.monotonicMs();
    // Each life raises the question anew, also one that was over before a turn saw it.
    if (this.#suspectedSince?.life !== moment.life) this.#suspectedSince = { life: moment.life, atMs: now };
    const words = proof.kind === 'unknown' ? [] : proof.evidence;
    const { memberId: ownId, clusterId } = identity;
    const silentForMs = now - Math.max(this.#suspectedSince.atMs, this.#peers.lastAnswerMs ?? Number.NEGATIVE_INFINITY);
    const answer = mayStartUnconfirmed({ ownId, clusterId, lists, silentForMs });
    return {
      kind: 'suspected',
      // Said once: a list that lacks us may be among the words already.
      because: (saysSo(words, answer) ? words : [...words, answer.because]).join('; '),
      start: answer.start ? 'now' : lacking ? 'forbidden' : 'wait',
    };
  }

  /** An operator's rejection counts for the ends and lists that were known then; a later one raises the question anew. */
  #isOpen(identity: IdentityRecord, { unconfirmedLife, life }: RemovalMoment): boolean {
    const word = this.#operatorsWord(identity);
    const isAnswered = (of: number) => word?.verdict === 'rejected' && word.life >= of;
    return (unconfirmedLife !== undefined && !isAnswered(unconfirmedLife)) || (this.#lackedUs && !isAnswered(life));
  }

  #tombstone(identity: IdentityRecord): Tombstone | undefined {
    const reading = this.#state.tombstones.read();
    if (reading.kind !== 'ok') return undefined;
    return reading.value.find(
      (stone) => stone.memberId === identity.memberId && stone.clusterId === identity.clusterId,
    );
  }

  #operatorsWord(
    identity: IdentityRecord,
  ): { verdict: 'confirmed' | 'rejected'; at: string; life: number } | undefined {
    const reading = this.#state.verdict.read();
    return reading.kind === 'ok' && reading.value.memberId === identity.memberId ? reading.value : undefined;
  }
}

function saysSo(words: readonly string[], { because }: { readonly because: string }): boolean {
  return because.endsWith(' lacks us') && words.some((word) => /^the list of .* lacks us/.test(word));
}
