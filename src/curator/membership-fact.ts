/** @pure file: what one report of a node says of the membership of its cluster. */

import * as z from 'zod';
import type { HistoryWitness } from './history-entry.ts';
import type { StreamRecord } from './intake.ts';

/** A report of a node, as it was stored. */
export interface NodeReport {
  readonly nodeId: string;
  readonly stream: string;
  readonly seq: number;
  readonly kind: string;
  readonly certainty: 'observed' | 'inferred';
  /** ISO 8601, by the node's clock. */
  readonly at: string;
  /** Hex; empty if the node belonged to no cluster then. */
  readonly clusterId: string;
  /** The node's own member. Hex; empty if it had none. */
  readonly memberId: string;
  readonly data: unknown;
  /** Two reports of its stream have one number ({@link StreamRecord.besides}): it repeats itself, and its order counts no more. */
  readonly forked: boolean;
}

/** What a report says of one member. */
export interface MembershipFact {
  readonly what: 'founded' | 'joined' | 'added' | 'promoted' | 'removed' | 'urlsChanged';
  readonly clusterId: string;
  readonly memberId: string;
  /** The node that runs the member; empty if the report does not tell. */
  readonly nodeId: string;
  /** The member was a learner when the reporter saw it last. */
  readonly learner: boolean;
  /** Its peer URLs then; empty if the report does not tell. */
  readonly peerUrls: readonly string[];
  /** With `urlsChanged`: the peer URLs that the reporter knew before. */
  readonly urlsBefore: readonly string[];
  readonly witness: HistoryWitness;
  /** See {@link NodeReport.forked}. */
  readonly forked: boolean;
}

/** What a report is to the history. */
export type FactReading =
  | { readonly kind: 'fact'; readonly fact: MembershipFact }
  /** It says nothing of a committed change. */
  | { readonly kind: 'none' }
  /** It should, and cannot be read: the history may lack a change. */
  | { readonly kind: 'unreadable'; readonly because: string };

const hexId = z.string().regex(/^[1-9a-f][0-9a-f]{0,15}$/);
const urls = z.array(z.string().max(2_048)).max(64);
const order = z.int().min(0).default(0);
const member = z.object({ memberId: hexId, peerUrls: urls, learner: z.boolean() });

/**
 * The data of the reports that count here, as src/agent/events.ts has them. `order` stands beside the member: of two reports of one
 * stream the one with the lower number tells of the change that was committed first; the same number: found together, and nobody
 * knows; absent or 0: it says nothing. The number of a report says less: it is the order in which the node noticed, and one look at the
 * list may find several changes.
 */
const schemas = {
  'member.added': z.object({ member, order }),
  'member.promoted': z.object({ member, order }),
  'member.urlsChanged': z.object({ member, before: urls, order }),
  'member.removed': z.object({ member, self: z.boolean(), order }),
  'member.joined': z.object({ clusterId: hexId, memberId: hexId }),
  'cluster.founded': z.object({ clusterId: hexId, memberId: hexId }),
} as const;

/** @pure What `report` says of the membership. */
export function readFact(report: NodeReport): FactReading {
  switch (report.kind) {
    case 'member.added':
      return read(report, schemas[report.kind], (data) => ofMember(report, 'added', data));
    case 'member.promoted':
      return read(report, schemas[report.kind], (data) => ofMember(report, 'promoted', data));
    case 'member.urlsChanged':
      return read(report, schemas[report.kind], (data) => ({
        ...ofMember(report, 'urlsChanged', data),
        urlsBefore: data.before,
      }));
    case 'member.removed':
      return read(report, schemas[report.kind], (data) => {
        const fact = ofMember(report, 'removed', data);
        return data.self ? { ...fact, nodeId: report.nodeId } : fact;
      });
    case 'member.joined':
      // The agent joins as a learner only. That the add was applied is concluded from its member being there.
      return read(report, schemas[report.kind], (data) => ofSelf(report, 'joined', data, 'inferred'));
    case 'cluster.founded':
      return read(report, schemas[report.kind], (data) => ofSelf(report, 'founded', data, report.certainty));
    default:
      return { kind: 'none' };
  }
}

function read<Data>(report: NodeReport, schema: z.ZodType<Data>, factOf: (data: Data) => MembershipFact): FactReading {
  const parsed = schema.safeParse(report.data);
  const place = `report ${report.stream}/${report.seq} of node ${report.nodeId} (${report.kind})`;
  if (!parsed.success)
    return { kind: 'unreadable', because: `${place} cannot be read: ${z.prettifyError(parsed.error)}` };
  const fact = factOf(parsed.data);
  if (fact.clusterId === '') return { kind: 'unreadable', because: `${place} names no cluster` };
  return { kind: 'fact', fact };
}

function ofMember(
  report: NodeReport,
  what: MembershipFact['what'],
  data: { readonly member: z.infer<typeof member>; readonly order: number },
): MembershipFact {
  const { memberId, learner, peerUrls } = data.member;
  return {
    what,
    clusterId: report.clusterId,
    memberId,
    nodeId: memberId === report.memberId ? report.nodeId : '',
    learner,
    peerUrls,
    urlsBefore: [],
    witness: witnessOf(report, report.certainty, data.order),
    forked: report.forked,
  };
}

function ofSelf(
  report: NodeReport,
  what: 'joined' | 'founded',
  { clusterId, memberId }: { readonly clusterId: string; readonly memberId: string },
  certainty: HistoryWitness['certainty'],
): MembershipFact {
  return {
    what,
    clusterId,
    memberId,
    nodeId: report.nodeId,
    learner: what === 'joined',
    peerUrls: [],
    urlsBefore: [],
    witness: witnessOf(report, certainty, 0),
    forked: report.forked,
  };
}

function witnessOf(
  { nodeId, at, stream, seq, forked }: NodeReport,
  certainty: HistoryWitness['certainty'],
  order: number,
): HistoryWitness {
  return { nodeId, certainty, at, stream, seq, order: forked ? 0 : order };
}
