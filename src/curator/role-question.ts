/** @pure file: what is asked when roles are granted or revoked, and what the answer can be. */

import type { AcceptedRisk } from '../etcd/accepted-risk.ts';
import type { MemberList } from '../etcd/member.ts';
import type { NodeSituation } from './node.ts';
import type { NodeMembership } from './node-members.ts';
import type { AssignedRole } from './records.ts';
import type { CuratorRefusal, ErrorReason } from './refusal.ts';
import type { LeftReport } from './role-left.ts';
import type { RoleRequirements } from './role-rules.ts';
import type { JudgedSafety } from './safety-reason.ts';
import type { UnderWay } from './under-way.ts';

/** What the heartbeats say. `unknown`: this curator leads too short to tell. `notExpected`: the node is not up. */
export type NodeHealth = 'unknown' | 'healthy' | 'silent' | 'notExpected';

/** What is wanted of the roles of one node, as one whole: all of it is done, or nothing. */
export interface RoleRequest {
  readonly grant: readonly string[];
  readonly revoke: readonly string[];
  /** Risks that the caller accepts. */
  readonly accept: readonly AcceptedRisk[];
}

/** What a new grant carries. It is made by the caller, since deciding has neither chance nor clock. */
export interface GrantStamp {
  /** Random. */
  readonly grantId: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly by: string;
}

/** What the cluster says, for a change of who is a member. */
export interface ConsensusFacts {
  readonly list: MemberList | undefined;
  /** Of this node, by that list. */
  readonly membership: NodeMembership;
  /** The curator that leads lives on this node. */
  readonly leadsCurator: boolean;
  /** The last that the node reported about an end of its membership; undefined: nothing. */
  readonly left: LeftReport | undefined;
  /** Of adding this node as a learner, which also knows whether the learner slot is free; undefined: it could not be judged. */
  readonly adding: JudgedSafety | undefined;
  /** Of removing this node's member; undefined: it could not be judged. */
  readonly removing: JudgedSafety | undefined;
}

/** All that the judgement rests on. */
export interface RoleQuestion extends NodeSituation {
  readonly health: NodeHealth;
  readonly underWay: UnderWay;
  readonly consensus: ConsensusFacts;
  readonly requires: RoleRequirements;
  readonly request: RoleRequest;
  readonly stamp: GrantStamp;
}

/** What a request changes; what is so already is left out. Both in the order in which they are done. */
export interface RoleChanges {
  readonly coming: readonly string[];
  readonly going: readonly string[];
}

/** One thing that has to be done, with a record of its own. */
export interface NeededOperation {
  readonly kind: 'grantRole' | 'revokeRole';
  readonly role: string;
  /** The member that it is about, hex; null: there is none yet. */
  readonly memberId: string | null;
  /** `atOnce`: it is done with the new roles. `byNode`: the node works it off, and its report ends it. */
  readonly ends: 'atOnce' | 'byNode';
  /** Leadership that has to move before the node leaves. */
  readonly handOver: { readonly raft: boolean; readonly curator: boolean };
  /** The refusals that were overridden, for the audit. */
  readonly bypassed: readonly ErrorReason[];
}

/** The answer. Nothing has changed until the caller writes the roles and the operations, in one transaction. */
export type RoleVerdict =
  | {
      readonly kind: 'allowed';
      /** All roles of the node from now on. */
      readonly roles: readonly AssignedRole[];
      /** In the order in which they are done. */
      readonly operations: readonly NeededOperation[];
      /** One sentence. */
      readonly text: string;
      /** What an operator should know besides, one sentence each. */
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'needless'; readonly because: string }
  | { readonly kind: 'refused'; readonly refusal: CuratorRefusal };
