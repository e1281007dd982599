// Goal: a request for roles is done as a whole or not at all, and each refusal says why; a membership ends by its node's word.
// Method: clusters judged by the real safety check; a table of the refusals; then random requests against plain rules.
import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { membershipOf, type NodeMembership, placeOf } from '../../src/curator/node-members.ts';
import {
  type AssignedRole,
  type NodeRecord,
  nodeSchema,
  nodeStates,
  type OperationRecord,
} from '../../src/curator/records.ts';
import { type ErrorReason, errorReasons } from '../../src/curator/refusal.ts';
import { judgeLeft, type LeftReport } from '../../src/curator/role-left.ts';
import type { RoleQuestion, RoleRequest, RoleVerdict } from '../../src/curator/role-question.ts';
import { judgeRoles, withRoles } from '../../src/curator/roles.ts';
import { type JudgedSafety, reasonOf, safetyRefusal } from '../../src/curator/safety-reason.ts';
import { listHash } from '../../src/etcd/accepted-risk.ts';
import type { ChangeRecord } from '../../src/etcd/change-record.ts';
import { formatId, type Member, type MemberList } from '../../src/etcd/member.ts';
import { judgeChange } from '../../src/etcd/safety.ts';
import type { Refusal, SafetyQuestion, WantedChange } from '../../src/etcd/safety-question.ts';
import { describeSafety } from '../../src/etcd/safety-text.ts';

const at = '2026-01-01T00:00:00.000Z';
const nowMs = 100_000;
const clusterId = 0xc1n;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const member = 'consensus-member';
const controller = 'kubernetes-controller';
const worker = 'kubernetes-worker';
const ingress = 'ingress';
const requires = new Map([
  [controller, [member]],
  [worker, []],
  [ingress, [worker]],
]);

function role(name: string, state: AssignedRole['state'] = 'granted'): AssignedRole {
  return { name, state, grantId: 'g1', grantedAt: at, grantedBy: 'spiffe://t/operator/o', accept: [] };
}

function record(nodeId: string, roles: readonly AssignedRole[], state: NodeRecord['state'] = 'up'): NodeRecord {
  return {
    nodeId,
    state,
    keyHash: 'a'.repeat(64),
    ticketId: 't1',
    peerUrls: [`https://${nodeId}:2380`],
    clientUrls: [],
    registeredAt: at,
    roles: [...roles],
    generation: 4,
  };
}

/** `n1 n2 n3`, a learner with `~`, a silent one with `-`: the first leads. */
function membersOf(text: string): readonly (Member & { readonly silent: boolean })[] {
  return text
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => {
      const name = word.replace(/[~-]$/, '');
      const id = BigInt(`0xa${name.slice(1)}`);
      const peerUrls = [`https://${name}:2380`];
      return { id, name, peerUrls, clientUrls: [], isLearner: word.endsWith('~'), silent: word.endsWith('-') };
    });
}

interface Given {
  /** The members. */
  readonly cluster?: string;
  readonly node?: NodeRecord;
  readonly left?: LeftReport;
  readonly leadsCurator?: boolean;
  readonly more?: Partial<RoleQuestion>;
}

function ask(request: Partial<RoleRequest>, given: Given = {}): RoleQuestion {
  const { cluster = 'n1 n2 n3', node = record('n4', []), left, leadsCurator = false, more = {} } = given;
  const members = membersOf(cluster);
  const list: MemberList = { clusterId, answeredBy: 0xa1n, members, linearizable: true };
  const membership = membershipOf(node.nodeId, [node], list);
  const full: RoleRequest = { grant: [], revoke: [], accept: [], ...request };
  const judge = (wanted: WantedChange): JudgedSafety => {
    const question: SafetyQuestion = {
      wanted,
      list,
      listAtMs: nowMs,
      nowMs,
      leader: { memberId: members[0]?.id ?? 0n, index: 500n, atMs: nowMs - 1_000 },
      answers: members
        .filter(({ silent, isLearner }) => !silent && !isLearner)
        .map(({ id }) => ({
          memberId: id,
          clusterId,
          leader: members[0]?.id,
          appliedIndex: 500n,
          isLearner: false,
          askedAtMs: nowMs - 900,
          atMs: nowMs - 800,
        })),
      activities: new Map(),
      accepted: full.accept,
      force: false,
      sha256,
    };
    const verdict = judgeChange(question);
    return { verdict, text: describeSafety(question, verdict) };
  };
  const own = membership.kind === 'member' ? membership.member.id : undefined;
  return {
    nodeId: node.nodeId,
    record: node,
    tombstones: [],
    health: 'healthy',
    underWay: { operations: [], change: 'none' },
    consensus: {
      list,
      membership,
      leadsCurator,
      left,
      adding: judge({ kind: 'addLearner', peerUrl: node.peerUrls[0] ?? '' }),
      removing: own === undefined ? undefined : judge({ kind: 'remove', memberId: own, provenDead: false }),
    },
    requires,
    request: full,
    stamp: { grantId: 'g2', at, by: 'spiffe://t/operator/p' },
    ...more,
  };
}

/** The reason of a refusal, else the kind of the verdict. */
function outcome(verdict: RoleVerdict): string {
  return verdict.kind === 'refused' ? verdict.refusal.reason : verdict.kind;
}

function refusal(verdict: RoleVerdict): string {
  return verdict.kind === 'refused' ? verdict.refusal.message : '';
}

function allowed(verdict: RoleVerdict): RoleVerdict & { readonly kind: 'allowed' } {
  if (verdict.kind !== 'allowed') throw new Error(`not allowed: ${outcome(verdict)} ${refusal(verdict)}`);
  return verdict;
}

function operation(nodeId: string, more: Partial<OperationRecord> = {}): OperationRecord {
  return {
    operationId: '7f3a',
    kind: 'revokeRole',
    nodeId,
    role: member,
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
  kind: 'down',
  target: 'a2',
  by: 'n2',
  phase: 'sending',
  waitMs: 1,
  at,
};

describe('granting', () => {
  test('10 the membership: the node joins, and its report ends the operation', () => {
    const verdict = allowed(judgeRoles(ask({ grant: [member] })));
    expect(verdict.roles).toEqual([
      { name: member, state: 'granted', grantId: 'g2', grantedAt: at, grantedBy: 'spiffe://t/operator/p', accept: [] },
    ]);
    expect(verdict.operations).toEqual([
      {
        kind: 'grantRole',
        role: member,
        memberId: null,
        ends: 'byNode',
        handOver: { raft: false, curator: false },
        bypassed: [],
      },
    ]);
    expect(verdict.text).toBe('n4 joins as a learner (consensus-member)');
  });

  test('12 another role is there at once, beside what was there', () => {
    const node = record('n3', [role(member)]);
    const verdict = allowed(judgeRoles(ask({ grant: [controller] }, { node })));
    expect(verdict.roles.map(({ name, grantId }) => [name, grantId])).toEqual([
      [member, 'g1'],
      [controller, 'g2'],
    ]);
    expect(verdict.operations).toMatchObject([{ kind: 'grantRole', role: controller, ends: 'atOnce' }]);
  });

  test('13 a node that is a member already gets the role, and nothing is done in etcd', () => {
    const node = record('n3', []);
    const verdict = allowed(judgeRoles(ask({ grant: [member] }, { node })));
    expect(verdict.operations).toMatchObject([{ memberId: 'a3', ends: 'atOnce' }]);
  });

  test('a role that is there is not granted again, also while it is being worked on', () => {
    const node = record('n3', [role(member), role(controller)]);
    const more = { underWay: { operations: [operation('n3')], change } };
    expect(judgeRoles(ask({ grant: [member, controller] }, { node, more }))).toEqual({
      kind: 'needless',
      because: 'the roles of n3 are so already',
    });
  });

  test('10 a grant whose member was removed by others is replaced by a new one', () => {
    const node = record('n4', [role(member)]);
    const left = { grantId: 'g1', clusterId: 'c1', memberId: 0xa4n };
    const verdict = allowed(judgeRoles(ask({ grant: [member] }, { node, left })));
    expect(verdict.roles).toEqual([expect.objectContaining({ name: member, state: 'granted', grantId: 'g2' })]);
    expect(outcome(judgeRoles(ask({ grant: [member] }, { node })))).toBe('needless');
    expect(outcome(judgeRoles(ask({ grant: [controller] }, { node, left })))).toBe('roleDependency');
  });

  test.each<[string, Given, ErrorReason, RegExp]>([
    ['E8 a node that is NEW', { node: record('n4', [], 'new') }, 'wrongState', /^n4 is NEW, and consensus-member is/],
    ['E8 a node that is STANDBY', { node: record('n4', [], 'standby') }, 'wrongState', /^n4 is STANDBY/],
    ['5 a node on its way out', { node: record('n4', [], 'decommissionRequested') }, 'wrongState', /DECOMMISSION_REQ/],
    ['5 a node that is going', { node: record('n4', [], 'decommissioning') }, 'wrongState', /DECOMMISSIONING/],
    ['5 a node that is out', { node: record('n4', [], 'decommissioned') }, 'wrongState', /DECOMMISSIONED/],
    ['E8 a silent node', { more: { health: 'silent' } }, 'nodeSilent', /^the agent of n4 has not sent a heartbeat/],
    ['E8 a node of which nothing is known yet', { more: { health: 'unknown' } }, 'nodeSilent', /only begun to lead/],
    [
      '2.1 a taken learner slot',
      { cluster: 'n1 n2 n3 n5~' },
      'learnerSlotTaken',
      /n5 \(a5\) holds the one learner slot/,
    ],
    ['2.1 a cluster without quorum', { cluster: 'n1 n2- n3-' }, 'noQuorum', /2 of 3 voters must answer now and 1 does/],
    [
      'a node that is leaving',
      { node: record('n4', [role(member, 'leaving')]) },
      'operationUnderWay',
      /^n4 is leaving/,
    ],
    [
      '15 an operation for this node',
      { more: { underWay: { operations: [operation('n4', { kind: 'grantRole', role: '' })], change: 'none' } } },
      'operationUnderWay',
      /^operation 7f3a grants n4$/,
    ],
    [
      '2.4 15 an operation for another node',
      { more: { underWay: { operations: [operation('n2')], change: 'none' } } },
      'operationUnderWay',
      /^operation 7f3a revokes consensus-member of n2$/,
    ],
    [
      '2.4 15 a change that somebody makes',
      { more: { underWay: { operations: [], change } } },
      'operationUnderWay',
      /^n2 makes a change now \(down a2\)$/,
    ],
    [
      'a change record that could not be read',
      { more: { underWay: { operations: [], change: 'unknown' } } },
      'etcdSilent',
      /^it is not known whether/,
    ],
  ])('10 the membership is refused for %s', (_what, given, reason, message) => {
    const verdict = judgeRoles(ask({ grant: [member] }, given));
    expect([outcome(verdict), refusal(verdict)]).toEqual([reason, expect.stringMatching(message)]);
  });

  test('10 an unknown member list is no empty one', () => {
    const question = ask({ grant: [member] });
    const { consensus } = question;
    const blind = { ...consensus, list: undefined, membership: { kind: 'unknown' } as const, adding: undefined };
    expect(outcome(judgeRoles({ ...question, consensus: blind }))).toBe('etcdSilent');
    expect(outcome(judgeRoles({ ...question, consensus: { ...consensus, adding: undefined } }))).toBe('etcdSilent');
  });

  test('34 a node that may have two members gets and loses no membership', () => {
    const members = membersOf('n1 n2 n3');
    const unclear: NodeMembership = { kind: 'unclear', members };
    for (const request of [{ grant: [member] }, { revoke: [member] }]) {
      const node = record('n4', request.grant === undefined ? [role(member)] : []);
      const question = ask(request, { node });
      const verdict = judgeRoles({ ...question, consensus: { ...question.consensus, membership: unclear } });
      expect([outcome(verdict), refusal(verdict)]).toEqual(['wrongState', expect.stringMatching(/^it is not clear/)]);
    }
  });

  test('other roles need no cluster, no heartbeat and no rest, but a node that is UP', () => {
    const more: Partial<RoleQuestion> = {
      health: 'silent',
      underWay: { operations: [operation('n2')], change },
    };
    expect(outcome(judgeRoles(ask({ grant: [worker] }, { cluster: 'n1 n2- n3-', more })))).toBe('allowed');
    expect(outcome(judgeRoles(ask({ grant: [worker] }, { node: record('n4', [], 'standby') })))).toBe('wrongState');
    const own = { underWay: { operations: [operation('n4')], change: 'none' } } as const;
    expect(outcome(judgeRoles(ask({ grant: [worker] }, { more: own })))).toBe('operationUnderWay');
  });

  test('2.4 an operation that is over is not under way', () => {
    const more = { underWay: { operations: [operation('n4', { state: 'done' })], change: 'none' } } as const;
    expect(outcome(judgeRoles(ask({ grant: [member] }, { more })))).toBe('allowed');
  });
});

describe('revoking', () => {
  const node = record('n3', [role(member)]);

  test('11 the membership is leaving, under the same grant, until the node reports', () => {
    const verdict = allowed(judgeRoles(ask({ revoke: [member] }, { node, cluster: 'n1 n2 n3 n4' })));
    expect(verdict.roles).toEqual([role(member, 'leaving')]);
    expect(verdict.operations).toEqual([
      {
        kind: 'revokeRole',
        role: member,
        memberId: 'a3',
        ends: 'byNode',
        handOver: { raft: false, curator: false },
        bypassed: [],
      },
    ]);
    expect(verdict.text).toBe('n3 leaves the cluster (consensus-member)');
  });

  test('11 a membership that is leaving is not revoked again, and one that is not there neither', () => {
    const more = { underWay: { operations: [operation('n3')], change: 'none' } } as const;
    const leaving = record('n3', [role(member, 'leaving')]);
    expect(outcome(judgeRoles(ask({ revoke: [member] }, { node: leaving, more })))).toBe('needless');
    expect(outcome(judgeRoles(ask({ revoke: [member, worker] }, { node: record('n4', []) })))).toBe('needless');
  });

  test('12 another role is gone at once', () => {
    const both = record('n3', [role(member), role(controller)]);
    const verdict = allowed(judgeRoles(ask({ revoke: [controller] }, { node: both })));
    expect(verdict.roles).toEqual([role(member)]);
    expect(verdict.operations).toMatchObject([{ kind: 'revokeRole', role: controller, ends: 'atOnce' }]);
  });

  test('a role that was taken out of the configuration can still be revoked', () => {
    const old = record('n3', [role('old-role')]);
    expect(allowed(judgeRoles(ask({ revoke: ['old-role'] }, { node: old }))).roles).toEqual([]);
  });

  test.each<[string, Given, ErrorReason, RegExp]>([
    ['50 the last voter', { cluster: 'n3', node }, 'lastVoter', /^removing n3 \(a3\) is refused: it is the last voter/],
    ['50 3 → 2 without an acceptance', { node }, 'zeroTolerance', /2 voters would remain with quorum 2/],
    ['50 2 → 1 without an acceptance', { cluster: 'n1 n3', node }, 'zeroTolerance', /1 voter would remain/],
    [
      '49 a rest that is no quorum',
      { cluster: 'n1 n2- n3', node },
      'quorumLoss',
      /2 voters would remain, of which 2 must/,
    ],
    [
      '2.4 an operation for another node',
      { node, more: { underWay: { operations: [operation('n2')], change: 'none' } } },
      'operationUnderWay',
      /7f3a/,
    ],
    [
      '2.4 a change that somebody makes',
      { node, more: { underWay: { operations: [], change } } },
      'operationUnderWay',
      /n2/,
    ],
  ])('10 11 the membership is not revoked for %s', (_what, given, reason, message) => {
    const verdict = judgeRoles(ask({ revoke: [member] }, given));
    expect([outcome(verdict), refusal(verdict)]).toEqual([reason, expect.stringMatching(message)]);
  });

  test('49 50 zero tolerance that was accepted for this list goes with the role, and into the audit', () => {
    const accept = [
      { kind: 'zero-tolerance', memberId: 'a3', listHash: listHash(clusterId, membersOf('n1 n2 n3'), sha256) },
    ];
    const verdict = allowed(judgeRoles(ask({ revoke: [member], accept }, { node })));
    expect(verdict.roles).toEqual([{ ...role(member, 'leaving'), accept }]);
    expect(verdict.operations).toMatchObject([{ bypassed: ['zeroTolerance'] }]);
    const stale = [{ ...accept[0], kind: 'zero-tolerance', memberId: 'a3', listHash: 'ffff' }];
    expect(outcome(judgeRoles(ask({ revoke: [member], accept: stale }, { node })))).toBe('zeroTolerance');
  });

  test('2.4 45 46 whoever leads hands over first: the raft, the curator, or both', () => {
    const leader = record('n1', [role(member)]);
    const cluster = 'n1 n2 n3 n4';
    const both = allowed(judgeRoles(ask({ revoke: [member] }, { node: leader, cluster, leadsCurator: true })));
    expect(both.operations).toMatchObject([{ handOver: { raft: true, curator: true } }]);
    expect(both.text).toBe('n1 hands leadership over and leaves the cluster (consensus-member)');
    const raft = allowed(judgeRoles(ask({ revoke: [member] }, { node: leader, cluster })));
    expect(raft.operations).toMatchObject([{ handOver: { raft: true, curator: false } }]);
  });

  test('a silent node loses the role as well, and it is said that its agent must come back', () => {
    const more = { health: 'silent' } as const;
    const verdict = allowed(judgeRoles(ask({ revoke: [member] }, { node, cluster: 'n1 n2 n3 n4', more })));
    expect(verdict.warnings[0]).toMatch(/^The agent of n3 is silent: it leaves when it is back\./);
  });

  test('a grant that never came to a member is taken back without a look at the quorum', () => {
    const joining = record('n4', [role(member)]);
    const verdict = allowed(judgeRoles(ask({ revoke: [member] }, { node: joining, cluster: 'n1 n2- n3' })));
    expect(verdict.roles).toEqual([role(member, 'leaving')]);
    expect(verdict.operations).toMatchObject([{ memberId: null, ends: 'byNode' }]);
  });

  test('a learner leaves whatever the quorum', () => {
    const learner = record('n4', [role(member)]);
    expect(outcome(judgeRoles(ask({ revoke: [member] }, { node: learner, cluster: 'n1 n2 n4~' })))).toBe('allowed');
  });

  test('11 an unknown member list is no reason to let a voter go', () => {
    const question = ask({ revoke: [member] }, { node });
    const blind = { ...question.consensus, list: undefined, membership: { kind: 'unknown' } as const };
    expect(outcome(judgeRoles({ ...question, consensus: blind }))).toBe('etcdSilent');
    const unjudged = { ...question.consensus, removing: undefined };
    expect(outcome(judgeRoles({ ...question, consensus: unjudged }))).toBe('etcdSilent');
  });
});

describe('dependencies', () => {
  test.each<[string, readonly string[], Partial<RoleRequest>, string]>([
    [
      'a role without the one that it depends on',
      [],
      { grant: [controller] },
      `${controller} depends on ${member}, which n3 does not have`,
    ],
    [
      'a role below one that stays',
      [member, controller],
      { revoke: [member] },
      `${member} cannot be revoked from n3: ${controller} depends on it`,
    ],
    [
      'E9 the membership goes and what depends on it comes',
      [member],
      { revoke: [member], grant: [controller] },
      `${member} cannot be revoked from n3: ${controller} depends on it`,
    ],
    [
      'a membership that takes time, and at once what depends on it',
      [],
      { grant: [controller, member] },
      `${controller} depends on ${member}, which n3 does not have yet`,
    ],
    [
      'a chain of roles with a gap',
      [],
      { grant: [ingress] },
      `${ingress} depends on ${worker}, which n3 does not have`,
    ],
    [
      'a chain of roles that would lose its lower end',
      [worker, ingress],
      { revoke: [worker] },
      `${worker} cannot be revoked from n3: ${ingress} depends on it`,
    ],
  ])('2.1 12 refused by name: %s', (_what, has, request, message) => {
    const node = record(
      'n3',
      has.map((name) => role(name)),
    );
    const verdict = judgeRoles(ask(request, { node, cluster: 'n1 n2 n3 n4' }));
    expect([outcome(verdict), refusal(verdict)]).toEqual(['roleDependency', message]);
  });

  test('12 a membership that is leaving is none to depend on', () => {
    const node = record('n3', [role(member, 'leaving')]);
    expect(outcome(judgeRoles(ask({ grant: [controller] }, { node })))).toBe('roleDependency');
  });

  test('12 one request that drops both does so in the right order, whatever order it names', () => {
    const node = record('n3', [role(member), role(controller)]);
    for (const revoke of [
      [member, controller],
      [controller, member],
    ]) {
      const verdict = allowed(judgeRoles(ask({ revoke }, { node, cluster: 'n1 n2 n3 n4' })));
      expect(verdict.operations.map((one) => one.role)).toEqual([controller, member]);
      expect(verdict.roles).toEqual([role(member, 'leaving')]);
      expect(verdict.text).toBe(`n3 loses ${controller}, then leaves the cluster (${member})`);
    }
  });

  test('12 one request that grants a chain does so from below', () => {
    const verdict = allowed(judgeRoles(ask({ grant: [ingress, worker] })));
    expect(verdict.operations.map((one) => one.role)).toEqual([worker, ingress]);
  });

  test('12 what was broken before hinders nothing that does not concern it', () => {
    const node = record('n3', [role(ingress)]);
    expect(outcome(judgeRoles(ask({ grant: [member] }, { node: { ...node, nodeId: 'n4' } })))).toBe('allowed');
    expect(outcome(judgeRoles(ask({ grant: [worker] }, { node })))).toBe('allowed');
  });

  test('12 roles that require each other come together or not at all, and nothing hangs', () => {
    const circle = new Map([
      ['a', ['b']],
      ['b', ['a']],
    ]);
    expect(outcome(judgeRoles(ask({ grant: ['a'] }, { more: { requires: circle } })))).toBe('roleDependency');
    const verdict = judgeRoles(ask({ grant: ['a', 'b'] }, { more: { requires: circle } }));
    expect(outcome(verdict)).toBe('allowed');
  });

  test('12 the membership depends on nothing, whatever the configuration says', () => {
    const odd = new Map([[member, [worker]]]);
    expect(outcome(judgeRoles(ask({ grant: [member] }, { more: { requires: odd } })))).toBe('allowed');
  });
});

describe('requests', () => {
  test.each<[string, Partial<RoleRequest>, RegExp]>([
    ['nothing', {}, /names no role/],
    ['a role that there is not', { grant: ['tea'] }, /there is no role "tea"/],
    ['a name that every object has', { grant: ['constructor'] }, /there is no role "constructor"/],
    ['the revocation of a role that there is not', { revoke: ['tea'] }, /there is no role "tea"/],
    ['both at once', { grant: [worker], revoke: [worker] }, /both granted and revoked/],
  ])('2.1 invalid: %s', (_what, request, message) => {
    const verdict = judgeRoles(ask(request));
    expect([outcome(verdict), refusal(verdict)]).toEqual(['invalidArgument', expect.stringMatching(message)]);
  });

  test('2.1 a node that nobody knows, and one that was deleted', () => {
    const nobody = { ...ask({ grant: [worker] }), record: undefined };
    expect(outcome(judgeRoles(nobody))).toBe('notFound');
    const grave = { nodeId: 'n4', clusterId: 'c1', keyHash: 'a'.repeat(64), deletedAt: at, deletedBy: 'o' };
    expect(outcome(judgeRoles({ ...nobody, tombstones: [grave] }))).toBe('deleted');
  });

  test('a node has at most 32 roles', () => {
    const many = new Map(Array.from({ length: 40 }, (_one, index) => [`role-${index}`, []]));
    const node = record(
      'n4',
      [...many.keys()].slice(0, 31).map((name) => role(name)),
    );
    const more = { requires: many };
    expect(outcome(judgeRoles(ask({ grant: ['role-35'] }, { node, more })))).toBe('allowed');
    expect(outcome(judgeRoles(ask({ grant: ['role-35', 'role-36'] }, { node, more })))).toBe('invalidArgument');
  });

  test('a grant that takes the place of a spent one adds no role', () => {
    const many = new Map(Array.from({ length: 31 }, (_one, index) => [`role-${index}`, []]));
    const node = record('n4', [role(member), ...[...many.keys()].map((name) => role(name))]);
    const left = { grantId: 'g1', clusterId: 'c1', memberId: 0xa4n };
    const verdict = allowed(judgeRoles(ask({ grant: [member] }, { node, left, more: { requires: many } })));
    expect(verdict.roles).toHaveLength(32);
  });

  test('a change of roles is a new generation', () => {
    expect(withRoles(record('n4', []), [role(worker)])).toEqual({ ...record('n4', [role(worker)]), generation: 5 });
  });
});

describe('warnings', () => {
  test.each<[string, string, string, RegExp | undefined]>([
    ['1 → 2', 'n1', 'n4', /2 voters \(quorum 2\) none may fail, and either of them stops the cluster/],
    ['2 → 3', 'n1 n2', 'n4', undefined],
    ['3 → 4', 'n1 n2 n3', 'n4', /4 voters \(quorum 3\), an even number, 1 may fail: no more than before \(1\)/],
    ['5 → 4', 'n1 n2 n3 n4 n5', 'n5', /4 voters \(quorum 3\), an even number, 1 may fail: as many as with 3/],
    ['4 → 3', 'n1 n2 n3 n4', 'n4', undefined],
  ])('50 %s voters', (_what, cluster, nodeId, wanted) => {
    const joins = !cluster.includes(nodeId);
    const node = record(nodeId, joins ? [] : [role(member)]);
    const verdict = allowed(judgeRoles(ask(joins ? { grant: [member] } : { revoke: [member] }, { node, cluster })));
    expect(verdict.warnings).toEqual(wanted === undefined ? [] : [expect.stringMatching(wanted)]);
  });

  test('50 3 → 2 that was accepted says what is left', () => {
    const accept = [
      { kind: 'zero-tolerance', memberId: 'a3', listHash: listHash(clusterId, membersOf('n1 n2 n3'), sha256) },
    ];
    const node = record('n3', [role(member)]);
    const { warnings } = allowed(judgeRoles(ask({ revoke: [member], accept }, { node })));
    expect(warnings).toEqual([expect.stringMatching(/^With 2 voters \(quorum 2\) none may fail/)]);
  });

  test('2.4 a learner that is catching up makes up for nobody', () => {
    const node = record('n3', [role(member)]);
    const { warnings } = allowed(judgeRoles(ask({ revoke: [member] }, { node, cluster: 'n1 n2 n3 n4 n5~' })));
    expect(warnings).toEqual(['n5 is a learner and does not vote yet: it makes up for nobody.']);
  });

  test('46 the curator that leads resigns first', () => {
    const node = record('n3', [role(member)]);
    const given = { node, cluster: 'n1 n2 n3 n4', leadsCurator: true };
    expect(allowed(judgeRoles(ask({ revoke: [member] }, given))).warnings).toEqual([
      'The curator on n3 leads; it resigns first.',
    ]);
  });
});

describe('the safety check', () => {
  const standing = { kind: 'silent' } as const;
  const one = membersOf('n1')[0] as Member;
  const refusals: { readonly [Kind in Refusal['kind']]: readonly [Refusal & { readonly kind: Kind }, ErrorReason] } = {
    listUnconfirmed: [{ kind: 'listUnconfirmed' }, 'noQuorum'],
    listOld: [{ kind: 'listOld', ageMs: 9_000 }, 'etcdSilent'],
    noLeader: [{ kind: 'noLeader' }, 'noQuorum'],
    noQuorum: [{ kind: 'noQuorum', needed: 2, counted: 1, voters: 3 }, 'noQuorum'],
    noSuchMember: [{ kind: 'noSuchMember' }, 'notFound'],
    lastVoter: [{ kind: 'lastVoter' }, 'lastVoter'],
    quorumOfRest: [{ kind: 'quorumOfRest', needed: 2 }, 'quorumLoss'],
    'quorum-loss': [{ kind: 'quorum-loss', needed: 2 }, 'quorumLoss'],
    'zero-tolerance': [{ kind: 'zero-tolerance' }, 'zeroTolerance'],
    learnerSlotTaken: [{ kind: 'learnerSlotTaken', by: [one], max: 1 }, 'learnerSlotTaken'],
    peerUrlTaken: [{ kind: 'peerUrlTaken', by: one }, 'wrongState'],
    noConsent: [{ kind: 'noConsent' }, 'nodeSilent'],
    learnerNotReady: [{ kind: 'learnerNotReady', standing }, 'wrongState'],
    learnerNotStable: [{ kind: 'learnerNotStable', stableForMs: 1, neededMs: 2 }, 'wrongState'],
    targetIsLearner: [{ kind: 'targetIsLearner' }, 'wrongState'],
    targetDoesNotCount: [{ kind: 'targetDoesNotCount', standing }, 'wrongState'],
    targetNotActive: [{ kind: 'targetNotActive', activity: 'paused' }, 'wrongState'],
  };

  test.each(Object.values(refusals))('49 $kind has a reason of the contract', (given, reason) => {
    expect(reasonOf(given)).toBe(reason);
    expect(errorReasons).toContain(reason);
    const numbers = {
      before: { voters: 1, quorum: 1, tolerance: 0, counted: 1 },
      after: undefined,
      voters: [],
      listHash: '',
    };
    const said = safetyRefusal({ verdict: { kind: 'refused', refusal: given, numbers }, text: 'why' });
    expect(said).toEqual({ reason, message: 'why', hint: expect.stringMatching(/\.$/) });
    expect(safetyRefusal({ verdict: { kind: 'needless', numbers }, text: '' })).toBeUndefined();
  });
});

describe('the report of the node', () => {
  const left: LeftReport = { grantId: 'g1', clusterId: 'c1', memberId: 0xa3n };
  const absent: NodeMembership = { kind: 'absent' };
  const own: NodeMembership = { kind: 'member', member: membersOf('n3')[0] as Member };
  const leaving = [role(member, 'leaving'), role(worker)];

  test.each<[string, readonly AssignedRole[], LeftReport, NodeMembership, string]>([
    ['clears a role that is leaving', leaving, left, absent, 'cleared'],
    ['clears it also if no member came of the grant', leaving, { ...left, memberId: undefined }, absent, 'cleared'],
    ['about another grant clears nothing', leaving, { ...left, grantId: 'g0' }, absent, 'needless'],
    ['about another cluster clears nothing', leaving, { ...left, clusterId: 'c2' }, absent, 'needless'],
    ['that comes again finds nothing', [role(worker)], left, absent, 'needless'],
    ['waits while the list has the member', leaving, left, own, 'waiting'],
    ['waits while nobody knows', leaving, left, { kind: 'unknown' }, 'waiting'],
    ['waits while it is not clear', leaving, left, { kind: 'unclear', members: membersOf('n1 n2') }, 'waiting'],
    ['of a removal that nobody ordered spends the grant', [role(member)], left, absent, 'spent'],
    ['of a removal is too early while the list has the member', [role(member)], left, own, 'waiting'],
  ])('11 %s', (_what, roles, report, membership, wanted) => {
    const verdict = judgeLeft({ roles, clusterId: 'c1', membership }, report);
    expect(verdict.kind).toBe(wanted);
    if (verdict.kind === 'cleared') expect(verdict.roles).toEqual([role(worker)]);
  });
});

describe('any request', () => {
  const names = [member, controller, worker, ingress];
  const some = fc.subarray(names);
  const roles = fc
    .record({ held: some, leaving: fc.boolean() })
    .map(({ held, leaving }) => held.map((name) => role(name, name === member && leaving ? 'leaving' : 'granted')));
  const given = fc.record({
    cluster: fc.constantFrom(
      'n1 n2 n3',
      'n1 n2 n3 n4',
      'n1 n2 n3 n4 n5',
      'n1 n2- n3 n4 n5',
      'n1 n3',
      'n3',
      'n1 n2 n3~',
      'n1 n2',
    ),
    roles,
    state: fc.constantFrom('up', 'up', 'up', ...nodeStates),
    health: fc.constantFrom<RoleQuestion['health'][]>('healthy', 'healthy', 'silent', 'unknown'),
    busy: fc.constantFrom<OperationRecord[][]>([], [], [operation('n1')], [operation('n3')]),
    grant: some,
    revoke: some,
  });

  interface Example {
    cluster: string;
    roles: AssignedRole[];
    state: NodeRecord['state'];
    health: RoleQuestion['health'];
    busy: OperationRecord[];
    grant: string[];
    revoke: string[];
  }
  const example = (more: Partial<Example>): [Example] => [
    { cluster: 'n1 n2', roles: [], state: 'up', health: 'healthy', busy: [], grant: [], revoke: [], ...more },
  ];
  /** What chance meets too seldom to be relied on. */
  const examples = [
    example({ grant: [worker] }),
    example({ grant: [member], roles: [role(member)] }),
    example({ grant: [controller] }),
    example({ grant: [member], state: 'standby' }),
    example({ grant: [member], health: 'silent' }),
    example({ grant: [member], busy: [operation('n1')] }),
    example({ cluster: 'n3', roles: [role(member)], revoke: [member] }),
    example({ cluster: 'n1 n2 n3', roles: [role(member)], revoke: [member] }),
  ];

  test('E9 a request is done as a whole or not at all, and the result keeps all rules', () => {
    const outcomes = new Set<string>();
    void fc.assert(
      fc.property(given, ({ cluster, roles: has, state, health, busy, grant, revoke }) => {
        const node = record('n3', has, state);
        const more = { health, underWay: { operations: busy, change: 'none' } } as const;
        const question = ask({ grant, revoke }, { node, cluster, more });
        const before = structuredClone(node);
        const verdict = judgeRoles(question);
        outcomes.add(outcome(verdict));
        expect(node).toEqual(before);
        expect(judgeRoles(question)).toEqual(verdict);
        if (verdict.kind !== 'allowed') return;
        const next = withRoles(node, verdict.roles);
        expect(nodeSchema.safeParse(next).success).toBe(true);
        const granted = next.roles.filter((one) => one.state === 'granted').map(({ name }) => name);
        for (const name of grant) expect(granted).toContain(name);
        for (const name of revoke) expect(granted).not.toContain(name);
        // A membership is never cleared by an order, and nothing is granted that depends on what goes.
        if (has.some(({ name }) => name === member)) expect(next.roles.map(({ name }) => name)).toContain(member);
        for (const name of revoke.filter((one) => has.some((own) => own.name === one && own.state === 'granted'))) {
          expect(granted.filter((one) => requires.get(one)?.includes(name))).toEqual([]);
        }
        for (const name of grant) {
          if (has.some((one) => one.name === name && one.state === 'granted')) continue;
          expect(state).toBe('up');
          for (const below of requires.get(name) ?? []) expect(granted).toContain(below);
        }
        // What was done is not done again.
        expect(outcome(judgeRoles({ ...question, record: next }))).toBe('needless');
        // Another node's operation stands against each change of who is a member.
        if (busy.length > 0) expect(verdict.operations.map((one) => one.role)).not.toContain(member);
        expect(busy.some(({ nodeId }) => nodeId === 'n3')).toBe(false);
      }),
      { numRuns: 800, examples },
    );
    for (const wanted of [
      'allowed',
      'needless',
      'wrongState',
      'roleDependency',
      'operationUnderWay',
      'nodeSilent',
      'zeroTolerance',
      'lastVoter',
    ]) {
      expect(outcomes).toContain(wanted);
    }
  });
});

describe('the place of a node', () => {
  const nodes = [record('n1', []), record('n2', []), record('n3', [])];
  const place = (cluster: string, nodeId: string, raft: bigint | undefined) => {
    const list: MemberList = { clusterId, answeredBy: 0xa1n, members: membersOf(cluster), linearizable: true };
    return placeOf(membershipOf(nodeId, nodes, list), list, { raft, isCurator: false });
  };

  test.each<[string, string, bigint | undefined, string, boolean | 'unknown']>([
    ['n1 n2', 'n1', 0xa1n, 'voter', true],
    ['n1 n2', 'n2', 0xa1n, 'voter', false],
    ['n1 n2', 'n2', undefined, 'voter', 'unknown'],
    ['n1', 'n1', 0xa1n, 'lastVoter', true],
    ['n1 n2~', 'n1', 0xa1n, 'lastVoter', true],
    ['n1 n2~', 'n2', 0xa1n, 'learner', false],
    ['n1 n2', 'n3', 0xa1n, 'none', false],
  ])('9 in %j %s (leader %s): %s', (cluster, nodeId, raft, consensus, leadsRaft) => {
    expect(place(cluster, nodeId, raft)).toEqual({ consensus, leadsRaft, leadsCurator: false });
  });

  test('9 a list that no quorum confirmed says nothing of anybody', () => {
    const list: MemberList = { clusterId, answeredBy: 0xa1n, members: membersOf('n1'), linearizable: false };
    for (const given of [list, undefined]) {
      const membership = membershipOf('n3', nodes, given);
      expect(membership).toEqual({ kind: 'unknown' });
      expect(placeOf(membership, given, { raft: 0xa1n, isCurator: true })).toEqual({
        consensus: 'unknown',
        leadsRaft: 'unknown',
        leadsCurator: true,
      });
    }
    expect(formatId(clusterId)).toBe('c1');
  });
});
