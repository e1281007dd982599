/** @pure file: which operation of the curator made a change of the membership. */

import type { OperationKind, OperationRecord, Transition } from './records.ts';

/** The kinds of operations that make a change. A grant that fails takes its learner out again. */
const makers: Readonly<Record<Transition, readonly OperationKind[]>> = {
  founded: [],
  added: ['grantRole'],
  promoted: ['grantRole'],
  urlsChanged: [],
  removed: ['revokeRole', 'cleanUpNode', 'decommissionNode', 'deleteNode', 'repair', 'grantRole'],
};

/**
 * @pure The id of the operation that made the change; empty if it was none of `operations`. An operation that knows its member is known
 * by that: ids are never used again. One that does not know it yet is known by its node, while it runs.
 */
export function operationBehind(
  change: { readonly transition: Transition; readonly memberId: string; readonly nodeId: string },
  operations: readonly OperationRecord[],
): string {
  const mayHaveMade = ({ kind, state }: OperationRecord) => {
    if (kind === 'grantRole' && change.transition === 'removed') return state !== 'done';
    return makers[change.transition].includes(kind) && state !== 'failed';
  };
  const candidates = operations.filter(mayHaveMade);
  const byMember = candidates.findLast(({ memberId }) => memberId === change.memberId);
  const byNode = candidates.findLast(
    ({ memberId, nodeId, state }) => memberId === null && nodeId === change.nodeId && state === 'running',
  );
  return (byMember ?? byNode)?.operationId ?? '';
}
