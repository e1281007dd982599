/** @pure file: what is asked about a change of membership or a stop, and what the answer can be. */

import type { AcceptedRisk, Sha256 } from './accepted-risk.ts';
import type { Member, MemberId } from './member.ts';
import type { Hearing, Standing, Voter } from './survivors.ts';

/** What is wanted. */
export type WantedChange =
  | { readonly kind: 'addLearner'; readonly peerUrl: string }
  | { readonly kind: 'promote'; readonly memberId: MemberId; readonly consent: LearnerConsent | undefined }
  /**
   * `provenDead`: no answering voter is connected to it, by a majority of them. Then a dead voter may go although not one
   * more may fail afterwards: it is so already.
   */
  | { readonly kind: 'remove'; readonly memberId: MemberId; readonly provenDead: boolean }
  /** A stop, restart or reboot: the voter stays in the list and counts for the quorum. */
  | { readonly kind: 'down'; readonly memberId: MemberId }
  | { readonly kind: 'moveLeader'; readonly target: MemberId };

/** What the agent of a learner says about it; its Status stands among the answers. */
export interface LearnerConsent {
  /** For how long it has been ready, answering and in sync without a break. Unit: ms. */
  readonly stableForMs: number;
  /** When its agent said so. Monotonic, ms. */
  readonly atMs: number;
}

/** What one agent says of its member in the member's key. `unknown`: it has said nothing for 3 minutes. */
export type Activity = 'active' | 'draining' | 'stopping' | 'paused' | 'unknown';

/** All that the judgement rests on. Times are monotonic, ms. */
export interface SafetyQuestion extends Hearing {
  readonly wanted: WantedChange;
  /** When the list was read. */
  readonly listAtMs: number;
  /** By member; who is missing is `unknown`. */
  readonly activities: ReadonlyMap<MemberId, Activity>;
  readonly accepted: readonly AcceptedRisk[];
  /** An operator said `--force`. It overrides the refusals of a stop, and nothing else. */
  readonly force: boolean;
  /** How many learners the cluster may have. Default 1; more only from 3.6 on with `--max-learners`. */
  readonly maxLearners?: number;
  readonly sha256: Sha256;
}

/** A cluster in numbers. */
export interface ClusterNumbers {
  readonly voters: number;
  readonly quorum: number;
  /** How many voters may fail when all are well. */
  readonly tolerance: number;
  /** How many voters count now. */
  readonly counted: number;
}

/** What a verdict rests on. */
export interface SafetyNumbers {
  readonly before: ClusterNumbers;
  /** Undefined: there would be no voter. */
  readonly after: ClusterNumbers | undefined;
  readonly voters: readonly Voter[];
  /** Names the list, for an acceptance. */
  readonly listHash: string;
}

/** Why not. */
export type Refusal =
  | { readonly kind: 'listUnconfirmed' }
  | { readonly kind: 'listOld'; readonly ageMs: number }
  /** No leader answered (lately), or the list does not have it as a voter. */
  | { readonly kind: 'noLeader' }
  /** The voters that count now cannot commit the change. */
  | { readonly kind: 'noQuorum'; readonly needed: number; readonly counted: number; readonly voters: number }
  | { readonly kind: 'noSuchMember' }
  | { readonly kind: 'lastVoter' }
  /** Those that count now would be no quorum of the voters that remain. */
  | { readonly kind: 'quorumOfRest'; readonly needed: number }
  /** The other voters that count now are no quorum of all voters. Overridden by `--force` or an acceptance. */
  | { readonly kind: 'quorum-loss'; readonly needed: number }
  /** Not one more voter could fail afterwards. Overridden by an acceptance. */
  | { readonly kind: 'zero-tolerance' }
  | { readonly kind: 'learnerSlotTaken'; readonly by: readonly Member[]; readonly max: number }
  | { readonly kind: 'peerUrlTaken'; readonly by: Member }
  /** Its own agent has not said that it may vote, or said it too long ago. */
  | { readonly kind: 'noConsent' }
  /** Its own Status says why it must not vote yet. */
  | { readonly kind: 'learnerNotReady'; readonly standing: Standing }
  | { readonly kind: 'learnerNotStable'; readonly stableForMs: number; readonly neededMs: number }
  /** The target of a hand-over is a learner. */
  | { readonly kind: 'targetIsLearner' }
  | { readonly kind: 'targetDoesNotCount'; readonly standing: Standing }
  | { readonly kind: 'targetNotActive'; readonly activity: Activity };

/** What may be done, and on which numbers that rests. */
export type SafetyVerdict =
  | {
      readonly kind: 'allowed';
      readonly numbers: SafetyNumbers;
      /** It leads: leadership is moved before it goes. */
      readonly handOverFirst: boolean;
      /** What was overridden, for the audit: undefined if nothing was. */
      readonly overridden: { readonly refusal: Refusal; readonly by: 'force' | 'accept' } | undefined;
    }
  /** It is so already. */
  | { readonly kind: 'needless'; readonly numbers: SafetyNumbers }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly numbers: SafetyNumbers };
