// Goal: roles and members come to fit together, one repair a pass; nothing is repaired on what is not known, and no member is removed.
// Method: each mismatch and each brake by itself, each way in which a member is found to be a node's; then random clusters.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { membershipOf, ownerOf } from '../../src/curator/node-members.ts';
import { type Reconciled, type ReconcileSeen, reconcile, type SeenNode } from '../../src/curator/reconcile.ts';
import { accountOf, type Brake } from '../../src/curator/reconcile-brakes.ts';
import { type Finding, findingText } from '../../src/curator/reconcile-findings.ts';
import {
  type AssignedRole,
  type NodeRecord,
  nodeSchema,
  nodeStates,
  type OperationRecord,
} from '../../src/curator/records.ts';
import type { LeftReport } from '../../src/curator/role-left.ts';
import { withRoles } from '../../src/curator/roles.ts';
import type { ChangeRecord } from '../../src/etcd/change-record.ts';
import type { Member, MemberList } from '../../src/etcd/member.ts';

const at = '2026-01-01T00:00:00.000Z';
const consensus = 'consensus-member';

function role(state: AssignedRole['state'], name = consensus): AssignedRole {
  return { name, state, grantId: 'g1', grantedAt: at, grantedBy: 'o', accept: [] };
}

function record(nodeId: string, roles: readonly AssignedRole[], more: Partial<NodeRecord> = {}): NodeRecord {
  return {
    nodeId,
    state: 'up',
    keyHash: 'a'.repeat(64),
    ticketId: '',
    peerUrls: [`https://${nodeId}:2380`],
    clientUrls: [],
    registeredAt: at,
    roles: [...roles],
    generation: 0,
    ...more,
  };
}

function member(nodeId: string, more: Partial<Member> = {}): Member {
  const id = BigInt(`0xa${nodeId.slice(1)}`);
  return { id, name: nodeId, peerUrls: [`https://${nodeId}:2380`], clientUrls: [], isLearner: false, ...more };
}

function listOf(members: readonly Member[], more: Partial<MemberList> = {}): MemberList {
  return { clusterId: 0xc1n, answeredBy: 0xa1n, members, linearizable: true, ...more };
}

const left: LeftReport = { grantId: 'g1', clusterId: 'c1', memberId: 0xa3n };
const good = { record: record('n1', [role('granted')]), left: undefined };

/** n1 carries the curator and is well; `n3` is what a test is about. */
function seen(
  members: readonly Member[],
  nodes: readonly SeenNode[],
  more: Partial<ReconcileSeen> = {},
): ReconcileSeen {
  return {
    ownNodeId: 'n1',
    readOnly: '',
    list: listOf([member('n1'), ...members]),
    nodes: [good, ...nodes],
    account: undefined,
    underWay: { operations: [], change: 'none' },
    stamp: { grantId: 'g9', at, by: 'curator' },
    ...more,
  };
}

function node(
  roles: readonly AssignedRole[],
  more: { left?: LeftReport; record?: Partial<NodeRecord> } = {},
): SeenNode {
  return { record: record('n3', roles, more.record), left: more.left };
}

function operation(nodeId: string, more: Partial<OperationRecord> = {}): OperationRecord {
  return {
    operationId: '7f3a',
    kind: 'revokeRole',
    nodeId,
    role: consensus,
    memberId: null,
    state: 'running',
    steps: [],
    blocked: '',
    hint: '',
    orderedBy: 'o',
    orderedAt: at,
    endedAt: null,
    accept: [],
    bypassed: [],
    ...more,
  };
}

const change: ChangeRecord = {
  clusterId: 'c1',
  operation: 'x',
  kind: 'remove',
  target: 'a3',
  by: 'n3',
  phase: 'sending',
  waitMs: 1,
  at,
};

/** The names of the findings, or the brake. */
function kindsOf(result: Reconciled): readonly string[] {
  return result.kind === 'halted' ? [result.brake.kind] : result.findings.map(({ kind }) => kind);
}

function findingsOf(result: Reconciled): readonly Finding[] {
  return result.kind === 'halted' ? [] : result.findings;
}

describe('mismatches', () => {
  test('13 a member without the role for it gets the role, beside its others', () => {
    const worker = role('granted', 'kubernetes-worker');
    const result = reconcile(seen([member('n3')], [node([worker])]));
    expect(result).toMatchObject({
      kind: 'repair',
      repair: { kind: 'giveRole', nodeId: 'n3', because: 'its member a3 is in the list, and it has no role for that' },
      findings: [],
    });
    if (result.kind !== 'repair') return;
    expect(result.repair.roles).toEqual([
      worker,
      { name: consensus, state: 'granted', grantId: 'g9', grantedAt: at, grantedBy: 'curator', accept: [] },
    ]);
  });

  test('13 a role that is leaving is cleared when its member is gone and its node has said so', () => {
    const worker = role('granted', 'kubernetes-worker');
    const result = reconcile(seen([], [node([role('leaving'), worker], { left })]));
    expect(result).toMatchObject({ kind: 'repair', repair: { kind: 'clearRole', nodeId: 'n3', roles: [worker] } });
  });

  test('13 a member of no node is reported, and stays', () => {
    const stranger = member('n9');
    const result = reconcile(seen([stranger], []));
    expect(result).toMatchObject({
      kind: 'rest',
      findings: [{ kind: 'memberWithoutNode', memberId: 'a9', name: 'n9', peerUrls: ['https://n9:2380'] }],
    });
  });

  test('13 a grant whose member was removed by others is spent, and needs a new one', () => {
    const result = reconcile(seen([], [node([role('granted')], { left })]));
    expect(result).toMatchObject({ kind: 'rest', findings: [{ kind: 'grantSpent', nodeId: 'n3', grantId: 'g1' }] });
  });

  test.each<[string, readonly Member[], SeenNode, readonly string[]]>([
    ['a grant without a member and without a word of a removal', [], node([role('granted')]), ['grantWithoutMember']],
    [
      'a grant whose node speaks of an older grant',
      [],
      node([role('granted')], { left: { ...left, grantId: 'g0' } }),
      ['grantWithoutMember'],
    ],
    [
      'a grant whose node speaks of another cluster',
      [],
      node([role('granted')], { left: { ...left, clusterId: 'c2' } }),
      ['grantWithoutMember'],
    ],
    ['a grant that is a member', [member('n3')], node([role('granted')]), []],
    ['a node without role and member', [], node([]), []],
    ['a node without role and member that has left', [], node([], { left }), []],
    ['leaving, and the member is there', [member('n3')], node([role('leaving')]), ['leavingStill']],
    [
      'leaving, and the member is there though it says no',
      [member('n3')],
      node([role('leaving')], { left }),
      ['leavingStill'],
    ],
    ['leaving, gone, and no word', [], node([role('leaving')]), ['leavingUnreported']],
    [
      'leaving, gone, and a word about another grant',
      [],
      node([role('leaving')], { left: { ...left, grantId: 'g0' } }),
      ['leavingUnreported'],
    ],
    ['no role, and the list still has the member that the node says is gone', [member('n3')], node([], { left }), []],
  ])('13 left alone: %s', (_what, members, one, findings) => {
    const result = reconcile(seen(members, [one]));
    expect([result.kind, kindsOf(result)]).toEqual(['rest', findings]);
  });

  test.each(nodeStates.filter((state) => state !== 'up'))('5 13 a member whose node is %s gets no role', (state) => {
    const result = reconcile(seen([member('n3')], [node([], { record: { state } })]));
    expect(result).toMatchObject({
      kind: 'rest',
      findings: [{ kind: 'memberNotUp', nodeId: 'n3', state, memberId: 'a3' }],
    });
  });

  test('13 one repair a pass: a role is given before one is cleared, by the names of the nodes', () => {
    const gone = { record: record('n2', [role('leaving')]), left: { ...left, memberId: 0xa2n } };
    const nodes = [gone, { record: record('n5', []), left: undefined }, { record: record('n4', []), left: undefined }];
    const result = reconcile(seen([member('n5'), member('n4')], nodes));
    expect(result).toMatchObject({ kind: 'repair', repair: { kind: 'giveRole', nodeId: 'n4' } });
  });

  test('48 what is under way for a node, or has just ended, leaves that node alone for a pass', () => {
    const operations = [operation('n3', { state: 'done' })];
    const more = { underWay: { operations, change: 'none' } } as const;
    for (const [members, one] of [
      [[member('n3')], node([])],
      [[], node([role('leaving')], { left })],
    ] as const) {
      const result = reconcile(seen(members, [one], more));
      expect([result.kind, kindsOf(result)]).toEqual(['rest', []]);
    }
    const cleaned = [operation('n8', { kind: 'cleanUpNode', memberId: 'a8', state: 'done' })];
    const result = reconcile(seen([member('n8')], [], { underWay: { operations: cleaned, change: 'none' } }));
    expect(kindsOf(result)).toEqual([]);
  });
});

describe('brakes', () => {
  const broken = [node([])];
  const account = accountOf(listOf([member('n1'), member('n3')]), [record('n1', []), record('n3', [])]);

  test.each<[string, Partial<ReconcileSeen>, Brake['kind'], boolean]>([
    ['15 it is read-only already', { readOnly: 'the cluster id changed' }, 'readOnly', true],
    ['14 the members are unknown', { list: undefined }, 'membersUnknown', false],
    [
      '14 no quorum confirmed the members',
      { list: listOf([member('n1'), member('n3')], { linearizable: false }) },
      'membersUnknown',
      false,
    ],
    ['14 the nodes are unknown', { nodes: undefined }, 'nodesUnknown', false],
    ['14 its own node has no record', { nodes: broken }, 'ownNodeMissing', false],
    ['14 its own node is no member', { list: listOf([member('n3')]) }, 'ownNodeMissing', false],
    ['14 both lists are empty', { list: listOf([]), nodes: [] }, 'ownNodeMissing', false],
    [
      '15 the cluster is another one',
      { account, list: listOf([member('n1'), member('n3')], { clusterId: 0xc2n }) },
      'clusterChanged',
      true,
    ],
    [
      '15 an operation is under way',
      { underWay: { operations: [operation('n5')], change: 'none' } },
      'operationUnderWay',
      false,
    ],
    [
      '15 a repair is under way',
      { underWay: { operations: [operation('n5', { kind: 'repair' })], change: 'none' } },
      'operationUnderWay',
      false,
    ],
    ['15 a change record stands', { underWay: { operations: [], change } }, 'changeUnderWay', false],
    [
      '15 the change record could not be read',
      { underWay: { operations: [], change: 'unknown' } },
      'changeUnderWay',
      false,
    ],
  ])('%s: nothing is repaired', (_what, more, kind, isFinal) => {
    expect(reconcile(seen([member('n3')], broken)).kind).toBe('repair');
    const result = reconcile(seen([member('n3')], broken, more));
    expect(result).toMatchObject({ kind: 'halted', brake: { kind, isFinal } });
    if (result.kind === 'halted') expect(result.brake.because).not.toBe('');
  });

  test('15 several members that changed without an operation of ours are a recovery, until somebody accepts it', () => {
    const result = reconcile(seen([member('n4'), member('n5')], broken, { account }));
    expect(result).toEqual({
      kind: 'halted',
      brake: {
        kind: 'membershipJumped',
        because: 'several members changed without an operation of this curator: a4 added, a5 added, a3 removed',
        isFinal: true,
      },
      account: undefined,
    });
  });

  test('15 a forced recovery that leaves this node alone is not repaired by dropping the others', () => {
    const three = accountOf(listOf([member('n1'), member('n2'), member('n3')]), []);
    const nodes = ['n2', 'n3'].map((nodeId) => ({ record: record(nodeId, [role('granted')]), left: undefined }));
    expect(kindsOf(reconcile(seen([], nodes, { account: three })))).toEqual(['membershipJumped']);
  });

  test('15 one member that changed without an operation of ours is said, and goes on', () => {
    const nodes = [node([role('granted')])];
    const gone = reconcile(seen([], nodes, { account }));
    expect(findingsOf(gone)[0]).toEqual({ kind: 'changedByOthers', change: 'removed', memberId: 'a3', nodeId: 'n3' });
    const came = reconcile(seen([member('n3'), member('n4')], nodes, { account }));
    expect(kindsOf(came)).toEqual(['changedByOthers', 'memberWithoutNode']);
  });

  test.each<[string, OperationRecord]>([
    ['that names the member', operation('n8', { memberId: 'a3', state: 'done' })],
    ['of the node that it is', operation('n3', { state: 'done' })],
    ['that failed: it may have been applied later', operation('n3', { state: 'failed' })],
  ])('15 a change by an operation of ours %s does not count', (_what, one) => {
    const underWay = {
      operations: [one, operation('n4', { kind: 'grantRole', state: 'done' })],
      change: 'none',
    } as const;
    const nodes = [node([]), { record: record('n4', [role('granted')]), left: undefined }];
    const result = reconcile(seen([member('n4')], nodes, { account, underWay }));
    expect([result.kind, kindsOf(result)]).toEqual(['rest', []]);
  });

  test('15 a repair of roles explains no change of members', () => {
    const operations = ['n3', 'n4'].map((nodeId) => operation(nodeId, { kind: 'repair', state: 'done' }));
    const nodes = [node([]), { record: record('n4', []), left: undefined }];
    const result = reconcile(seen([member('n4')], nodes, { account, underWay: { operations, change: 'none' } }));
    expect(kindsOf(result)).toEqual(['membershipJumped']);
  });

  test('15 the account is kept where the list can be trusted, also while something is under way', () => {
    const now = {
      clusterId: 'c1',
      members: [
        { memberId: 'a1', nodeId: 'n1' },
        { memberId: 'a3', nodeId: 'n3' },
      ],
    };
    expect(reconcile(seen([member('n3')], broken)).account).toEqual(now);
    const busy = { underWay: { operations: [], change } };
    expect(reconcile(seen([member('n3')], broken, busy)).account).toEqual(now);
    expect(reconcile(seen([member('n3')], [], { nodes: undefined })).account).toBeUndefined();
    expect(reconcile(seen([member('n3')], broken, { readOnly: 'x' })).account).toBeUndefined();
    expect(JSON.parse(JSON.stringify(now))).toEqual(now);
  });
});

describe('whose a member is', () => {
  const nodes = [
    record('n1', []),
    record('n2', [], { peerUrls: ['https://n2:2380', 'https://10.0.0.2:2380'] }),
    record('n4', [], { peerUrls: [] }),
  ];
  const owner = (more: Partial<Member>) => {
    const found = ownerOf(member('n7', more), nodes);
    return found.kind === 'several' ? found.nodeIds.join(' ') : found.kind === 'node' ? found.nodeId : 'nobody';
  };

  test.each<[string, Partial<Member>, string]>([
    ['by its name', { name: 'n1', peerUrls: [] }, 'n1'],
    ['by its name, though the address is of another', { name: 'n1', peerUrls: ['https://n2:2380'] }, 'n1'],
    ['by its name, where the node has no address', { name: 'n4' }, 'n4'],
    ['never started, by its one address', { name: '', peerUrls: ['https://n1:2380'] }, 'n1'],
    [
      'never started, by one of several addresses',
      { name: '', peerUrls: ['https://x:1', 'https://10.0.0.2:2380'] },
      'n2',
    ],
    ['never started, without an address', { name: '', peerUrls: [] }, 'nobody'],
    ['never started, at an address that nobody has', { name: '', peerUrls: ['https://x:1'] }, 'nobody'],
    ['by its address, where the name is none of ours', { name: 'default', peerUrls: ['https://n2:2380'] }, 'n2'],
    ['by its address, whatever the scheme and the case', { name: '', peerUrls: ['http://N2:2380'] }, 'n2'],
    ['another port is another place', { name: '', peerUrls: ['https://n2:2381'] }, 'nobody'],
    ['at the addresses of two nodes', { name: '', peerUrls: ['https://n1:2380', 'https://n2:2380'] }, 'n1 n2'],
    ['a name and an address that nobody has', {}, 'nobody'],
  ])('34 %s', (_what, more, wanted) => {
    expect(owner(more)).toBe(wanted);
  });

  test('34 a node of which two members may be is not repaired', () => {
    const twins = [member('n3'), member('n6', { name: '', peerUrls: ['https://n3:2380'] })];
    const result = reconcile(seen(twins, [node([])]));
    expect(result).toMatchObject({
      kind: 'rest',
      findings: [{ kind: 'severalMembers', nodeId: 'n3', memberIds: ['a3', 'a6'] }],
    });
  });

  test('34 a member at the address of two nodes is reported, and neither is absent', () => {
    const shared = { peerUrls: ['https://s:2380'] };
    const two = [record('n3', [role('leaving')], shared), record('n4', [], shared)];
    const stranger = member('n6', { name: '', ...shared });
    expect(membershipOf('n3', two, listOf([stranger])).kind).toBe('unclear');
    const result = reconcile(
      seen(
        [stranger],
        [
          { record: two[0] as NodeRecord, left },
          { record: two[1] as NodeRecord, left: undefined },
        ],
      ),
    );
    expect(result).toMatchObject({ kind: 'rest' });
    expect(kindsOf(result)).toEqual(['memberOfSeveral', 'severalMembers', 'severalMembers']);
  });
});

describe('what is said', () => {
  const findings: { readonly [Kind in Finding['kind']]: readonly [Finding & { readonly kind: Kind }, RegExp] } = {
    memberWithoutNode: [
      { kind: 'memberWithoutNode', memberId: 'a9', name: '', peerUrls: [] },
      /^the member a9 \(never started, no peer URL\) belongs to no node; .* by order$/,
    ],
    memberOfSeveral: [{ kind: 'memberOfSeveral', memberId: 'a9', nodeIds: ['n1', 'n2'] }, /a9 may belong to n1 or n2/],
    severalMembers: [{ kind: 'severalMembers', nodeId: 'n3', memberIds: ['a3', 'a6'] }, /2 members \(a3, a6\)/],
    memberNotUp: [
      { kind: 'memberNotUp', nodeId: 'n3', state: 'decommissionRequested', memberId: 'a3' },
      /n3 is DECOMMISSION_REQUESTED/,
    ],
    grantSpent: [{ kind: 'grantSpent', nodeId: 'n3', grantId: 'g1' }, /g1 is used up; grant consensus-member anew/],
    grantWithoutMember: [{ kind: 'grantWithoutMember', nodeId: 'n3', grantId: 'g1' }, /has not joined yet/],
    leavingStill: [{ kind: 'leavingStill', nodeId: 'n3', memberId: 'a3' }, /n3 is to leave and is the member a3 still/],
    leavingUnreported: [{ kind: 'leavingUnreported', nodeId: 'n3' }, /clean the node up$/],
    changedByOthers: [
      { kind: 'changedByOthers', change: 'removed', memberId: 'a3', nodeId: '' },
      /^a member of no node \(a3\) was removed without an operation/,
    ],
  };

  test.each(Object.values(findings))('13 $kind is one sentence with what helps', (finding, wanted) => {
    expect(findingText(finding)).toMatch(wanted);
  });
});

describe('any cluster', () => {
  const names = ['n1', 'n2', 'n3', 'n4', 'n5'] as const;
  const nodes = fc.record({
    state: fc.constantFrom('up', 'up', 'up', ...nodeStates),
    role: fc.constantFrom<(AssignedRole | undefined)[]>(undefined, role('granted'), role('leaving')),
    other: fc.boolean(),
    isMember: fc.boolean(),
    unstarted: fc.boolean(),
    left: fc.constantFrom<(LeftReport | undefined)[]>(
      undefined,
      left,
      { ...left, memberId: undefined },
      { ...left, grantId: 'g0' },
    ),
    isKnown: fc.constantFrom(true, true, true, false),
  });
  const worlds = fc.tuple(nodes, nodes, nodes, nodes, nodes).map((all) => {
    const own = { ...all[0], state: 'up' as const, role: role('granted'), isMember: true, isKnown: true };
    const parts = [own, ...all.slice(1)].map((one, index) => ({ ...one, nodeId: names[index] ?? 'n1' }));
    const worker = role('granted', 'kubernetes-worker');
    return {
      members: parts
        .filter(({ isMember }) => isMember)
        .map(({ nodeId, unstarted }) => member(nodeId, unstarted ? { name: '', isLearner: true } : {})),
      nodes: parts
        .filter(({ isKnown }) => isKnown)
        .map(
          (one): SeenNode => ({
            record: record(
              one.nodeId,
              [...(one.role === undefined ? [] : [one.role]), ...(one.other ? [worker] : [])],
              { state: one.state },
            ),
            left:
              one.left === undefined
                ? undefined
                : { ...one.left, ...(one.left.memberId === undefined ? {} : { memberId: member(one.nodeId).id }) },
          }),
        ),
    };
  });

  test('13 repairs come to rest, one a pass; what they do fits, and no member is touched', () => {
    const repaired = new Set<string>();
    const found = new Set<string>();
    void fc.assert(
      fc.property(worlds, ({ members, nodes: first }) => {
        let now = first;
        let account: ReconcileSeen['account'];
        let passes = 0;
        for (;;) {
          const before = structuredClone(now);
          const all: ReconcileSeen = { ...seen([], []), list: listOf(members), nodes: now, account };
          const result = reconcile(all);
          expect(now).toEqual(before);
          expect(reconcile({ ...all, nodes: now.toReversed() })).toEqual(result);
          for (const kind of kindsOf(result)) found.add(kind);
          if (result.kind === 'halted') throw new Error(result.brake.because);
          account = result.account;
          if (result.kind === 'rest') break;
          const { repair } = result;
          repaired.add(repair.kind);
          expect(['giveRole', 'clearRole']).toContain(repair.kind);
          const target = now.find((one) => one.record.nodeId === repair.nodeId);
          if (target === undefined) throw new Error('a repair of a node that there is not');
          const others = (list: readonly AssignedRole[]) => list.filter(({ name }) => name !== consensus);
          expect(others(repair.roles)).toEqual(others(target.record.roles));
          if (repair.kind === 'giveRole') expect(target.record.state).toBe('up');
          const next = withRoles(target.record, repair.roles);
          expect(nodeSchema.safeParse(next).success).toBe(true);
          now = now.map((one) => (one === target ? { ...one, record: next } : one));
          passes += 1;
          // A node is repaired once: no repair makes work for another.
          expect(passes).toBeLessThanOrEqual(first.length);
        }
        // At rest each node that is UP and a member has the role for it, unless it has said that the member is gone.
        for (const { record: known, left: word } of now) {
          const { nodeId, state, roles } = known;
          const membership = membershipOf(
            nodeId,
            now.map((one) => one.record),
            listOf(members),
          );
          const own = roles.find(({ name }) => name === consensus);
          if (membership.kind === 'member' && state === 'up' && word?.memberId !== membership.member.id) {
            expect(own).toBeDefined();
          }
          if (membership.kind === 'absent' && word?.grantId === 'g1') expect(own?.state).not.toBe('leaving');
          if (membership.kind === 'absent' && own === undefined) continue;
          // What is neither repaired nor right is said.
          const said = findingsOf(reconcile({ ...seen([], []), list: listOf(members), nodes: now, account }));
          const isRight = membership.kind === 'member' && own?.state === 'granted';
          const isOlder = membership.kind === 'member' && own === undefined && word?.memberId === membership.member.id;
          if (!isRight && !isOlder) expect(said.some((one) => 'nodeId' in one && one.nodeId === nodeId)).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
    expect([...repaired].sort()).toEqual(['clearRole', 'giveRole']);
    for (const kind of [
      'memberWithoutNode',
      'grantSpent',
      'grantWithoutMember',
      'leavingStill',
      'leavingUnreported',
      'memberNotUp',
    ]) {
      expect(found).toContain(kind);
    }
  });

  test('14 without either list, or while anything is under way, no cluster is repaired', () => {
    const blind: readonly Partial<ReconcileSeen>[] = [
      { list: undefined },
      { nodes: undefined },
      { readOnly: 'x' },
      { underWay: { operations: [operation('n9')], change: 'none' } },
      { underWay: { operations: [], change } },
      { underWay: { operations: [], change: 'unknown' } },
    ];
    void fc.assert(
      fc.property(worlds, fc.constantFrom(...blind), ({ members, nodes: first }, more) => {
        expect(reconcile({ ...seen([], []), list: listOf(members), nodes: first, ...more }).kind).toBe('halted');
      }),
    );
  });
});
