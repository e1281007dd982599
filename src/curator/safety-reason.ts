/** @pure file: what the safety check refuses, as the curator says it. */

import type { Refusal, SafetyVerdict } from '../etcd/safety-question.ts';
import type { CuratorRefusal, ErrorReason } from './refusal.ts';

/** A verdict of `judgeChange`, with its sentence (`describeSafety`). */
export interface JudgedSafety {
  readonly verdict: SafetyVerdict;
  readonly text: string;
}

/** @pure The refusal of an operator's call; undefined if the change may be made, or is made already. */
export function safetyRefusal({ verdict, text }: JudgedSafety): CuratorRefusal | undefined {
  if (verdict.kind !== 'refused') return undefined;
  const reason = reasonOf(verdict.refusal);
  return { reason, message: text, hint: hintOf(reason) };
}

/** @pure The reason of the contract for a refusal of the safety check. */
export function reasonOf(refusal: Refusal): ErrorReason {
  switch (refusal.kind) {
    case 'listUnconfirmed':
    case 'noLeader':
    case 'noQuorum':
      return 'noQuorum';
    case 'listOld':
      return 'etcdSilent';
    case 'noSuchMember':
      return 'notFound';
    case 'lastVoter':
      return 'lastVoter';
    case 'quorumOfRest':
    case 'quorum-loss':
      return 'quorumLoss';
    case 'zero-tolerance':
      return 'zeroTolerance';
    case 'learnerSlotTaken':
      return 'learnerSlotTaken';
    case 'noConsent':
      return 'nodeSilent';
    // The contract has no reason of its own for these; the sentence says which it is.
    case 'peerUrlTaken':
    case 'learnerNotReady':
    case 'learnerNotStable':
    case 'targetIsLearner':
    case 'targetDoesNotCount':
    case 'targetNotActive':
      return 'wrongState';
  }
}

function hintOf(reason: ErrorReason): string {
  switch (reason) {
    case 'zeroTolerance':
      return 'Make another node a consensus member first, or accept the risk (accept zero tolerance).';
    case 'lastVoter':
      return 'Make another node a consensus member first. To end the cluster for good, retire its last member on the node.';
    case 'noQuorum':
    case 'quorumLoss':
      return 'Bring the other voters back first. If the quorum is lost, see docs/runbook.md, "a lost quorum".';
    case 'learnerSlotTaken':
      return 'Wait until that learner votes. If it never starts, revoke the role of its node, or clean the node up.';
    default:
      return 'Ask again in a moment.';
  }
}
