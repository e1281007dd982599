/** @pure file: what etcd itself gives as the reason of its end. */

import type { Evidence } from './evidence.ts';

/** How the process ended, as the keeper recorded it. `unknown`: the record is missing, only the log speaks. */
export type EtcdExit =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'unknown' };

/**
 * @pure The reasons that count: a panic that was only logged (`/readyz` recovers it) is none unless etcd died of it, and a clean end
 * has none. The trace comes first: it is its very last word; then the lines, newest first.
 */
export function decisiveTexts(exit: EtcdExit, evidence: Evidence): readonly string[] {
  if (exit.kind === 'code' && exit.code === 0) return [];
  const died = evidence.trace !== undefined || (exit.kind === 'code' && exit.code === 2);
  const lines = evidence.reasons.filter(({ level }) => level !== 'panic' || died).map(({ text }) => text);
  const trace = evidence.trace === undefined ? [] : [evidence.trace.first];
  return [...trace, ...lines.reverse()];
}

/** @pure True if etcd died of the IsLocalMemberLearner panic. The trace of the learner check; or, if the trace was lost, its panic line and code 2. */
export function panicSeen(exit: EtcdExit, evidence: Evidence): boolean {
  const trace = evidence.trace;
  if (trace !== undefined)
    return trace.inLearnerCheck || trace.first.includes('failed to find local ID in cluster members');
  return evidence.learnerPanic && exit.kind === 'code' && exit.code === 2;
}

/**
 * @pure A file that the command line names: etcd joins and serves first, and only then finds that it is missing or not what it should be
 * (`listener failed`; since 3.7 with https on the metrics port `discovery failed`). A missing file of its own data is none of these.
 */
export function isFileFailure(text: string, dataDir: string | undefined): boolean {
  if (!/^(?:listener failed|discovery failed): /.test(text)) return false;
  if (/: (?:tls|x509): /.test(text)) return true;
  const missing = /open (.+): no such file or directory/.exec(text)?.[1];
  return missing !== undefined && !(dataDir !== undefined && dataDir !== '' && missing.startsWith(`${dataDir}/`));
}
