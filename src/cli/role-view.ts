/** @pure file: the role, for people. */

import type { RoleDetail } from '../agent/role-orders.ts';
import { table } from './table.ts';

/** @pure The role in force, field by field. */
export function roleDetailText(detail: RoleDetail): string {
  const { known, role, grantId, spent, epoch, generation, source, file, acceptedAt, problem } = detail;
  const rows = known
    ? [
        ['role', role],
        ['grant', `${grantId}${spent ? ' (ended with the removal of its member)' : ''}`],
        ['order', `epoch ${epoch}, generation ${generation}`],
        ['source', source],
        ['accepted', acceptedAt ?? ''],
        ['cluster', detail.clusterId],
        ['endpoints', detail.endpoints.join(' ')],
        ['etcd', detail.etcdVersion],
        ...detail.accept.map(({ kind, memberId, listHash }) => [
          'accepts',
          `${kind}: member ${memberId}, list ${listHash}`,
        ]),
      ]
    : [['role', 'unknown']];
  return table([
    ['node', detail.nodeId],
    ...rows.filter(([, text]) => text !== ''),
    ['file', file],
    ...(problem === '' ? [] : [['problem', problem]]),
  ]);
}
