import * as z from 'zod';
import { formatId } from '../../etcd/member.ts';

/** An id of etcd: hex in the file, bigint in the program. */
export const hexId = z.codec(z.string().regex(/^[0-9a-f]{1,16}$/), z.bigint(), {
  decode: (text) => BigInt(`0x${text}`),
  encode: (id) => formatId(id),
});

const member = z.object({
  id: hexId,
  name: z.string(),
  peerUrls: z.array(z.string()),
  clientUrls: z.array(z.string()),
  isLearner: z.boolean(),
});

/** Which member of which cluster this node is. A copy of it lies beside the data directory. */
export const identitySchema = z.object({
  nodeId: z.string(),
  clusterName: z.string(),
  clusterId: hexId,
  memberId: hexId,
  name: z.string(),
  peerUrl: z.string(),
  /** The grant under which this membership came to be; empty where it was founded or adopted without a role. */
  grantId: z.string(),
  /** `name=peerURL,…` and the token, as etcd was given them at its first start; ignored by etcd once it has a WAL. */
  initialCluster: z.string(),
  initialClusterToken: z.string(),
  lastVoters: z.array(member),
  /** The last linearizable list as a whole, for changes that happen while the agent is away. */
  lastMembers: z.array(member),
});
export type IdentityRecord = z.output<typeof identitySchema>;

/** The one founding of this node. It goes from `prepared` to `done` and never back. */
export const foundingSchema = z.object({
  state: z.enum(['prepared', 'pending', 'started', 'done']),
  /** Random, made once, durable: a founder that lost its disk has another one. */
  nonce: z.string().regex(/^[0-9a-f]{32}$/),
  /** The lines `name peerURL nonce` of all founders, sorted; empty while only prepared. */
  lines: z.array(z.string()),
  /** etcd's cluster token: the hash of all lines. */
  token: z.string(),
  clusterId: hexId.nullable(),
  memberId: hexId.nullable(),
});
export type FoundingRecord = z.output<typeof foundingSchema>;

/**
 * This node's way into a cluster: `intended` before the add, `added` once the identity is recorded, `started` right before the
 * first start of etcd, `done` once it was ready; `expired` once its learner, which never started, was taken out again. Replaced by the next join.
 */
export const joinSchema = z.object({
  state: z.enum(['intended', 'added', 'started', 'done', 'givenUp', 'expired']),
  /** Random; stands in the mark of the new data directory. */
  operation: z.string(),
  clusterId: hexId,
  peerUrl: z.string(),
  /** Known from `added` on. */
  memberId: hexId.nullable(),
  grantId: z.string(),
  /** Of the intent; from `added` on, of the adding; of `expired`, of that. */
  at: z.string(),
});
export type JoinRecord = z.output<typeof joinSchema>;

/**
 * This node's own removal of its member: `intended` while its fate is not known, `removed` once the call was answered or read back (proof,
 * together with the id), `refused` once it is known that it did not come to be.
 */
export const leaveSchema = z.object({
  state: z.enum(['intended', 'removed', 'refused']),
  clusterId: hexId,
  memberId: hexId,
  /** The grant that ends with it. By the time of the tombstone the role document may carry the next one. */
  grantId: z.string(),
  because: z.string(),
  at: z.string(),
  /** The whole cluster ends with it, and this node may found another one (`retire`). */
  retires: z.boolean(),
});
export type LeaveRecord = z.output<typeof leaveSchema>;

const decimal = z.codec(z.string().regex(/^\d{1,20}$/), z.bigint(), {
  decode: (text) => BigInt(text),
  encode: (number) => number.toString(),
});

/** How far the member had come for certain: its Status of the poll before last. Compared with the end of its log before a start. */
export const progressSchema = z.object({
  clusterId: hexId,
  memberId: hexId,
  term: decimal,
  appliedIndex: decimal,
  /** An operator's word: a log that is behind this may be started. */
  accepted: z.object({ term: decimal, appliedIndex: decimal, at: z.string() }).nullable(),
  at: z.string(),
});
export type ProgressRecord = z.output<typeof progressSchema>;

/** Members of this node that were removed: their ids never start again. */
export const tombstonesSchema = z.array(
  z.object({
    clusterId: hexId,
    memberId: hexId,
    grantId: z.string(),
    at: z.string(),
    evidence: z.array(z.string()),
    /** Where the data went; empty until it is archived. */
    archive: z.string(),
    /** It was the last member, and its cluster ended with it: this node may found another one. */
    retired: z.boolean().default(false),
  }),
);
export type Tombstone = z.output<typeof tombstonesSchema>[number];

/** The marker of the data volume: its twin lies in the data root. */
export const volumeSchema = z.object({
  marker: z.string(),
  dataRoot: z.string(),
  /** Whether the data root lay on a volume of its own when the marker was written. */
  ownVolume: z.boolean(),
});

export const pauseSchema = z.object({ until: z.string(), reason: z.string() });

/** An operator's word on a removal that could not be proven. */
export const verdictSchema = z.object({
  memberId: hexId,
  verdict: z.enum(['confirmed', 'rejected']),
  at: z.string(),
  /** The life of etcd that was the newest when the operator spoke: a later life may raise the question anew. */
  life: z.number(),
});

/** Whether etcd is to run. This format never changes: an older or newer agent reads it as well. */
export const runIntentSchema = z.object({
  intent: z.enum(['run', 'stopped', 'held', 'removed']),
  clusterId: z.string(),
  memberId: z.string(),
  because: z.string(),
  at: z.string(),
});
export type RunIntentRecord = z.output<typeof runIntentSchema>;

const reportedMember = z.object({
  memberId: z.string(),
  name: z.string(),
  peerUrls: z.array(z.string()),
  learner: z.boolean(),
});

/** What upstream has been told, and up to which fact that is counted in. See agent/reported.ts. */
export const reportedSchema = z.object({
  place: z.object({ stream: z.string(), seq: z.number() }).nullable(),
  members: z.record(z.string(), reportedMember).nullable(),
  leaderId: z.string(),
  exitedLife: z.number(),
  readyLife: z.number(),
  removedSelves: z.array(z.string()),
  unconfirmed: z.array(z.string()),
  archivedPaths: z.array(z.string()),
  // What an older agent did not write down has a default: its record is read all the same.
  removedArchives: z.array(z.string()).default([]),
  foundedClusters: z.array(z.string()),
  alarms: z.array(z.string()).default([]),
  missingVolume: z.string().default(''),
  roleDocument: z.string().default(''),
  rolePlan: z.string().default(''),
});

/** How lives of etcd ended, oldest first: what the restart policy counts and `status` shows. */
export const endsSchema = z.array(
  z.object({
    life: z.number(),
    /** The member that this node was then, in hex; empty where none was recorded. */
    memberId: z.string().default(''),
    class: z.string(),
    because: z.string(),
    code: z.number().nullable(),
    signal: z.string().nullable(),
    panicSeen: z.boolean(),
    startedAtMs: z.number(),
    readyAtMs: z.number().nullable(),
    /** Null: nobody recorded it (the machine or the keeper died first). */
    endedAtMs: z.number().nullable(),
    /** When the agent learned of it. */
    noticedAtMs: z.number().default(0),
    /** What etcd was started with: a hold until the configuration changes ends when this differs. */
    startedWith: z.string(),
  }),
);
export type EndRecord = z.output<typeof endsSchema>[number];

const moment = z.object({ wallMs: z.number(), monotonicMs: z.number(), epoch: z.string() });

/** What the restart policy remembers (supervisor/restart-policy.ts), so that a new agent goes on counting. */
export const restartsSchema = z.object({
  inRow: z.number(),
  last: z
    .union([
      z.object({ kind: z.literal('restart') }),
      z.object({ kind: z.literal('retry'), firstMs: z.number(), maxMs: z.number() }),
      z.object({ kind: z.literal('hold'), until: z.string() }),
      z.object({ kind: z.literal('terminal') }),
      z.object({ kind: z.literal('asked') }),
    ])
    .nullable(),
  endedAt: moment.nullable(),
  delayMs: z.number(),
  restarts: z.array(moment),
  exhausted: z.boolean(),
  /** What the life after `afterLife` was started with, written before it was. */
  lastStart: z.object({ afterLife: z.number(), startedWith: z.string() }).nullable().default(null),
});
