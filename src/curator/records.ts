/** @pure file: what the curator keeps in etcd, as JSON (docs/curator-state.md). */

import * as z from 'zod';

const hexId = z.string().regex(/^[0-9a-f]{1,16}$/);
const time = z.iso.datetime();
const identity = z.string().max(2048);

/** NEW → STANDBY → UP → DECOMMISSION_REQUESTED → DECOMMISSIONING → DECOMMISSIONED; then the record is gone and a tombstone stands. */
export const nodeStates = [
  'new',
  'standby',
  'up',
  'decommissionRequested',
  'decommissioning',
  'decommissioned',
] as const;
export type NodeState = (typeof nodeStates)[number];

/** A risk that an operator accepted, for one member and one member list. */
export const riskSchema = z.object({ kind: z.string(), memberId: hexId, listHash: z.string() });

/** A role that a node has, or is losing. */
export const assignedRoleSchema = z.object({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/),
  /** `leaving`: revoked, and the node works it off; only its report clears it. */
  state: z.enum(['granted', 'leaving']),
  /** Random; another one with each grant. */
  grantId: z.string().min(1).max(128),
  grantedAt: time,
  grantedBy: identity,
  accept: z.array(riskSchema).max(16),
});
export type AssignedRole = z.infer<typeof assignedRoleSchema>;

export const nodeSchema = z.object({
  nodeId: z.string().min(1).max(253),
  state: z.enum(nodeStates),
  /** SHA-256 of the node's public key (SubjectPublicKeyInfo), hex. */
  keyHash: z.string().regex(/^[0-9a-f]{64}$/),
  ticketId: z.string(),
  peerUrls: z.array(z.string()).max(8),
  clientUrls: z.array(z.string()).max(8),
  registeredAt: time,
  roles: z.array(assignedRoleSchema).max(32),
  /** Order of what the node is told: goes up by one with each change of it, within the epoch of the cluster. */
  generation: z.int().min(0),
});
export type NodeRecord = z.infer<typeof nodeSchema>;

/** A node that was deleted; it names the cluster, so that nobody takes another curator's ignorance for a deletion. */
export const tombstoneSchema = z.object({
  nodeId: z.string(),
  clusterId: hexId,
  keyHash: z.string(),
  deletedAt: time,
  deletedBy: identity,
});
export type Tombstone = z.infer<typeof tombstoneSchema>;

export const operationKinds = [
  'grantRole',
  'revokeRole',
  'cleanUpNode',
  'decommissionNode',
  'deleteNode',
  'repair',
] as const;
export type OperationKind = (typeof operationKinds)[number];

export const stepSchema = z.object({
  name: z.string(),
  state: z.enum(['waiting', 'running', 'done', 'failed', 'skipped']),
  detail: z.string(),
  at: time.nullable(),
});

/** An intent of an operator, carried out step by step by whatever curator leads. */
export const operationSchema = z.object({
  operationId: z.string(),
  kind: z.enum(operationKinds),
  nodeId: z.string(),
  /** Empty: it is about no role. */
  role: z.string(),
  /** The member it is about, hex; null while it has none. */
  memberId: hexId.nullable(),
  state: z.enum(['running', 'done', 'failed']),
  steps: z.array(stepSchema).max(16),
  /** Why it does not go on for the moment, with numbers; empty while it does. */
  blocked: z.string(),
  hint: z.string(),
  orderedBy: identity,
  orderedAt: time,
  endedAt: time.nullable(),
  accept: z.array(riskSchema).max(16),
  /** The refusals that were overridden, for the audit. */
  bypassed: z.array(z.string()).max(8),
});
export type OperationRecord = z.infer<typeof operationSchema>;

export const transitions = ['founded', 'added', 'promoted', 'removed', 'urlsChanged'] as const;
export type Transition = (typeof transitions)[number];

/** One report of a change of membership. */
export const witnessSchema = z.object({
  nodeId: z.string(),
  certainty: z.enum(['observed', 'inferred']),
  at: time,
  stream: z.string(),
  seq: z.int().min(1),
});
export type Witness = z.infer<typeof witnessSchema>;

/** One committed change of the membership: what several nodes reported of it, merged. */
export const membershipChangeSchema = z.object({
  /** From 1, in the order of commitment, never used again. */
  number: z.int().min(1),
  clusterId: hexId,
  memberId: hexId,
  transition: z.enum(transitions),
  /** Tells two changes of the same URLs apart; 0 where there can be one alone. */
  occurrence: z.int().min(0),
  /** Empty where no report named it. */
  nodeId: z.string(),
  peerUrls: z.array(z.string()),
  certainty: z.enum(['observed', 'inferred']),
  first: witnessSchema,
  confirmed: z.array(witnessSchema),
  /** The operation that made it; empty if it was none of ours. */
  operationId: z.string(),
});
export type MembershipChange = z.infer<typeof membershipChangeSchema>;
