import type { Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { TlsFiles } from '../pki/tls-files.ts';
import { EtcdCallError } from './call.ts';
import type { EtcdClient } from './client.ts';
import { EtcdHttpError, type HttpAnswer, httpGet } from './http-get.ts';
import { type ClusterId, formatId, type MemberId } from './member.ts';
import type { AnswerHeader } from './member-list.ts';
import { type EtcdMetrics, etcdMetricsOf } from './metrics.ts';

/** Whom to ask. Nothing here ever asks for Status: in flight at the moment of a removal it makes etcd panic. */
export interface HealthOptions {
  /** A URL of `--listen-metrics-urls`: the only side that answers before the member is ready. */
  readonly metricsUrl: string;
  /** Needed for https. */
  readonly tls?: TlsFiles | undefined;
  readonly clock: Clock;
  /** Unit: ms. Default {@link livenessDeadlineMs} and {@link readinessDeadlineMs}. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Whether the process answers. `alive` and not healthy is still an answer of a living process. */
export type Liveness =
  | { readonly kind: 'alive'; readonly healthy: true }
  | { readonly kind: 'alive'; readonly healthy: false; readonly because: string }
  /** No answer in time. */
  | { readonly kind: 'silent'; readonly because: string }
  /** Something answered that is not etcd. */
  | { readonly kind: 'stranger'; readonly because: string };

/** Unit: ms. */
export const livenessDeadlineMs = 3_000;
/** Unit: ms, for all questions of one readiness check together. */
export const readinessDeadlineMs = 5_000;

/**
 * Asks whether the process lives. On 3.4 the answer depends on a quorum (it does not know `serializable`): without one it
 * is "not healthy", never "silent". It does not tell *whose* process answered; {@link askReadiness} does. Never throws
 * for what the other side does; throws RefusedUrlError and TlsFileError, which are ours.
 */
export async function askLiveness(options: HealthOptions): Promise<Liveness> {
  const answer = await ask(options, '/health?serializable=true', options.deadlineMs ?? livenessDeadlineMs);
  return typeof answer === 'string' ? { kind: 'silent', because: answer } : livenessOf(answer);
}

/** Who the member must be. An id that is not known yet (before the founding is done) is left out. */
export interface ExpectedIdentity {
  readonly memberId?: MemberId | undefined;
  readonly clusterId?: ClusterId | undefined;
}

/** Whether the member does its work, and who it is. */
export type Readiness =
  | {
      readonly kind: 'ready';
      readonly memberId: MemberId;
      readonly clusterId: ClusterId;
      readonly isLearner: boolean;
      readonly isLeader: boolean;
      readonly metrics: EtcdMetrics;
    }
  /** It answers, or may answer soon, and cannot serve now. */
  | { readonly kind: 'notReady'; readonly because: string }
  /** Another member or another cluster answers on our port. */
  | { readonly kind: 'stranger'; readonly because: string };

/**
 * Ready is: own member id and cluster id (from the header of a read of its own data, and from its metrics), a leader, and
 * for a voter a read that a quorum confirms. `client` dials the same member. Throws only what {@link askLiveness} throws.
 */
export async function askReadiness(
  options: HealthOptions & { readonly client: EtcdClient; readonly expected: ExpectedIdentity },
): Promise<Readiness> {
  const { client, expected, clock, signal } = options;
  const until = clock.monotonicMs() + (options.deadlineMs ?? readinessDeadlineMs);
  const left = () => ({ deadlineMs: Math.max(1, until - clock.monotonicMs()), signal });

  const local = await headerOf(() => client.serializableRead(left()));
  if (typeof local === 'string') return { kind: 'notReady', because: local };
  const stranger = whyStranger(local, expected);
  if (stranger !== undefined) return { kind: 'stranger', because: stranger };

  const metrics = await askMetrics({ ...options, deadlineMs: left().deadlineMs });
  if (typeof metrics === 'string') return { kind: 'notReady', because: metrics };
  if (metrics.memberId !== undefined && metrics.memberId !== local.memberId) {
    const whose = `the metrics at ${options.metricsUrl} are those of member ${formatId(metrics.memberId)}`;
    return { kind: 'stranger', because: `${whose}, reads are answered by ${formatId(local.memberId)}` };
  }
  const { hasLeader, isLearner, isLeader } = metrics;
  if (hasLeader === undefined || isLearner === undefined || isLeader === undefined) {
    return { kind: 'notReady', because: 'its metrics do not say whether there is a leader and whether it has a vote' };
  }
  if (!hasLeader) return { kind: 'notReady', because: 'it knows no leader' };
  if (!isLearner) {
    const confirmed = await headerOf(() => client.linearizableRead(left()));
    if (typeof confirmed === 'string') return { kind: 'notReady', because: `no quorum confirms a read: ${confirmed}` };
    const other = whyStranger(confirmed, local);
    if (other !== undefined) return { kind: 'stranger', because: other };
  }
  return { kind: 'ready', memberId: local.memberId, clusterId: local.clusterId, isLearner, isLeader, metrics };
}

/** The member's metrics, or why there are none. Throws only what {@link askLiveness} throws. */
export async function askMetrics(options: HealthOptions): Promise<EtcdMetrics | string> {
  const answer = await ask(options, '/metrics', options.deadlineMs ?? livenessDeadlineMs);
  if (typeof answer === 'string') return answer;
  if (answer.status !== 200) return `GET ${options.metricsUrl}/metrics: status ${answer.status}`;
  return etcdMetricsOf(answer.body);
}

/** @pure What an answer of `/health` means. */
export function livenessOf({ status, body }: Pick<HttpAnswer, 'status' | 'body'>): Liveness {
  const health = healthOf(body);
  if (health === undefined) return { kind: 'stranger', because: `status ${status} without etcd's health in it` };
  if (status === 200 && health.healthy) return { kind: 'alive', healthy: true };
  // 3.4 gives no reason.
  return {
    kind: 'alive',
    healthy: false,
    because: health.reason === '' ? `status ${status}, no reason given` : health.reason,
  };
}

function healthOf(body: string): { healthy: boolean; reason: string } | undefined {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== 'object' || value === null || !('health' in value)) return undefined;
    if (value.health !== 'true' && value.health !== 'false') return undefined;
    const reason = 'reason' in value && typeof value.reason === 'string' ? value.reason.slice(0, 500) : '';
    return { healthy: value.health === 'true', reason };
  } catch {
    return undefined;
  }
}

function whyStranger(header: AnswerHeader, expected: ExpectedIdentity): string | undefined {
  const { memberId, clusterId } = header;
  if (expected.clusterId !== undefined && expected.clusterId !== clusterId) {
    return `cluster ${formatId(clusterId)} answers, ours is ${formatId(expected.clusterId)}`;
  }
  if (expected.memberId !== undefined && expected.memberId !== memberId) {
    return `member ${formatId(memberId)} answers, ours is ${formatId(expected.memberId)}`;
  }
  return undefined;
}

/** The answer, or in words why there is none. */
async function ask(options: HealthOptions, path: string, deadlineMs: number): Promise<HttpAnswer | string> {
  const { metricsUrl, tls, clock, signal } = options;
  try {
    return await httpGet({ baseUrl: metricsUrl, path, tls, clock, signal, deadlineMs, maxBytes: longestAnswer });
  } catch (error) {
    if (error instanceof EtcdHttpError) return describeError(error);
    throw error;
  }
}

async function headerOf(read: () => Promise<AnswerHeader>): Promise<AnswerHeader | string> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof EtcdCallError) return error.message;
    throw error;
  }
}

/** etcd's metrics are 150 to 180 KiB; with many users of many methods more. Unit: bytes. */
const longestAnswer = 4 * 1_048_576;
