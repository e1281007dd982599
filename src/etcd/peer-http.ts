import * as z from 'zod';
import type { Clock } from '../base/clock.ts';
import type { TlsFiles } from '../pki/tls-files.ts';
import { EtcdHttpError, type HttpAnswer, httpGet } from './http-get.ts';
import { type ClusterId, type Member, parseId } from './member.ts';
import { sortedById } from './member-list.ts';

/** How a member's peer side is asked. */
export interface PeerHttpOptions {
  /** `https://10.0.0.1:2380` */
  readonly peerUrl: string;
  /** The peer certificate; needed for https. */
  readonly tls?: TlsFiles | undefined;
  readonly clock: Clock;
  /** Unit: ms. Default 2 000. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** One member's own view of its cluster, which may be old. It is answered without a quorum and before the member is ready. */
export interface PeerView {
  readonly clusterId: ClusterId;
  readonly members: readonly Member[];
}

/** The versions that a member names on its peer side. */
export interface PeerVersion {
  /** Of its binary: `3.5.30`. */
  readonly server: string;
  /** Of the cluster: `3.5.0`; undefined while the cluster has not decided on one. */
  readonly cluster: string | undefined;
}

/**
 * Asks a member's peer side who is in the cluster. Reads without touching raft: it can neither wait for a quorum nor make
 * etcd panic. Throws EtcdHttpError, RefusedUrlError (nothing was sent) or TlsFileError.
 */
export async function askPeerMembers(options: PeerHttpOptions): Promise<PeerView> {
  const answer = await get(options, '/members');
  const header = answer.headers['x-etcd-cluster-id'];
  const clusterId = typeof header === 'string' ? parseId(header) : undefined;
  const members = membersSchema.safeParse(parseKeepingIds(answer.body));
  if (clusterId === undefined || clusterId === 0n || !members.success) {
    throw new EtcdHttpError(`${options.peerUrl}/members`, 'the answer is not that of an etcd member', members.error);
  }
  return { clusterId, members: sortedById(members.data) };
}

/** Asks a member's peer side for its versions. Throws as {@link askPeerMembers}. */
export async function askPeerVersion(options: PeerHttpOptions): Promise<PeerVersion> {
  const answer = await get(options, '/version');
  const version = versionSchema.safeParse(parseKeepingIds(answer.body));
  if (!version.success) {
    throw new EtcdHttpError(`${options.peerUrl}/version`, 'the answer is not that of an etcd member', version.error);
  }
  const { etcdserver, etcdcluster } = version.data;
  return { server: etcdserver, cluster: etcdcluster === 'not_decided' ? undefined : etcdcluster };
}

async function get(options: PeerHttpOptions, path: string): Promise<HttpAnswer> {
  const { peerUrl, tls, clock, deadlineMs, signal } = options;
  const answer = await httpGet({ baseUrl: peerUrl, path, tls, clock, signal, deadlineMs: deadlineMs ?? 2_000 });
  if (answer.status !== 200) throw new EtcdHttpError(`${peerUrl}${path}`, `status ${answer.status}`);
  return answer;
}

const urls = z.array(z.string().max(2_048)).max(64);

/** Ids stand there as decimal numbers of up to 64 bits. */
const membersSchema = z
  .array(
    z.object({
      id: z.bigint().min(1n).max(0xffff_ffff_ffff_ffffn),
      name: z.string().max(1_024).default(''),
      peerURLs: urls,
      clientURLs: urls.default([]),
      isLearner: z.boolean().default(false),
    }),
  )
  .min(1)
  .max(1_000)
  .transform((list) =>
    list.map(({ id, name, peerURLs, clientURLs, isLearner }): Member => {
      return { id, name, peerUrls: peerURLs, clientUrls: clientURLs, isLearner };
    }),
  );

const versionSchema = z.object({ etcdserver: z.string().max(64), etcdcluster: z.string().max(64) });

/** JSON with every whole number as bigint: a member id does not fit into a double. Undefined if it is no JSON. */
function parseKeepingIds(text: string): unknown {
  // TypeScript's own declaration of the reviver lacks the third argument, which Node has had since 21.
  const reviver = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
    typeof value === 'number' && /^\d{1,20}$/.test(context?.source ?? '') ? BigInt(context?.source ?? '') : value;
  try {
    return JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}
