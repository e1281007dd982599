import { describe, expect, test } from 'vitest';
import type { Observed } from '../../src/agent/observed.ts';
import { plan } from '../../src/agent/plan.ts';
import type { Plan } from '../../src/agent/step.ts';

const identity = {
  clusterId: 0xc1n,
  memberId: 0xa1n,
  name: 'n1',
  peerUrl: 'http://127.0.0.1:2380',
  isLearner: false,
  lastVoters: [],
} as const;

function roleOf(
  role: 'consensus-member' | 'leaving' | 'none',
  more: { readonly spent?: boolean; readonly hasEndpoints?: boolean } = {},
): Observed['role'] {
  const rest = { grantId: 'g1', spent: false, clusterId: undefined, hasEndpoints: false, accepted: [] };
  return { kind: 'known', role, ...rest, ...more };
}

/** A voter that is down and may start: what differs is said by each test. */
function seen(change: Partial<Observed> = {}): Observed {
  return {
    supervision: { kind: 'full' },
    volume: { kind: 'present' },
    intent: { kind: 'run', because: '' },
    paused: false,
    founding: 'done',
    identity,
    data: { kind: 'member', clusterId: 0xc1n, memberId: 0xa1n },
    process: { kind: 'down' },
    removal: { kind: 'none' },
    peers: { kind: 'asked', lists: [], silent: 2 },
    start: { kind: 'now', because: 'etcd is to run' },
    preflight: [],
    role: roleOf('consensus-member'),
    join: { kind: 'none' },
    cluster: { kind: 'notAsked' },
    leftRecord: false,
    ...change,
  };
}

const up = (
  phase: 'starting' | 'ready' | 'stopping' | 'killing',
  ill: '' | 'stuck' | 'dataLocked' = '',
): Observed['process'] => ({
  kind: 'up',
  phase,
  life: 1,
  ill,
});

/** `act startMember`, `blocked diskLost`, `waiting`, `converged`. */
function short(made: Plan): string {
  if (made.kind === 'act') return `act ${made.step.kind}`;
  if (made.kind === 'blocked') return `blocked ${made.by.kind}`;
  return made.kind;
}

const proven = {
  kind: 'proven',
  evidence: ['own log'],
  ripe: true,
  recorded: false,
  exitOverdue: false,
  archived: false,
  retired: false,
} as const;

describe('the plan of a node that is down', () => {
  test.each<[string, Partial<Observed>, string]>([
    ['its member is started once the peers were asked', {}, 'act startMember'],
    ['the peers are asked before a start', { peers: { kind: 'notAsked' } }, 'act askPeers'],
    ['a node with no other voter asks nobody', { peers: { kind: 'nobody' } }, 'act startMember'],
    [
      'the role may be unknown: a reboot needs no network',
      { role: { kind: 'unknown', because: 'no file' } },
      'act startMember',
    ],
    [
      'A27 what an operator stopped stays stopped',
      { intent: { kind: 'stopped', because: 'stop' } },
      'blocked stoppedByOperator',
    ],
    [
      'while the machine goes down nothing is begun',
      { intent: { kind: 'shutdown', because: 'the machine goes down' } },
      'blocked shuttingDown',
    ],
    [
      'also not for a member that was removed meanwhile',
      { intent: { kind: 'shutdown', because: 'the machine goes down' }, removal: proven },
      'blocked shuttingDown',
    ],
    [
      'a log that went back is not started, before anybody is asked',
      {
        data: { kind: 'member', clusterId: 0xc1n, memberId: 0xa1n, regression: 'it ends at 5, and had applied 9' },
        peers: { kind: 'notAsked' },
      },
      'blocked logRegressed',
    ],
    [
      'a delay of the restart policy is waited out',
      { start: { kind: 'later', inMs: 500, because: 'backoff' } },
      'waiting',
    ],
    [
      'C12 a hold is made durable first',
      { start: { kind: 'hold', class: 'data corrupt', until: 'operator', because: 'crc', recorded: false } },
      'act recordHold',
    ],
    [
      'C12 and then stands until somebody changes something',
      { start: { kind: 'hold', class: 'data corrupt', until: 'operator', because: 'crc', recorded: true } },
      'blocked held',
    ],
    [
      'a missing TLS file stops the start',
      { preflight: [{ what: 'no cert', hint: 'put it there' }] },
      'blocked preflight',
    ],
    ['pause never keeps an active member from starting', { paused: true }, 'act startMember'],
    [
      'a process that is not proven ours stops everything',
      { process: { kind: 'unknown', because: 'lock held' } },
      'blocked processUnknown',
    ],
  ])('%s', (_title, change, expected) => {
    expect(short(plan(seen(change)))).toBe(expected);
  });
});

describe('the plan for what lies in the data directory', () => {
  test.each<[string, Partial<Observed>, string]>([
    ['A19 a lost disk is never refilled under the old id', { data: { kind: 'absent' } }, 'blocked diskLost'],
    ['an emptied directory is a lost disk', { data: { kind: 'empty' } }, 'blocked diskLost'],
    [
      'K22 data of another member is not started',
      { data: { kind: 'member', clusterId: 0xc1n, memberId: 9n } },
      'blocked dataOfAnotherMember',
    ],
    [
      'N15 data of another cluster is not started',
      { data: { kind: 'member', clusterId: 9n, memberId: 0xa1n } },
      'blocked dataOfAnotherMember',
    ],
    ['data without a recorded identity is held', { identity: undefined, founding: 'none' }, 'blocked dataNotOurs'],
    ['C13 damage is for etcd to judge', { data: { kind: 'broken', because: 'crc' } }, 'act startMember'],
    [
      'a log that was deleted is never started over',
      { data: { kind: 'logLost', because: 'no WAL' } },
      'blocked dataBroken',
    ],
    ['what cannot be read is not absent', { data: { kind: 'unknown', because: 'EACCES' } }, 'blocked dataUnknown'],
    [
      'a volume that is not there is not an empty disk',
      { volume: { kind: 'missing', path: '/d' }, data: { kind: 'absent' } },
      'blocked volumeMissing',
    ],
    [
      'A14 without a readable record of the marker, its own data shows that the volume is there',
      { volume: { kind: 'unknown', because: 'damaged' } },
      'act startMember',
    ],
    [
      'A14 and without its own data nothing does',
      { volume: { kind: 'unknown', because: 'damaged' }, data: { kind: 'absent' } },
      'blocked volumeUnknown',
    ],
    [
      'A14 nor does the data of another',
      { volume: { kind: 'unknown', because: 'damaged' }, data: { kind: 'member', clusterId: 0xc1n, memberId: 9n } },
      'blocked volumeUnknown',
    ],
    [
      'configuration and role alone never found a cluster',
      { identity: undefined, founding: 'none', data: { kind: 'absent' }, volume: { kind: 'unused' } },
      'blocked notAMember',
    ],
  ])('%s', (_title, change, expected) => {
    expect(short(plan(seen(change)))).toBe(expected);
  });
});

describe('A01 the plan of a node whose agent was killed in a join or a change', () => {
  const join = {
    clusterId: 0xc1n,
    memberId: 0xa1n,
    peerUrl: 'http://127.0.0.1:2380',
    grantId: 'g1',
    forMs: 0,
  } as const;
  const heard: Observed['cluster'] & { kind: 'heard' } = {
    kind: 'heard',
    question: {
      list: { clusterId: 0xc1n, answeredBy: 0xa2n, members: [], linearizable: true },
      listAtMs: 0,
      answers: [],
      leader: undefined,
      nowMs: 0,
      activities: new Map(),
      accepted: [],
      force: false,
      sha256: () => '',
    },
    peerUrl: join.peerUrl,
    consent: undefined,
    stalledForMs: 0,
    space: { neededBytes: 0, freeBytes: 1 },
  };
  const unstartedLearner = { id: 0xa1n, name: '', peerUrls: [join.peerUrl], clientUrls: [], isLearner: true };
  const unstarted: Observed['cluster'] = {
    ...heard,
    question: { ...heard.question, list: { ...heard.question.list, members: [unstartedLearner] } },
  };
  const voter = { id: 0xa2n, name: 'n2', peerUrls: ['http://127.0.0.1:1'], clientUrls: [], isLearner: false };
  const agreed: Observed['cluster'] = {
    ...heard,
    question: {
      ...heard.question,
      list: { ...heard.question.list, members: [voter] },
      answers: [
        { memberId: 0xa2n, clusterId: 0xc1n, leader: 0xa2n, appliedIndex: 5n, isLearner: false, askedAtMs: 0, atMs: 0 },
      ],
      leader: { memberId: 0xa2n, index: 5n, atMs: 0 },
    },
  };
  test.each<[string, Partial<Observed>, string]>([
    [
      'a learner that has not started within ten minutes is taken out again',
      { data: { kind: 'prepared' }, join: { kind: 'started', ...join, forMs: 600_000 }, cluster: unstarted },
      'act expireJoin',
    ],
    [
      'not before',
      { data: { kind: 'prepared' }, join: { kind: 'started', ...join, forMs: 599_999 }, cluster: unstarted },
      'act startJoiner',
    ],
    [
      'not while an operator has paused membership changes',
      {
        data: { kind: 'prepared' },
        join: { kind: 'started', ...join, forMs: 600_000 },
        cluster: unstarted,
        paused: true,
      },
      'act startJoiner',
    ],
    [
      'not one that the cluster has seen start',
      {
        data: { kind: 'prepared' },
        join: { kind: 'started', ...join, forMs: 600_000 },
        cluster: {
          ...heard,
          question: {
            ...heard.question,
            list: { ...heard.question.list, members: [{ ...unstartedLearner, name: 'n1' }] },
          },
        },
      },
      'act startJoiner',
    ],
    [
      'not by silence',
      {
        data: { kind: 'prepared' },
        join: { kind: 'started', ...join, forMs: 600_000 },
        cluster: { kind: 'silent', because: 'nobody answers', hint: '' },
      },
      'act startJoiner',
    ],
    [
      'not one whose join is done',
      { process: up('ready'), join: { kind: 'done', ...join, forMs: 600_000 }, cluster: unstarted },
      'converged',
    ],
    [
      'after that its node lets others have the slot',
      {
        removal: { ...proven, recorded: true, archived: true },
        data: { kind: 'absent' },
        join: { kind: 'expired', ...join, forMs: 599_999 },
        cluster: heard,
      },
      'blocked joinExpired',
    ],
    [
      'and joins anew',
      {
        removal: { ...proven, recorded: true, archived: true },
        data: { kind: 'absent' },
        join: { kind: 'expired', ...join, forMs: 600_000 },
        cluster: agreed,
      },
      'act addLearner',
    ],
    [
      'at once under another grant',
      {
        removal: { ...proven, recorded: true, archived: true },
        data: { kind: 'absent' },
        join: { kind: 'expired', ...join, forMs: 0, grantId: 'another' },
        cluster: agreed,
      },
      'act addLearner',
    ],
    [
      'the mark is there and the join not yet recorded as begun',
      { data: { kind: 'prepared' }, join: { kind: 'added', ...join } },
      'act beginJoin',
    ],
    [
      'the mark of a join that was of another member is no beginning',
      { data: { kind: 'prepared' }, join: { kind: 'added', ...join, memberId: 9n } },
      'blocked diskLost',
    ],
    [
      'a join that is recorded as added and not taken up is cancelled like one that is intended',
      {
        identity: undefined,
        data: { kind: 'absent' },
        join: { kind: 'added', ...join },
        role: roleOf('none'),
        cluster: heard,
      },
      'act cancelJoin',
    ],
    [
      'the same on a node whose earlier member was removed',
      {
        removal: { ...proven, recorded: true, archived: true },
        join: { kind: 'added', ...join, memberId: 9n },
        role: roleOf('none'),
        cluster: heard,
      },
      'act cancelJoin',
    ],
    [
      'a join that came to be the member that was removed is over',
      {
        removal: { ...proven, recorded: true, archived: true },
        join: { kind: 'added', ...join },
        role: roleOf('none'),
      },
      'converged',
    ],
    [
      'its record is cleared once nothing else is to be done',
      { process: up('ready'), leftRecord: true },
      'act resolveChange',
    ],
    ['a start comes first', { leftRecord: true }, 'act startMember'],
    [
      'nothing is written while the own records cannot be trusted',
      { process: up('ready'), leftRecord: true, supervision: { kind: 'superviseOnly', because: 'damaged' } },
      'blocked superviseOnly',
    ],
  ])('%s', (_title, change, expected) => {
    expect(short(plan(seen(change)))).toBe(expected);
  });
});

describe('the plan of a founding', () => {
  test.each<[string, Partial<Observed>, string]>([
    [
      'A06 an ordered founding begins',
      { founding: 'pending', identity: undefined, data: { kind: 'absent' } },
      'act beginFounding',
    ],
    [
      'A06 begun and without etcd data it starts',
      { founding: 'started', data: { kind: 'prepared' } },
      'act startFounder',
    ],
    [
      'A06 killed between its mark and `started` it begins again',
      { founding: 'pending', data: { kind: 'prepared' } },
      'act beginFounding',
    ],
    [
      'A14 with records that cannot be read nothing is founded',
      {
        founding: 'pending',
        identity: undefined,
        data: { kind: 'absent' },
        supervision: { kind: 'superviseOnly', because: 'damaged' },
      },
      'blocked superviseOnly',
    ],
    ['K21 a leftover of one that never began keeps no member down', { founding: 'pending' }, 'act startMember'],
    ['K21 nor does a nonce that was never used', { founding: 'prepared' }, 'act startMember'],
    [
      'A06 etcd was killed before the first record of its log: it begins anew',
      { founding: 'started', data: { kind: 'emptyLog' } },
      'act setEmptyLogAside',
    ],
    ['A06 begun and with etcd data it goes on as a member', { founding: 'started' }, 'act startMember'],
    [
      'A06 begun, and the mark is gone: a lost disk, never founded again',
      { founding: 'started', data: { kind: 'absent' } },
      'blocked diskLost',
    ],
    [
      'K21 done, and only the mark is there: a lost disk',
      { founding: 'done', data: { kind: 'prepared' } },
      'blocked diskLost',
    ],
    ['A06 it is over once etcd is ready', { founding: 'started', process: up('ready') }, 'act completeFounding'],
    ['a founder that waits for the others is left alone', { founding: 'started', process: up('starting') }, 'waiting'],
  ])('%s', (_title, change, expected) => {
    expect(short(plan(seen(change)))).toBe(expected);
  });
});

describe('the plan of a node that runs', () => {
  test.each<[string, Partial<Observed>, string]>([
    ['it is converged', { process: up('ready') }, 'converged'],
    [
      'N02 an unknown role changes nothing',
      { process: up('ready'), role: { kind: 'unknown', because: '' } },
      'converged',
    ],
    ['a stop is carried out', { process: up('ready'), intent: { kind: 'stopped', because: 'stop' } }, 'act stopEtcd'],
    ['C03 a stuck etcd is restarted', { process: up('ready', 'stuck') }, 'act restartStuck'],
    ['K30 but not while paused', { process: up('ready', 'stuck'), paused: true }, 'converged'],
    ['a locked data directory is not waited for', { process: up('starting', 'dataLocked') }, 'act stopLocked'],
    [
      'I18 a run intent that cannot be read stops nothing',
      { process: up('ready'), intent: { kind: 'unknown', because: '' } },
      'converged',
    ],
    ['it waits while etcd ends', { process: up('killing') }, 'waiting'],
    [
      'A14 damaged state: etcd runs on, membership is not touched',
      { process: up('ready'), supervision: { kind: 'superviseOnly', because: 'x' } },
      'blocked superviseOnly',
    ],
  ])('%s', (_title, change, expected) => {
    expect(short(plan(seen(change)))).toBe(expected);
  });
});

describe('C10 C31 the plan after a removal by others', () => {
  const order: [string, Partial<Observed>, string][] = [
    ['etcd has a moment to end of it', { removal: { ...proven, ripe: false }, process: up('ready') }, 'waiting'],
    ['proven: recorded and reported first', { removal: proven, process: up('ready') }, 'act recordRemoval'],
    ['then etcd has its time to leave', { removal: { ...proven, recorded: true }, process: up('ready') }, 'waiting'],
    [
      'then it is stopped',
      { removal: { ...proven, recorded: true, exitOverdue: true }, process: up('ready') },
      'act stopEtcd',
    ],
    [
      'a running stop is waited for',
      { removal: { ...proven, recorded: true, exitOverdue: true }, process: up('stopping') },
      'waiting',
    ],
    ['then its data is archived', { removal: { ...proven, recorded: true } }, 'act archiveData'],
    [
      'I11 and it is never started again',
      { removal: { ...proven, recorded: true, archived: true } },
      'blocked removedByOthers',
    ],
    [
      'a role that asks for none is fulfilled',
      {
        removal: { ...proven, recorded: true, archived: true },
        role: roleOf('none', { spent: true }),
      },
      'converged',
    ],
    [
      'an operator who stopped it does not hide it',
      { removal: proven, intent: { kind: 'stopped', because: '' } },
      'act recordRemoval',
    ],
    [
      'supervise-only never starts it either',
      { removal: proven, supervision: { kind: 'superviseOnly', because: '' } },
      'blocked removedByOthers',
    ],
    [
      'nor does an agent that knows only the run intent',
      { intent: { kind: 'removed', because: '' } },
      'blocked removedByOthers',
    ],
  ];
  test.each(order)('%s', (_title, change, expected) => {
    expect(short(plan(seen(change)))).toBe(expected);
  });

  test.each<['now' | 'wait' | 'forbidden', string]>([
    ['forbidden', 'blocked removalUnconfirmed'],
    ['wait', 'waiting'],
    ['now', 'act startMember'],
  ])('an unconfirmed removal whose start is %s: %s', (start, expected) => {
    expect(short(plan(seen({ removal: { kind: 'suspected', because: 'one peer says so', start } })))).toBe(expected);
  });
});
