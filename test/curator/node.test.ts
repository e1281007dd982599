// Goal: a node goes through its life in one order, each event is safe to repeat, and a node that is needed is not deleted.
// Method: every cell of the table against a restated one; each row of the deletion in its order; then random lives.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  judgeNode,
  type NodeEvent,
  type NodeEventKind,
  type NodeLife,
  type NodeSituation,
  type NodeVerdict,
  nodeTransitions,
} from '../../src/curator/node.ts';
import type { NodePlace } from '../../src/curator/node-leaving.ts';
import {
  type AssignedRole,
  type NodeRecord,
  type NodeState,
  nodeSchema,
  type Tombstone,
} from '../../src/curator/records.ts';
import { errorReasons } from '../../src/curator/refusal.ts';
import { judgeLeft } from '../../src/curator/role-left.ts';
import { judgeRoles, withRoles } from '../../src/curator/roles.ts';

const key = 'a'.repeat(64);
const otherKey = 'b'.repeat(64);
const at = '2026-01-01T00:00:00.000Z';
const nowhere: NodePlace = { consensus: 'none', leadsRaft: false, leadsCurator: false };
const noBypass = { hasRoles: false, notDecommissioned: false };
const bothBypasses = { hasRoles: true, notDecommissioned: true };

function role(name: string, state: AssignedRole['state'] = 'granted'): AssignedRole {
  return { name, state, grantId: `grant-${name}`, grantedAt: at, grantedBy: 'spiffe://t/operator/o', accept: [] };
}

function record(state: NodeState, roles: readonly AssignedRole[] = []): NodeRecord {
  return {
    nodeId: 'n3',
    state,
    keyHash: key,
    ticketId: 't1',
    peerUrls: ['https://n3:2380'],
    clientUrls: [],
    registeredAt: at,
    roles: [...roles],
    generation: 0,
  };
}

const tombstone: Tombstone = { nodeId: 'n3', clusterId: 'c1', keyHash: key, deletedAt: at, deletedBy: 'o' };

function situation(life: NodeLife, roles: readonly AssignedRole[] = []): NodeSituation {
  const known = life === 'absent' || life === 'deleted' ? undefined : record(life, roles);
  return { nodeId: 'n3', record: known, tombstones: life === 'deleted' ? [tombstone] : [] };
}

function event(kind: NodeEventKind, keyHash = key): NodeEvent {
  switch (kind) {
    case 'requestDecommission':
      return { kind, place: nowhere };
    case 'delete':
      return { kind, place: nowhere, bypass: { ...noBypass, notDecommissioned: true } };
    default:
      return { kind, keyHash };
  }
}

function deletion(place: Partial<NodePlace> = {}, bypass = noBypass): NodeEvent {
  return { kind: 'delete', place: { ...nowhere, ...place }, bypass };
}

/** The state gone to, `unchanged`, or the reason of the refusal. */
function outcome(verdict: NodeVerdict): string {
  if (verdict.kind === 'refused') return verdict.refusal.reason;
  return verdict.kind === 'moved' ? verdict.state : 'unchanged';
}

function judged(life: NodeLife, what: NodeEvent, roles: readonly AssignedRole[] = []): string {
  return outcome(judgeNode(situation(life, roles), what));
}

const kinds: readonly NodeEventKind[] = [
  'register',
  'approve',
  'commit',
  'rejoin',
  'requestDecommission',
  'beginDecommission',
  'finishDecommission',
  'delete',
];

// biome-ignore format: a table
const expected: Readonly<Record<NodeLife, readonly string[]>> = {
  //                      register      approve       commit        rejoin        request                  begin              finish            delete
  absent:                ['new',        'notFound',   'notFound',   'notFound',   'notFound',              'notFound',        'notFound',       'notFound'],
  new:                   ['unchanged',  'standby',    'wrongState', 'wrongState', 'wrongState',            'wrongState',      'wrongState',     'deleted'],
  standby:               ['unchanged',  'unchanged',  'up',         'wrongState', 'wrongState',            'wrongState',      'wrongState',     'deleted'],
  up:                    ['unchanged',  'unchanged',  'unchanged',  'unchanged',  'decommissionRequested', 'wrongState',      'wrongState',     'deleted'],
  decommissionRequested: ['wrongState', 'wrongState', 'unchanged',  'unchanged',  'unchanged',             'decommissioning', 'wrongState',     'wrongState'],
  decommissioning:       ['wrongState', 'wrongState', 'wrongState', 'unchanged',  'unchanged',             'unchanged',       'decommissioned', 'wrongState'],
  decommissioned:        ['wrongState', 'wrongState', 'wrongState', 'wrongState', 'unchanged',             'unchanged',       'unchanged',      'deleted'],
  deleted:               ['deleted',    'deleted',    'deleted',    'deleted',    'deleted',               'deleted',         'deleted',        'unchanged'],
};
const lives = Object.keys(expected) as NodeLife[];
/** The feature that an event belongs to. */
const feature: Readonly<Record<NodeEventKind, string>> = {
  register: '1',
  approve: '2',
  commit: '3',
  rejoin: '4',
  requestDecommission: '5',
  beginDecommission: '5',
  finishDecommission: '5',
  delete: '6',
};

describe('the life of a node', () => {
  test('every state answers every event', () => {
    expect(Object.keys(nodeTransitions).sort()).toEqual([...lives].sort());
    for (const life of lives) expect(Object.keys(nodeTransitions[life]).sort()).toEqual([...kinds].sort());
  });

  for (const life of lives) {
    for (const [index, kind] of kinds.entries()) {
      const wanted = expected[life][index] ?? '';
      test(`${feature[kind]} ${kind} of a node that is ${life}: ${wanted}`, () => {
        const verdict = judgeNode(situation(life), event(kind));
        // A deleted node that is deleted again, or `deleted` as a reason: told apart by the kind of the verdict.
        expect(outcome(verdict)).toBe(wanted);
        if (life === 'deleted' && kind !== 'delete') expect(verdict.kind).toBe('refused');
        if (verdict.kind === 'refused') expect(verdict.refusal.message).toMatch(/^n3 cannot [a-z ]+: .{10}/);
        if (verdict.kind === 'refused') expect(verdict.refusal.hint).not.toBe('');
      });
    }
  }

  test('a refusal names the state as the contract writes it, and what helps', () => {
    expect(judgeNode(situation('standby'), event('rejoin'))).toEqual({
      kind: 'refused',
      refusal: {
        reason: 'wrongState',
        message: 'n3 cannot rejoin: it was approved and has not committed yet (STANDBY)',
        hint: 'Its agent commits by itself; if it does not, look at its log.',
      },
    });
  });

  test('the reasons are those of the contract', () => {
    const proto = readFileSync(join(import.meta.dirname, '../../proto/curator/v1/error.proto'), 'utf8');
    const names = [...proto.matchAll(/^ {2}ERROR_REASON_([A-Z_]+) = \d+;/gm)].map(([, name = '']) =>
      name.toLowerCase().replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
    );
    expect(errorReasons).toEqual(names.filter((name) => name !== 'unspecified'));
  });
});

describe('keys', () => {
  const stands = lives.filter((life) => life !== 'absent' && life !== 'deleted');

  test.each(stands)('1 another key is refused as such in the state %s, whatever the node wants', (life) => {
    for (const kind of kinds.filter((one) => 'keyHash' in event(one))) {
      expect([kind, judged(life, event(kind, otherKey))]).toEqual([kind, 'otherKey']);
    }
  });

  test('2 an operator who has seen the key approves that key alone; without one the node is taken as it is', () => {
    expect(judged('new', { kind: 'approve', keyHash: key })).toBe('standby');
    expect(judged('new', { kind: 'approve', keyHash: otherKey })).toBe('otherKey');
    expect(judged('new', { kind: 'approve', keyHash: undefined })).toBe('standby');
  });

  test('3 commit after a lost answer is the same answer again, by the key', () => {
    expect(judged('up', { kind: 'commit', keyHash: key })).toBe('unchanged');
    expect(judged('up', { kind: 'commit', keyHash: otherKey })).toBe('otherKey');
  });

  test('8 the key of a deleted node is deleted under any name, also beside a new record', () => {
    const elsewhere: NodeSituation = { nodeId: 'n9', record: undefined, tombstones: [tombstone] };
    const cameBack: NodeSituation = {
      nodeId: 'n3',
      record: { ...record('up'), keyHash: otherKey },
      tombstones: [tombstone],
    };
    for (const kind of ['register', 'commit', 'rejoin', 'beginDecommission', 'finishDecommission'] as const) {
      for (const place of [elsewhere, cameBack]) {
        const verdict = judgeNode(place, event(kind));
        expect([kind, verdict.kind, outcome(verdict)]).toEqual([kind, 'refused', 'deleted']);
      }
    }
  });

  test('a machine that was installed anew comes back under its old name, with a new key', () => {
    const stands = { ...situation('absent'), tombstones: [tombstone] };
    expect(outcome(judgeNode(stands, event('register', otherKey)))).toBe('new');
    expect(outcome(judgeNode(stands, event('commit', otherKey)))).toBe('notFound');
    const back = { ...stands, record: { ...record('new'), keyHash: otherKey } };
    expect(outcome(judgeNode(back, { kind: 'approve', keyHash: undefined }))).toBe('standby');
    expect(outcome(judgeNode(back, event('register', otherKey)))).toBe('unchanged');
  });

  test('a refusal of a deleted node names the cluster', () => {
    const verdict = judgeNode(situation('deleted'), event('rejoin'));
    expect(verdict).toMatchObject({ refusal: { message: 'n3 cannot rejoin: it was deleted from cluster c1' } });
  });

  test.each(['', 'N3', 'n3/x', '../n3', '-n3', 'n'.repeat(254), 'n 3'])(
    '2.2 the id %j is no id of a node',
    (nodeId) => {
      for (const kind of kinds) {
        expect(outcome(judgeNode({ nodeId, record: undefined, tombstones: [] }, event(kind)))).toBe('invalidArgument');
      }
    },
  );

  test.each(['', 'abc', 'A'.repeat(64), 'a'.repeat(66)])('2.1 a key %j is not 32 bytes', (keyHash) => {
    for (const kind of kinds.filter((one) => 'keyHash' in event(one))) {
      expect(judged('up', event(kind, keyHash))).toBe('invalidArgument');
    }
  });
});

describe('decommissioning', () => {
  test.each<[string, readonly AssignedRole[]]>([
    ['with the membership', [role('consensus-member')]],
    ['with a membership that it is losing', [role('consensus-member', 'leaving')]],
    ['with another role', [role('kubernetes-worker')]],
  ])('5 no step of it is taken %s', (_what, roles) => {
    expect(judged('up', event('requestDecommission'), roles)).toBe('hasRoles');
    expect(judged('decommissionRequested', event('beginDecommission'), roles)).toBe('hasRoles');
    expect(judged('decommissioning', event('finishDecommission'), roles)).toBe('hasRoles');
  });

  test.each<[NodePlace['consensus'], string]>([
    ['none', 'decommissionRequested'],
    ['learner', 'hasRoles'],
    ['voter', 'hasRoles'],
    ['lastVoter', 'hasRoles'],
    ['unknown', 'etcdSilent'],
  ])('5 a node without a role whose member is %s: %s', (consensus, wanted) => {
    const place: NodePlace = { ...nowhere, consensus };
    expect(judged('up', { kind: 'requestDecommission', place })).toBe(wanted);
  });

  test('5 the whole chain, each step twice', () => {
    let known = record('up');
    const steps = ['requestDecommission', 'beginDecommission', 'finishDecommission', 'delete'] as const;
    const seen: string[] = [];
    for (const kind of steps) {
      const verdict = judgeNode({ nodeId: 'n3', record: known, tombstones: [] }, event(kind));
      seen.push(outcome(verdict));
      if (verdict.kind !== 'moved' || verdict.state === 'deleted') break;
      known = { ...known, state: verdict.state };
      seen.push(judged(known.state, event(kind)));
    }
    expect(seen).toEqual([
      'decommissionRequested',
      'unchanged',
      'decommissioning',
      'unchanged',
      'decommissioned',
      'unchanged',
      'deleted',
    ]);
  });
});

describe('deletion', () => {
  const member = role('consensus-member');
  const controller = role('kubernetes-controller');
  const worker = role('kubernetes-worker');

  test('6 2.2 a node that nobody knows', () => {
    expect(judged('absent', deletion({}, bothBypasses))).toBe('notFound');
  });

  test.each<[string, readonly AssignedRole[], RegExp]>([
    ['consensus-member', [member], /^n3 still has consensus-member$/],
    ['kubernetes-controller', [controller], /^n3 still has kubernetes-controller$/],
    ['kubernetes-worker', [worker], /^n3 still has kubernetes-worker$/],
    ['all, the membership first', [worker, controller, member], /consensus-member, kubernetes-worker, kubernetes-c/],
    ['a membership that is leaving', [role('consensus-member', 'leaving')], /consensus-member \(leaving\)$/],
  ])('6 2.2 with %s it is refused without the bypass for roles', (_what, roles, message) => {
    for (const state of ['new', 'standby', 'up', 'decommissioning', 'decommissioned'] as const) {
      const verdict = judgeNode(situation(state, roles), deletion({}, { ...noBypass, notDecommissioned: true }));
      expect([state, outcome(verdict)]).toEqual([state, 'hasRoles']);
      if (verdict.kind === 'refused') expect(verdict.refusal.message).toMatch(message);
    }
    expect(judged('decommissioned', deletion({}, { ...noBypass, hasRoles: true }), roles)).toBe('deleted');
  });

  test.each(['new', 'standby', 'decommissioned'] as const)('6 2.2 in the state %s no bypass is needed', (state) => {
    expect(judgeNode(situation(state), deletion())).toEqual({ kind: 'moved', state: 'deleted', bypassed: [] });
  });

  test('6 2.2 UP needs the bypass for what was not decommissioned', () => {
    expect(judged('up', deletion())).toBe('notDecommissioned');
    expect(judged('up', deletion({}, { hasRoles: true, notDecommissioned: false }))).toBe('notDecommissioned');
    expect(judged('up', deletion({}, { hasRoles: false, notDecommissioned: true }))).toBe('deleted');
  });

  test.each(['decommissionRequested', 'decommissioning'] as const)(
    '6 2.2 in the state %s it is refused with every bypass',
    (state) => {
      expect(judged(state, deletion())).toBe('wrongState');
      expect(judged(state, deletion({}, bothBypasses))).toBe('wrongState');
    },
  );

  test('6 2.2 the order: roles, state, then what no bypass overrides', () => {
    const worst: Partial<NodePlace> = { consensus: 'lastVoter', leadsRaft: true, leadsCurator: true };
    const refusals = [noBypass, { ...noBypass, hasRoles: true }, bothBypasses].map((bypass) =>
      judged('up', deletion(worst, bypass), [member]),
    );
    expect(refusals).toEqual(['hasRoles', 'notDecommissioned', 'lastVoter']);
    expect(judged('up', deletion({ ...worst, consensus: 'voter' }, bothBypasses), [member])).toBe('leads');
  });

  test('7 only bypasses that were needed are named for the audit', () => {
    const bypassed = (state: NodeState, roles: readonly AssignedRole[]) => {
      const verdict = judgeNode(situation(state, roles), deletion({}, bothBypasses));
      return verdict.kind === 'moved' ? verdict.bypassed : undefined;
    };
    expect(bypassed('up', [worker])).toEqual(['hasRoles', 'notDecommissioned']);
    expect(bypassed('up', [])).toEqual(['notDecommissioned']);
    expect(bypassed('decommissioned', [worker])).toEqual(['hasRoles']);
    expect(bypassed('new', [])).toEqual([]);
  });

  test.each(['new', 'standby', 'up', 'decommissioned'] as const)(
    '9 the last member is not deleted in the state %s, with every bypass',
    (state) => {
      expect(judged(state, deletion({ consensus: 'lastVoter' }, bothBypasses))).toBe('lastVoter');
    },
  );

  test.each<[string, Partial<NodePlace>, string]>([
    ['whose etcd leads', { consensus: 'voter', leadsRaft: true }, 'leads'],
    ['on which the curator leads', { consensus: 'voter', leadsCurator: true }, 'leads'],
    ['on which the curator leads, though it is no member', { leadsCurator: true }, 'leads'],
    ['of which it is not known whether it leads', { consensus: 'voter', leadsRaft: 'unknown' }, 'noQuorum'],
    ['of which it is not known whether it is a member', { consensus: 'unknown' }, 'etcdSilent'],
    ['that votes and does not lead', { consensus: 'voter' }, 'deleted'],
    ['that is a learner', { consensus: 'learner' }, 'deleted'],
  ])('6 E4 9 the node %s: %s', (_what, place, wanted) => {
    expect(judged('up', deletion(place, bothBypasses), [member])).toBe(wanted);
  });
});

describe('any life', () => {
  type Act =
    | NodeEvent
    | { readonly kind: 'grant'; readonly role: string }
    | { readonly kind: 'revoke'; readonly role: string }
    | { readonly kind: 'left' };
  const grants = ['consensus-member', 'kubernetes-controller', 'kubernetes-worker'].flatMap((name): readonly Act[] => [
    { kind: 'grant', role: name },
    { kind: 'revoke', role: name },
  ]);
  const others: readonly Act[] = [
    ...(['register', 'approve', 'commit', 'beginDecommission'] as const).map((kind) => event(kind, otherKey)),
    ...(['unknown', 'voter', 'lastVoter'] as const).flatMap((consensus): readonly Act[] => [
      { kind: 'requestDecommission', place: { ...nowhere, consensus } },
      deletion({ consensus }, bothBypasses),
    ]),
    deletion(),
    deletion({}, bothBypasses),
    deletion({ leadsCurator: true }, bothBypasses),
    { kind: 'left' },
  ];
  const acts = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom<Act[]>(...kinds.filter((kind) => kind !== 'delete').map((kind) => event(kind))),
    },
    { weight: 2, arbitrary: fc.constantFrom<Act[]>(...grants) },
    { weight: 1, arbitrary: fc.constantFrom<Act[]>(...others) },
  );
  const numbers = {
    before: { voters: 1, quorum: 1, tolerance: 0, counted: 1 },
    after: undefined,
    voters: [],
    listHash: '0',
  };

  /** The situation after an act: the curator writes what was allowed, and nothing else. */
  function live(now: NodeSituation, act: Act): NodeSituation {
    if (act.kind === 'grant' || act.kind === 'revoke') return withGrant(now, act.kind, act.role);
    const { record: known, nodeId, tombstones } = now;
    if (act.kind === 'left') {
      const left = { grantId: 'g', clusterId: 'c1', memberId: undefined };
      const verdict = judgeLeft({ roles: known?.roles ?? [], clusterId: 'c1', membership: { kind: 'absent' } }, left);
      return verdict.kind === 'cleared' && known ? { ...now, record: withRoles(known, verdict.roles) } : now;
    }
    const verdict = judgeNode(now, act);
    if (verdict.kind !== 'moved') return now;
    if (verdict.state === 'deleted') {
      const grave = { ...tombstone, keyHash: known?.keyHash ?? key };
      return { nodeId, record: undefined, tombstones: [...tombstones, grave] };
    }
    if (known !== undefined) return { ...now, record: { ...known, state: verdict.state } };
    return { ...now, record: { ...record('new'), keyHash: act.kind === 'register' ? act.keyHash : key } };
  }

  function withGrant(now: NodeSituation, kind: 'grant' | 'revoke', name: string): NodeSituation {
    const verdict = judgeRoles({
      ...now,
      health: 'healthy',
      underWay: { operations: [], change: 'none' },
      consensus: {
        list: { clusterId: 0xc1n, answeredBy: 1n, members: [], linearizable: true },
        membership: { kind: 'absent' },
        leadsCurator: false,
        left: undefined,
        adding: { verdict: { kind: 'allowed', numbers, handOverFirst: false, overridden: undefined }, text: '' },
        removing: undefined,
      },
      requires: new Map([
        ['kubernetes-controller', ['consensus-member']],
        ['kubernetes-worker', []],
      ]),
      request: { grant: kind === 'grant' ? [name] : [], revoke: kind === 'revoke' ? [name] : [], accept: [] },
      stamp: { grantId: 'g', at, by: 'o' },
    });
    if (verdict.kind !== 'allowed' || now.record === undefined) return now;
    return { ...now, record: withRoles(now.record, verdict.roles) };
  }

  const chain: readonly NodeState[] = ['decommissionRequested', 'decommissioning', 'decommissioned'];
  const onward: readonly NodeState[] = ['new', 'standby', 'up', ...chain];
  const start = fc.constantFrom(...lives).map((life) => situation(life));
  const sequences = fc.array(acts, { maxLength: 60 });

  test('5 no sequence of events leads to roles on a node that is being decommissioned, nor backwards, nor past a state', () => {
    const reached = new Set<string>();
    void fc.assert(
      fc.property(start, sequences, (first, sequence) => {
        let now = first;
        for (const act of sequence) {
          const before = now.record;
          now = live(now, act);
          if (now.record === undefined) continue;
          const { state, roles } = now.record;
          reached.add(`${before?.state ?? 'absent'} ${state}`);
          expect(nodeSchema.safeParse(now.record).success).toBe(true);
          if (state !== 'up') expect(roles).toEqual([]);
          if (before === undefined) expect(state).toBe('new');
          else expect([0, 1]).toContain(onward.indexOf(state) - onward.indexOf(before.state));
        }
      }),
      { numRuns: 500 },
    );
    for (const [index, state] of onward.entries())
      expect(reached).toContain(`${onward[index - 1] ?? 'absent'} ${state}`);
  });

  test('what was answered has no effect when it comes again', () => {
    void fc.assert(
      fc.property(start, sequences, acts, (first, sequence, act) => {
        const now = live(sequence.reduce(live, first), act);
        expect(live(now, act)).toEqual(now);
      }),
      { numRuns: 500 },
    );
  });

  test('a judgement changes nothing by itself, refused or not', () => {
    void fc.assert(
      fc.property(start, sequences, acts, (first, sequence, act) => {
        const now = sequence.reduce(live, first);
        const before = structuredClone(now);
        live(now, act);
        expect(now).toEqual(before);
      }),
    );
  });
});
