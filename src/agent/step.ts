/** @pure file: every step, every plan, every blocker. */

import type { ClusterId, MemberId } from '../etcd/member.ts';
import type { LearnerConsent, Refusal } from '../etcd/safety-question.ts';

/** Everything this agent can do to the world. A new ability begins as a new line here. */
export type Step =
  /** Checks the peers, writes the identity file into the new data directory, records `started`. */
  | { readonly kind: 'beginFounding' }
  /** Starts etcd as a founder: state `new`, only while it has no data of its own. */
  | { readonly kind: 'startFounder' }
  /** Moves a founder's log without any record aside, so that etcd begins anew; the founding goes on. */
  | { readonly kind: 'setEmptyLogAside' }
  /** Records that the founding is over, once the cluster has committed. */
  | { readonly kind: 'completeFounding' }
  /** Asks the other voters who is in the cluster: a removed member must not be started. */
  | { readonly kind: 'askPeers' }
  /** Starts etcd on the data that this node's member has. */
  | { readonly kind: 'startMember' }
  /** TERM, grace, KILL. */
  | { readonly kind: 'stopEtcd' }
  /** Makes etcd write its goroutines to its log, then ends it; the next turn starts it anew. */
  | { readonly kind: 'restartStuck' }
  /** Ends an etcd that waits for a data directory which another process holds: it would wait for ever. */
  | { readonly kind: 'stopLocked' }
  /** Writes the tombstone and reports the removal. */
  | { readonly kind: 'recordRemoval'; readonly evidence: readonly string[] }
  /** Moves the data of the removed member aside, whole, with its reason. */
  | { readonly kind: 'archiveData' }
  /** Adds this node to the cluster as a learner, with its intent written before. */
  | { readonly kind: 'addLearner' }
  /** Records the learner that carries our peer URL and our intent as this node's member. */
  | { readonly kind: 'takeUpLearner'; readonly memberId: MemberId }
  /** Puts the mark of the join into the new data directory and records `started`. */
  | { readonly kind: 'beginJoin' }
  /** Starts etcd as a joiner, with the members as they are now. */
  | { readonly kind: 'startJoiner' }
  /** Records that the join is over, once etcd was ready. */
  | { readonly kind: 'completeJoin' }
  /** Takes the learner of a join that is no longer wanted out again, and forgets the intent. */
  | { readonly kind: 'cancelJoin'; readonly memberId: MemberId | undefined }
  /** Takes our learner, whose etcd never started, out again: it holds the one slot for learners. */
  | { readonly kind: 'expireJoin' }
  /** Gives our learner its vote. */
  | { readonly kind: 'promoteSelf'; readonly consent: LearnerConsent }
  /** Registers the peer URL that the configuration names, once our own listener answers there. */
  | { readonly kind: 'updatePeerUrl'; readonly peerUrl: string }
  /** Hands leadership over if it leads, then removes the own member through another voter. `grantId`: the grant that ends with it. */
  | { readonly kind: 'removeSelf'; readonly grantId: string }
  /** Finds out what became of a change in which an agent of this node was interrupted, and clears its record. */
  | { readonly kind: 'resolveChange' }
  /** Makes a hold durable, so that it outlives the agent. */
  | { readonly kind: 'recordHold'; readonly class: string };

export type Plan =
  | { readonly kind: 'converged'; readonly because: string }
  | { readonly kind: 'act'; readonly step: Step; readonly because: string }
  /** Nothing to do but to look again, at the latest in `inMs`. */
  | { readonly kind: 'waiting'; readonly because: string; readonly inMs: number }
  | { readonly kind: 'blocked'; readonly by: Blocker };

/** Why a wanted step is not taken. Each has a sentence and a remedy in blockers.ts. */
export type Blocker =
  | { readonly kind: 'superviseOnly'; readonly because: string; readonly lost?: true }
  | { readonly kind: 'volumeMissing'; readonly path: string }
  | { readonly kind: 'volumeUnknown'; readonly because: string }
  | { readonly kind: 'stoppedByOperator'; readonly because: string }
  | { readonly kind: 'shuttingDown'; readonly because: string }
  | { readonly kind: 'intentUnknown'; readonly because: string }
  | { readonly kind: 'held'; readonly class: string; readonly until: string; readonly because: string }
  /** `retired`: it was the last one, and its cluster ended with it. */
  | { readonly kind: 'removedByOthers'; readonly memberId: MemberId | undefined; readonly retired?: boolean }
  | { readonly kind: 'removalUnconfirmed'; readonly because: string }
  | { readonly kind: 'dataNotOurs'; readonly clusterId: ClusterId; readonly memberId: MemberId }
  | { readonly kind: 'dataOfAnotherMember'; readonly clusterId: ClusterId; readonly memberId: MemberId }
  | { readonly kind: 'dataBroken'; readonly because: string }
  | { readonly kind: 'dataUnknown'; readonly because: string }
  | { readonly kind: 'logRegressed'; readonly memberId: MemberId; readonly because: string }
  | { readonly kind: 'diskLost'; readonly memberId: MemberId }
  | { readonly kind: 'processUnknown'; readonly because: string }
  | { readonly kind: 'preflight'; readonly problems: readonly string[]; readonly hint: string }
  | { readonly kind: 'roleUnknown'; readonly because: string }
  | { readonly kind: 'notAMember' }
  | { readonly kind: 'paused'; readonly what: string }
  | { readonly kind: 'clusterSilent'; readonly because: string; readonly hint: string }
  | { readonly kind: 'oldMemberListed'; readonly memberId: MemberId }
  | { readonly kind: 'joinExpired'; readonly inMs: number }
  | { readonly kind: 'spaceForJoin'; readonly neededBytes: number; readonly freeBytes: number | undefined }
  /** The safety check says no; one sentence with its numbers. */
  | {
      readonly kind: 'changeRefused';
      readonly refusal: Refusal['kind'];
      readonly because: string;
      readonly hint: string;
    };
