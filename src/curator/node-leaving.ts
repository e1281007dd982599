/** @pure file: what keeps a node from being decommissioned or deleted, besides its state. */

import type { NodeEvent } from './node.ts';
import type { AssignedRole, NodeRecord } from './records.ts';
import type { CuratorRefusal, ErrorReason } from './refusal.ts';
import { consensusMember } from './role-rules.ts';

/** Where a node stands in the consensus cluster, and whether it leads. */
export interface NodePlace {
  /** `lastVoter`: without it there is no cluster. `unknown`: the list is not known, or no member can be told to be the node's. */
  readonly consensus: 'unknown' | 'none' | 'learner' | 'voter' | 'lastVoter';
  readonly leadsRaft: boolean | 'unknown';
  /** The curator that leads lives on it. */
  readonly leadsCurator: boolean;
}

/** What an operator overrides by order. It is audited. */
export interface DeleteBypass {
  readonly hasRoles: boolean;
  readonly notDecommissioned: boolean;
}

type DeleteEvent = NodeEvent & { readonly kind: 'delete' };

/** @pure The roles that a node must not have when it is deleted. One that it is losing counts. */
export function rolesFault(record: NodeRecord, { bypass }: DeleteEvent): CuratorRefusal | undefined {
  return bypass.hasRoles ? undefined : hasRoles(record);
}

/** @pure Why a node that may go by its state does not go. */
export function leavingFault(record: NodeRecord, event: NodeEvent): CuratorRefusal | undefined {
  switch (event.kind) {
    case 'delete':
      return deleteFault(record, event);
    case 'requestDecommission':
      return hasRoles(record) ?? memberFault(record, event.place);
    case 'beginDecommission':
    case 'finishDecommission':
      return hasRoles(record);
    case 'register':
    case 'approve':
    case 'commit':
    case 'rejoin':
      return undefined;
  }
}

/** @pure The refusals that a deletion has overridden. */
export function bypassedBy(record: NodeRecord, event: NodeEvent): readonly ErrorReason[] {
  if (event.kind !== 'delete') return [];
  const bypassed: ErrorReason[] = [];
  if (record.roles.length > 0) bypassed.push('hasRoles');
  if (record.state === 'up') bypassed.push('notDecommissioned');
  return bypassed;
}

function deleteFault(record: NodeRecord, { place, bypass }: DeleteEvent): CuratorRefusal | undefined {
  const { nodeId, state } = record;
  if (state === 'up' && !bypass.notDecommissioned) {
    return {
      reason: 'notDecommissioned',
      message: `${nodeId} is UP and was not decommissioned`,
      hint: 'Decommission it first. If it burned down, clean it up. With the bypass, keep its machine off, and wipe it.',
    };
  }
  return placeFault(nodeId, place);
}

/** What no bypass overrides. */
function placeFault(nodeId: string, place: NodePlace): CuratorRefusal | undefined {
  if (place.consensus === 'unknown') return placeUnknown(nodeId);
  if (place.consensus === 'lastVoter') {
    return {
      reason: 'lastVoter',
      message: `${nodeId} is the last voter, and a cluster without a voter is lost`,
      hint: 'Make another node a consensus member first. To end the cluster for good, retire its last member on the node.',
    };
  }
  if (place.leadsCurator) return leads(nodeId, 'the curator that leads lives on it');
  if (place.consensus === 'none' || place.consensus === 'learner') return undefined;
  if (place.leadsRaft === 'unknown') {
    const message = `${nodeId} votes, and it is not known whether it leads`;
    return { reason: 'noQuorum', message, hint: 'Ask again when the cluster has a leader.' };
  }
  return place.leadsRaft ? leads(nodeId, 'its etcd leads the cluster') : undefined;
}

function leads(nodeId: string, because: string): CuratorRefusal {
  return {
    reason: 'leads',
    message: `${nodeId} leads: ${because}`,
    hint: 'Hand leadership over first, or revoke its role: that hands over by itself.',
  };
}

/** A member whose node has no role for it is no state to begin from: the keys would go before the vote does. */
function memberFault({ nodeId }: NodeRecord, { consensus }: NodePlace): CuratorRefusal | undefined {
  if (consensus === 'unknown') return placeUnknown(nodeId);
  if (consensus === 'none') return undefined;
  return {
    reason: 'hasRoles',
    message: `${nodeId} is still a member of the consensus cluster`,
    hint: `It gets the role ${consensusMember} back by itself; revoke that, and ask again.`,
  };
}

function placeUnknown(nodeId: string): CuratorRefusal {
  return {
    reason: 'etcdSilent',
    message: `it is not known whether ${nodeId} is a member of the consensus cluster`,
    hint: 'Ask again when etcd answers and each member belongs to one node.',
  };
}

function hasRoles({ nodeId, roles }: NodeRecord): CuratorRefusal | undefined {
  if (roles.length === 0) return undefined;
  const first = roles.filter(({ name }) => name === consensusMember);
  const others = roles.filter(({ name }) => name !== consensusMember);
  return {
    reason: 'hasRoles',
    message: `${nodeId} still has ${[...first, ...others].map(roleText).join(', ')}`,
    hint: 'Revoke its roles first. One that is leaving is gone when its node has reported; a node that burned down is cleaned up.',
  };
}

function roleText({ name, state }: AssignedRole): string {
  return state === 'leaving' ? `${name} (leaving)` : name;
}
