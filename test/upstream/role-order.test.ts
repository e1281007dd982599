import { describe, expect, test } from 'vitest';
import type { DesiredRole } from '../../src/upstream/role.ts';
import { type AcceptedRole, judgeRole, judgeSwitch, type RoleSourceName } from '../../src/upstream/role-order.ts';

const file: RoleSourceName = { kind: 'file', name: '/etc/role.yaml' };
const curator: RoleSourceName = { kind: 'curator', name: 'c1' };
const identity = { nodeId: 'n1', clusterId: 'cdf818194e3a8c32' };

function role(more: Partial<DesiredRole> = {}): DesiredRole {
  return {
    nodeId: 'n1',
    role: 'consensus-member',
    grantId: 'g1',
    epoch: 0,
    generation: 0,
    endpoints: [],
    accept: [],
    ...more,
  };
}

const accepted = (more: Partial<DesiredRole> = {}, source = file): AcceptedRole => ({
  source,
  role: role(more),
  at: '',
});
const judge = (offered: DesiredRole, before?: AcceptedRole, source = file) => {
  const verdict = judgeRole(offered, source, before, identity);
  return verdict.kind === 'refuse' ? verdict.why : verdict.kind;
};

describe('the order of one source', () => {
  const at = (epoch: number, generation: number, more = {}) => ({ epoch, generation, ...more });
  const leaving = { role: 'leaving' as const };
  const rows: readonly [string, Partial<DesiredRole>, Partial<DesiredRole>, RegExp][] = [
    ['the next generation', at(1, 1), at(1, 2, leaving), /^accept$/],
    ['a later epoch with a lower generation', at(1, 9), at(2, 1, leaving), /^accept$/],
    [
      'K02 K03 an older generation',
      at(1, 2),
      at(1, 1, leaving),
      /older \(epoch 1, generation 1\) than the accepted one \(epoch 1, generation 2\)/,
    ],
    ['an older epoch with a higher generation', at(2, 1), at(1, 9), /older/],
    ['K01 the same again', at(1, 1), at(1, 1), /^same$/],
    [
      'K05 the same number with other content',
      at(1, 1),
      at(1, 1, leaving),
      /same epoch 1, generation 1 as the accepted one but says something else/,
    ],
    ['a file without numbers, after one with', at(1, 1), at(0, 0, leaving), /older/],
    ['a file with numbers, after one without', at(0, 0), at(0, 1, leaving), /^accept$/],
  ];
  for (const [what, before, offered, expected] of rows) {
    test(what, () => expect(judge(role(offered), accepted(before))).toMatch(expected));
  }

  test('a file edited by hand counts as new whenever its content changes', () => {
    expect(judge(role(leaving), accepted())).toBe('accept');
    expect(judge(role(), accepted())).toBe('same');
    expect(judge(role({ grantId: 'g2' }), accepted(leaving))).toBe('accept');
  });

  test('a curator without numbers gets no such leave', () => {
    expect(judge(role(leaving), accepted({}, curator), curator)).toContain('says something else');
  });

  test('the order of fields in a file does not matter', () => {
    const { nodeId, ...rest } = role({ epoch: 1, accept: [{ kind: 'a', memberId: '1', listHash: '12345678' }] });
    const turned = { ...rest, accept: [{ listHash: '12345678', memberId: '1', kind: 'a' }], nodeId };
    expect(judge(turned, { ...accepted(), role: { nodeId, ...rest } })).toBe('same');
  });

  test('another source is refused: switching is a command', () => {
    expect(judge(role({ epoch: 9 }), accepted(), curator)).toContain('switching the source is a command');
    expect(judge(role({ epoch: 9 }), accepted(), { kind: 'file', name: '/other' })).toContain('from the file /other');
  });
});

describe('who it is for', () => {
  test('K09 another node or another cluster is refused, also as the first document', () => {
    expect(judge(role({ nodeId: 'n2' }))).toBe('it is for node n2, and this is n1');
    expect(judge(role({ clusterId: 'abc' }), accepted())).toBe(
      'it is for cluster abc, and this node belongs to cdf818194e3a8c32',
    );
    expect(judge(role({ clusterId: 'cdf818194e3a8c32' }))).toBe('accept');
    expect(judgeRole(role({ clusterId: 'abc' }), file, undefined, { nodeId: 'n1', clusterId: undefined })).toEqual({
      kind: 'accept',
    });
  });

  test('leading zeros do not make another cluster', () => {
    const verdict = judgeRole(role({ clusterId: '00ab' }), file, undefined, { nodeId: 'n1', clusterId: 'ab' });
    expect(verdict).toEqual({ kind: 'accept' });
  });

  test('K08 a document that contradicts itself is refused as a whole', () => {
    const risk = { kind: 'zero-tolerance', memberId: '1', listHash: '12345678' };
    expect(judge(role({ epoch: 5, accept: [risk, { ...risk, listHash: '87654321' }] }))).toContain(
      'twice, with different member lists',
    );
  });
});

describe('switching the source', () => {
  const judgeIt = (
    offered: DesiredRole,
    before: AcceptedRole,
    more: { force?: boolean; floor?: [number, number] } = {},
  ) => {
    const floor = more.floor && { source: curator, epoch: more.floor[0], generation: more.floor[1] };
    const verdict = judgeSwitch(offered, before, identity, { floor, force: more.force ?? false });
    return verdict.kind === 'refuse' ? verdict.why : verdict.kind;
  };

  test('without force only if nothing would change; order and endpoints may differ', () => {
    expect(judgeIt(role({ epoch: 3, endpoints: ['http://a:1'] }), accepted())).toBe('accept');
    expect(judgeIt(role({ role: 'none', grantId: 'g2' }), accepted())).toBe(
      'the new source would change role ("consensus-member" → "none"), grantId ("g1" → "g2"); switch with --accept if that is wanted',
    );
    expect(judgeIt(role({ role: 'none' }), accepted(), { force: true })).toBe('accept');
  });

  test('back to an old source: not behind what it said before', () => {
    expect(judgeIt(role({ epoch: 1 }), accepted(), { floor: [1, 2] })).toContain(
      'older (epoch 1, generation 0) than what this source said before',
    );
    expect(judgeIt(role({ epoch: 1, generation: 2 }), accepted(), { floor: [1, 2] })).toBe('accept');
  });

  test('K09 even force does not take the role of another node', () => {
    expect(judgeIt(role({ nodeId: 'n2' }), accepted(), { force: true })).toContain('it is for node n2');
  });
});
