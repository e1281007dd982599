/** @pure file: why an event does not fit the state of a node, in words. */

import type { NodeEventKind, NodeLife, NodeSituation } from './node.ts';
import type { NodeState } from './records.ts';
import type { CuratorRefusal, ErrorReason } from './refusal.ts';

/** The refusals of the table in node.ts. */
export type NodeRefusalName =
  | 'notKnown'
  | 'wasDeleted'
  | 'notApproved'
  | 'notCommitted'
  /** It is not UP yet, so there is nothing to decommission. */
  | 'neverUp'
  | 'notOrdered'
  | 'notBegun'
  /** On its way out. */
  | 'onItsWay'
  | 'isOver';

interface RefusalText {
  readonly reason: ErrorReason;
  readonly because: string;
  readonly hint: string;
}

const texts: Readonly<Record<NodeRefusalName, RefusalText>> = {
  notKnown: {
    reason: 'notFound',
    because: 'this curator knows no such node',
    hint: 'A node makes itself known with a ticket. Was the curator restored from an old copy?',
  },
  wasDeleted: {
    reason: 'deleted',
    because: 'it was deleted',
    hint: 'The machine comes back as a new node: wipe it, and register it with a new key and a new ticket.',
  },
  notApproved: { reason: 'wrongState', because: 'nobody has approved it', hint: 'Approve the node first.' },
  notCommitted: {
    reason: 'wrongState',
    because: 'it was approved and has not committed yet',
    hint: 'Its agent commits by itself; if it does not, look at its log.',
  },
  neverUp: {
    reason: 'wrongState',
    because: 'it has never been up, so nothing of the cluster is on it',
    hint: 'Such a node is deleted without more ado.',
  },
  notOrdered: { reason: 'wrongState', because: 'nobody has ordered it', hint: 'Order the decommissioning first.' },
  notBegun: {
    reason: 'wrongState',
    because: 'it has not said that it began',
    hint: 'The node reports its beginning first.',
  },
  onItsWay: {
    reason: 'wrongState',
    because: 'it is being decommissioned',
    hint: 'Wait until it is decommissioned. If it died on the way, clean it up.',
  },
  isOver: {
    reason: 'wrongState',
    because: 'it was decommissioned, and nothing of the cluster is left on it',
    hint: 'Delete it. The machine comes back as a new node: with a new key and a new ticket.',
  },
};

const acts: Readonly<Record<NodeEventKind, string>> = {
  register: 'be registered',
  approve: 'be approved',
  commit: 'commit',
  rejoin: 'rejoin',
  requestDecommission: 'be decommissioned',
  beginDecommission: 'begin its decommissioning',
  finishDecommission: 'end its decommissioning',
  delete: 'be deleted',
};

/** @pure The refusal in words: what cannot be, why, and what helps. */
export function nodeRefusal(
  name: NodeRefusalName,
  event: NodeEventKind,
  life: NodeLife,
  { nodeId, tombstones }: Pick<NodeSituation, 'nodeId' | 'tombstones'>,
): CuratorRefusal {
  const { reason, because, hint } = texts[name];
  const [tombstone] = tombstones;
  const shown = life === 'absent' || life === 'deleted' ? '' : ` (${stateText(life)})`;
  const from = life === 'deleted' && tombstone !== undefined ? ` from cluster ${tombstone.clusterId}` : '';
  return { reason, message: `${nodeId} cannot ${acts[event]}: ${because}${from}${shown}`, hint };
}

/** @pure The refusal of an order for a node of which there is no record. */
export function unknownNode({ nodeId, tombstones }: Pick<NodeSituation, 'nodeId' | 'tombstones'>): CuratorRefusal {
  const [tombstone] = tombstones;
  const { reason, hint } = tombstone === undefined ? texts.notKnown : texts.wasDeleted;
  const message = tombstone === undefined ? `this curator knows no node ${nodeId}` : `${nodeId} was deleted`;
  return { reason, message, hint };
}

/** @pure The refusal of a node that comes, or was seen, with another key than the one that is registered. */
export function otherKey(nodeId: string): CuratorRefusal {
  return {
    reason: 'otherKey',
    message: `${nodeId} is registered with another key`,
    hint: 'If its machine was installed anew, delete the old node first. If not, somebody else uses its name.',
  };
}

/** @pure `DECOMMISSION_REQUESTED`: a state as the contract writes it. */
export function stateText(state: NodeState): string {
  return state.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}
