/** @pure file: a fact as a CloudEvent (docs/reports.md). Source of the format: CloudEvents 1.0, JSON event format. */

import type { JsonObject, StoredFact } from './fact.ts';

/** One event of a batch. Names of extension attributes are lower-case letters, as CloudEvents demands. */
export interface CloudEvent {
  readonly specversion: '1.0';
  /** The fact's own id: the same however often it is sent. */
  readonly id: string;
  /** `/nodes/NODE/streams/STREAM`; with {@link id} it is unique, as CloudEvents demands. */
  readonly source: string;
  /** `etcd-node-agent.` and the kind, for example `etcd-node-agent.member.removed`. */
  readonly type: string;
  readonly time: string;
  readonly datacontenttype: 'application/json';
  readonly data: JsonObject;
  readonly node: string;
  readonly stream: string;
  readonly seq: number;
  /** The first number that it stands for; present only in a gap that stands for several. */
  readonly fromseq?: number;
  readonly certainty: 'observed' | 'inferred';
  readonly cluster?: string;
  readonly member?: string;
  /** Size of the data before it was cut to the limit. Unit: bytes. */
  readonly cutfrombytes?: number;
}

/** The content type of a batch. */
export const batchContentType = 'application/cloudevents-batch+json; charset=utf-8';

/** @pure The event for `fact` of node `nodeId`. */
export function toCloudEvent(fact: StoredFact, nodeId: string): CloudEvent {
  return {
    specversion: '1.0',
    id: fact.id,
    source: `/nodes/${encodeURIComponent(nodeId)}/streams/${fact.stream}`,
    type: `etcd-node-agent.${fact.kind}`,
    time: fact.at,
    datacontenttype: 'application/json',
    node: nodeId,
    stream: fact.stream,
    seq: fact.seq,
    ...(fact.from !== fact.seq && { fromseq: fact.from }),
    certainty: fact.certainty,
    ...(fact.cluster !== undefined && { cluster: fact.cluster }),
    ...(fact.member !== undefined && { member: fact.member }),
    ...(fact.cutFromBytes !== undefined && { cutfrombytes: fact.cutFromBytes }),
    data: fact.data,
  };
}
