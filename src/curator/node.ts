/** @pure file: the life of a node. The table says what each event does in each state; what must hold besides stands in node-leaving.ts. */

import { bypassedBy, type DeleteBypass, leavingFault, type NodePlace, rolesFault } from './node-leaving.ts';
import { type NodeRefusalName, nodeRefusal, otherKey } from './node-refusal.ts';
import type { NodeRecord, NodeState, Tombstone } from './records.ts';
import type { CuratorRefusal, ErrorReason } from './refusal.ts';

/** `absent`: nothing is known of it, which is never read as a deletion. `deleted`: a tombstone says so. */
export type NodeLife = 'absent' | NodeState | 'deleted';

/** What happens to a node, or is ordered of it. */
export type NodeEvent =
  /** The node makes itself known, with a ticket. */
  | { readonly kind: 'register'; readonly keyHash: string }
  /** By an operator. `keyHash`: the key that was seen on the node; undefined: not compared. */
  | { readonly kind: 'approve'; readonly keyHash: string | undefined }
  | { readonly kind: 'commit'; readonly keyHash: string }
  /** The node is there again after a restart. */
  | { readonly kind: 'rejoin'; readonly keyHash: string }
  /** By an operator. */
  | { readonly kind: 'requestDecommission'; readonly place: NodePlace }
  /** The node drains, and destroys its keys. */
  | { readonly kind: 'beginDecommission'; readonly keyHash: string }
  /** Nothing of the cluster is left on the node. */
  | { readonly kind: 'finishDecommission'; readonly keyHash: string }
  /** By an operator. */
  | { readonly kind: 'delete'; readonly place: NodePlace; readonly bypass: DeleteBypass };
export type NodeEventKind = NodeEvent['kind'];

/** A state to go to; `unchanged`: a safe repetition; or the name of a refusal. */
export type NodeCell = NodeState | 'deleted' | 'unchanged' | NodeRefusalName;
type Row = Readonly<Record<NodeEventKind, NodeCell>>;

// biome-ignore format: a table
export const nodeTransitions: Readonly<Record<NodeLife, Row>> = {
  //                         register      approve       commit         rejoin          requestDecommission      beginDecommission  finishDecommission delete
  absent:                row('new',        'notKnown',   'notKnown',    'notKnown',     'notKnown',              'notKnown',        'notKnown',        'notKnown'),
  new:                   row('unchanged',  'standby',    'notApproved', 'notApproved',  'neverUp',               'neverUp',         'neverUp',         'deleted'),
  standby:               row('unchanged',  'unchanged',  'up',          'notCommitted', 'neverUp',               'neverUp',         'neverUp',         'deleted'),
  up:                    row('unchanged',  'unchanged',  'unchanged',   'unchanged',    'decommissionRequested', 'notOrdered',      'notOrdered',      'deleted'),
  decommissionRequested: row('onItsWay',   'onItsWay',   'unchanged',   'unchanged',    'unchanged',             'decommissioning', 'notBegun',        'onItsWay'),
  decommissioning:       row('onItsWay',   'onItsWay',   'onItsWay',    'unchanged',    'unchanged',             'unchanged',       'decommissioned',  'onItsWay'),
  decommissioned:        row('isOver',     'isOver',     'isOver',      'isOver',       'unchanged',             'unchanged',       'unchanged',       'deleted'),
  deleted:               row('wasDeleted', 'wasDeleted', 'wasDeleted',  'wasDeleted',   'wasDeleted',            'wasDeleted',      'wasDeleted',      'unchanged'),
};

/** What the curator has of a node. */
export interface NodeSituation {
  readonly nodeId: string;
  readonly record: NodeRecord | undefined;
  /** All that name this node, or the key of the caller. */
  readonly tombstones: readonly Tombstone[];
}

export type NodeVerdict =
  | {
      readonly kind: 'moved';
      readonly state: NodeState | 'deleted';
      /** The refusals that a bypass has overridden, for the audit. */
      readonly bypassed: readonly ErrorReason[];
    }
  /** It is so already: a safe repetition. */
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly refusal: CuratorRefusal };

/** @pure What an event does to a node. Nothing has changed until the caller writes it. */
export function judgeNode(situation: NodeSituation, event: NodeEvent): NodeVerdict {
  const { nodeId, record } = situation;
  const fault = formFault(situation, event);
  if (fault !== undefined) return { kind: 'refused', refusal: fault };
  const life = lifeOf(situation, isOfNode(event) ? event.keyHash : undefined);
  const keyHash = 'keyHash' in event ? event.keyHash : undefined;
  if (life !== 'deleted' && record !== undefined && keyHash !== undefined && keyHash !== record.keyHash) {
    return { kind: 'refused', refusal: otherKey(nodeId) };
  }
  const cell = nodeTransitions[life][event.kind];
  const refusal = refusalOf(situation, event, life, cell);
  if (refusal !== undefined) return { kind: 'refused', refusal };
  if (!isState(cell)) return { kind: 'unchanged' };
  return { kind: 'moved', state: cell, bypassed: record === undefined ? [] : bypassedBy(record, event) };
}

/** A deletion is refused for roles first, then for the state, then for what no bypass overrides. */
function refusalOf(
  situation: NodeSituation,
  event: NodeEvent,
  life: NodeLife,
  cell: NodeCell,
): CuratorRefusal | undefined {
  const { record } = situation;
  const first = record !== undefined && event.kind === 'delete' ? rolesFault(record, event) : undefined;
  if (first !== undefined) return first;
  if (cell === 'unchanged') return undefined;
  if (!isState(cell)) return nodeRefusal(cell, event.kind, life, situation);
  return record === undefined ? undefined : leavingFault(record, event);
}

/**
 * @pure What a node is. A key that belonged to a deleted node is deleted under whatever name it comes. A machine that comes
 * back under an old name with a new key is another node.
 */
export function lifeOf({ record, tombstones }: NodeSituation, keyHash: string | undefined): NodeLife {
  if (keyHash !== undefined && tombstones.some((one) => one.keyHash === keyHash)) return 'deleted';
  if (record !== undefined) return record.state;
  return keyHash === undefined && tombstones.length > 0 ? 'deleted' : 'absent';
}

/** A name that can stand in a key of etcd, in a certificate and in a host name. */
const nodeIdForm = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const keyHashForm = /^[0-9a-f]{64}$/;

function formFault({ nodeId }: NodeSituation, event: NodeEvent): CuratorRefusal | undefined {
  if (!nodeIdForm.test(nodeId)) {
    const message = `${JSON.stringify(nodeId.slice(0, 64))} is no id of a node`;
    return { reason: 'invalidArgument', message, hint: 'Want 1 to 253 lower-case letters, digits, - and dots.' };
  }
  const keyHash = 'keyHash' in event ? event.keyHash : undefined;
  if (keyHash === undefined || keyHashForm.test(keyHash)) return undefined;
  const message = `the key of ${nodeId} is not given as 32 bytes`;
  return { reason: 'invalidArgument', message, hint: 'Want the SHA-256 of its public key.' };
}

type OfNode = NodeEvent & {
  readonly kind: 'register' | 'commit' | 'rejoin' | 'beginDecommission' | 'finishDecommission';
};

/** By the node itself, with its key. */
function isOfNode(event: NodeEvent): event is OfNode {
  return event.kind !== 'approve' && 'keyHash' in event;
}

const states: ReadonlySet<string> = new Set(Object.keys(nodeTransitions).filter((life) => life !== 'absent'));

function isState(cell: NodeCell): cell is NodeState | 'deleted' {
  return states.has(cell);
}

function row(
  register: NodeCell,
  approve: NodeCell,
  commit: NodeCell,
  rejoin: NodeCell,
  requestDecommission: NodeCell,
  beginDecommission: NodeCell,
  finishDecommission: NodeCell,
  remove: NodeCell,
): Row {
  return {
    register,
    approve,
    commit,
    rejoin,
    requestDecommission,
    beginDecommission,
    finishDecommission,
    delete: remove,
  };
}
