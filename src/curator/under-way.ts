/** @pure file: what is being done to the cluster now, so that one thing is done at a time. */

import type { ChangeRecord } from '../etcd/change-record.ts';
import type { OperationRecord } from './records.ts';

/** All that may be under way. */
export interface UnderWay {
  /** Those that run. Others may stand among them; they do not count here. */
  readonly operations: readonly OperationRecord[];
  /** The change record that stands (docs/change-record.md). `unknown`: it could not be read. */
  readonly change: ChangeRecord | 'none' | 'unknown';
}

/** @pure The operation that runs for a node, in words; undefined if none does. */
export function operationFor({ operations }: UnderWay, nodeId: string): string | undefined {
  const found = running(operations).find((one) => one.nodeId === nodeId);
  return found === undefined ? undefined : operationText(found);
}

/** @pure Any operation that runs, in words; undefined if none does. */
export function anyOperation({ operations }: UnderWay): string | undefined {
  const [found] = running(operations);
  return found === undefined ? undefined : operationText(found);
}

/** @pure The change that somebody makes now, in words; undefined if nobody makes one. A record that nobody could read may stand. */
export function changeUnderWay({ change }: UnderWay): string | undefined {
  if (change === 'none') return undefined;
  if (change === 'unknown') return 'it is not known whether somebody changes the membership now';
  return `${change.by} makes a change now (${change.kind} ${change.target})`;
}

function running(operations: readonly OperationRecord[]): readonly OperationRecord[] {
  return operations.filter(({ state }) => state === 'running');
}

const verbs: Readonly<Record<OperationRecord['kind'], string>> = {
  grantRole: 'grants',
  revokeRole: 'revokes',
  cleanUpNode: 'cleans up',
  decommissionNode: 'decommissions',
  deleteNode: 'deletes',
  repair: 'repairs',
};

/** `operation 7f3a revokes consensus-member of n3`. */
function operationText({ operationId, kind, role, nodeId }: OperationRecord): string {
  const of = kind === 'grantRole' ? 'to' : 'of';
  return `operation ${operationId} ${verbs[kind]} ${role === '' ? nodeId : `${role} ${of} ${nodeId}`}`;
}
