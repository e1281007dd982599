/** @pure file: what helps when the safety check says no. */

import type { Refusal } from './safety-question.ts';

/** @pure One sentence for an operator. */
export function refusalHint(refusal: Refusal): string {
  switch (refusal.kind) {
    case 'zero-tolerance':
      return 'Add a voter first, or accept the risk: `etcd-node-agent leave --accept-zero-tolerance`, or `accept` in the role document.';
    case 'lastVoter':
      return 'To end the cluster for good: `etcd-node-agent retire --last-member CLUSTER-ID`.';
    case 'quorum-loss':
      return 'Bring the other voters back first, or add a voter; or add --force, or accept it in the role document. If the quorum is lost already, see docs/runbook.md, "a lost quorum".';
    case 'noLeader':
    case 'noQuorum':
    case 'quorumOfRest':
      return 'Bring the other voters back first. If the quorum is lost, see docs/runbook.md, "a lost quorum".';
    case 'learnerSlotTaken':
      return 'The agent asks again by itself. A learner that never starts: `etcd-node-agent members evict ID`.';
    case 'peerUrlTaken':
      return 'If that is the etcd of this node, started by somebody else: `etcd-node-agent adopt --dry-run`. Otherwise give this node another peer URL, or, if it is a dead one, remove that member: `etcd-node-agent members evict ID`.';
    default:
      return 'The agent asks again by itself.';
  }
}
