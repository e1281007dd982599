// Goal: the rows of docs/exit-classes.md in their order, where the recorded samples do not reach: what was asked, host, lists, missing records.
import { describe, expect, test } from 'vitest';
import {
  addLine,
  type Evidence,
  emptyEvidence,
  maxLastLines,
  maxReasons,
  maxTextChars,
} from '../../src/etcd/evidence.ts';
import { classifyExit, type EndOfEtcd } from '../../src/etcd/exit.ts';
import { rowOf, treatments } from '../../src/etcd/exit-class.ts';
import { entriesOf } from '../../src/etcd/log-assembler.ts';

const quiet: EndOfEtcd = {
  exit: { kind: 'unknown' },
  evidence: emptyEvidence,
  asked: { kind: 'none' },
  host: { freeBytes: undefined, oomKills: undefined },
  lists: [],
  lastKnownVoters: [1n, 2n, 3n],
  ownId: 3n,
  clusterId: 0xc1n,
  ownRemovalJournalled: false,
};

const code = (value: number) => ({ kind: 'code' as const, code: value });
const signal = (name: string) => ({ kind: 'signal' as const, signal: name });
const asked = { kind: 'signalled' as const, signal: 'SIGTERM', afterGrace: false, why: 'stop' as const };
const said = (...lines: readonly string[]): Evidence => entriesOf(lines).reduce(addLine, emptyEvidence);
const fatal = (error: string) => `{"level":"fatal","msg":"discovery failed","error":"${error}"}`;
const classOf = (change: Partial<EndOfEtcd>) => classifyExit({ ...quiet, ...change }).class;

const permanently =
  '{"level":"warn","msg":"server error","error":"the member has been permanently removed from the cluster"}';
const ownLine =
  '{"level":"info","msg":"removed member","cluster-id":"c1","local-member-id":"3","removed-remote-peer-id":"3"}';
const panicLine =
  '{"level":"panic","msg":"failed to find local ID in cluster members","cluster-id":"c1","local-member-id":"3"}';
const panicTrace = [
  'panic: failed to find local ID in cluster members',
  '',
  'goroutine 4 [running]:',
  'go.etcd.io/etcd/server/etcdserver/api/membership.(*RaftCluster).IsLocalMemberLearner(0x7)',
];

describe('1 removed', () => {
  test.each([code(0), code(1), code(2), signal('SIGKILL'), { kind: 'unknown' as const }])(
    'by our own line at %o',
    (exit) => {
      expect(classOf({ exit, evidence: said(ownLine), asked })).toBe('removed');
    },
  );

  test('C31: the panic is named, and with the lists of both others it is a removal', () => {
    const members = [1n, 2n].map((id) => ({ id, name: '', peerUrls: [], clientUrls: [], isLearner: false }));
    const lists = [1n, 2n].map((answeredBy) => ({ clusterId: 0xc1n, answeredBy, members, linearizable: true }));
    const verdict = classifyExit({ ...quiet, exit: code(2), evidence: said(panicLine, ...panicTrace), lists });
    expect(verdict).toMatchObject({ class: 'removed', row: 1, panicSeen: true, removalProof: { kind: 'proven' } });
  });

  test('the removal of another member is none', () => {
    const other = ownLine.replace('"removed-remote-peer-id":"3"', '"removed-remote-peer-id":"2"');
    expect(classOf({ exit: code(1), evidence: said(other) })).toBe('unknown');
  });

  test('a replayed removal that finds nothing to remove any more counts', () => {
    const replay = ownLine.replace('removed member', 'skipped removing already removed member');
    expect(classOf({ exit: code(0), evidence: said(replay) })).toBe('removed');
  });
});

describe('2 removal unconfirmed', () => {
  test.each([code(0), code(1), code(2)])('told so, at %o', (exit) => {
    expect(classOf({ exit, evidence: said(permanently) })).toBe('removalUnconfirmed');
  });

  test('the panic alone, with its trace or, if that is lost, with code 2', () => {
    expect(classOf({ exit: code(2), evidence: said(...panicTrace) })).toBe('removalUnconfirmed');
    expect(classOf({ exit: code(2), evidence: said(panicLine) })).toBe('removalUnconfirmed');
  });

  test('the panic in the log alone is no crash and no removal', () => {
    expect(classOf({ exit: signal('SIGKILL'), evidence: said(panicLine) })).toBe('killed');
  });

  test('a dump in which some goroutine was just in the learner check is a crash', () => {
    const frame = panicTrace[3] ?? '';
    const dumps = [
      ['SIGQUIT: quit', 'goroutine 1 [running]:', frame],
      ['panic: boom', 'goroutine 1 [running]:', 'main.f()', '', 'goroutine 2 [select]:', frame],
    ];
    for (const dump of dumps) {
      expect(classifyExit({ ...quiet, exit: code(2), evidence: said(...dump) })).toMatchObject({
        class: 'crash',
        panicSeen: false,
        removalProof: { kind: 'unknown' },
      });
    }
  });

  test('code 0 that nobody asked for', () => {
    expect(classOf({ exit: code(0) })).toBe('removalUnconfirmed');
    expect(classOf({ exit: code(0), asked })).toBe('stopped');
  });
});

describe('3 stopped', () => {
  test('by the signal that we sent, or killed after the grace (C28), which is dirty', () => {
    expect(classifyExit({ ...quiet, exit: signal('SIGTERM'), asked })).toMatchObject({
      class: 'stopped',
      dirty: false,
    });
    const end = { ...quiet, exit: signal('SIGKILL'), asked: { ...asked, signal: 'SIGKILL', afterGrace: true } };
    expect(classifyExit(end)).toMatchObject({ class: 'stopped', dirty: true });
  });

  test('C29: killed by somebody else while it stops counts as stopped, dirty', () => {
    expect(classifyExit({ ...quiet, exit: signal('SIGKILL'), asked })).toMatchObject({ class: 'stopped', dirty: true });
  });

  test('a failure while it stops keeps its own class', () => {
    expect(classOf({ exit: code(1), asked, evidence: said(fatal('no space left on device')) })).toBe('host');
    expect(classOf({ exit: code(2), asked, evidence: said('panic: boom') })).toBe('crash');
  });

  test('asked, and the record is missing', () => expect(classOf({ asked })).toBe('stopped'));
});

describe('host, memory, signals', () => {
  test('C14: a fault in the mapped database on a full disk is the disk, else the data', () => {
    const evidence = said('unexpected fault address 0x7f', 'fatal error: fault');
    expect(classOf({ exit: code(2), evidence, host: { freeBytes: 0, oomKills: 0 } })).toBe('host');
    expect(classOf({ exit: code(2), evidence, host: { freeBytes: 1e9, oomKills: 0 } })).toBe('dataCorrupt');
    expect(classOf({ exit: code(2), evidence })).toBe('dataCorrupt');
  });

  test('a full disk explains no panic that has nothing to do with it', () => {
    expect(classOf({ exit: code(2), evidence: said('panic: boom'), host: { freeBytes: 0, oomKills: 0 } })).toBe(
      'crash',
    );
  });

  test('C16: an I/O error', () => {
    expect(classOf({ exit: code(1), evidence: said(fatal('sync /d/wal: input/output error')) })).toBe('host');
  });

  test('a warning about permissions earlier in a long life is no reason', () => {
    const warning = '{"level":"warn","msg":"failed to read","error":"permission denied"}';
    expect(classOf({ exit: signal('SIGKILL'), evidence: said(warning) })).toBe('killed');
  });

  test('C02 and C21: SIGKILL is killed, or memory where the kernel counted one', () => {
    expect(classOf({ exit: signal('SIGKILL') })).toBe('killed');
    expect(classOf({ exit: signal('SIGKILL'), host: { freeBytes: undefined, oomKills: 1 } })).toBe('outOfMemory');
    expect(classOf({ exit: signal('SIGTERM') })).toBe('killed');
  });

  test('C01: dump signals and bare panics are crashes', () => {
    for (const name of ['SIGABRT', 'SIGSEGV', 'SIGQUIT']) expect(classOf({ exit: signal(name) })).toBe('crash');
    expect(classOf({ exit: code(2), evidence: said('panic: boom', '', 'goroutine 1 [running]:') })).toBe('crash');
    expect(classOf({ evidence: said('SIGSEGV: segmentation violation') })).toBe('crash');
  });
});

describe('files', () => {
  const starting = '{"level":"info","msg":"starting an etcd server","etcd-version":"3.7.3","data-dir":"/d/n1"}';

  test('a missing certificate is config, a missing file of the data is not', () => {
    const missing = (path: string) => said(starting, fatal(`open ${path}: no such file or directory`));
    expect(classOf({ exit: code(1), evidence: missing('/etc/pki/x.crt') })).toBe('config');
    expect(classOf({ exit: code(1), evidence: missing('/d/n1/member/wal/0.wal') })).toBe('unknown');
    expect(classOf({ exit: code(1), evidence: said(fatal('tls: private key does not match public key')) })).toBe(
      'config',
    );
  });

  test('a nil pointer while etcd reads its data is the data, anywhere else a crash', () => {
    const nil = 'panic: runtime error: invalid memory address or nil pointer dereference';
    const frame = 'go.etcd.io/etcd/server/v3/etcdserver.bootstrap({{0x7}})';
    expect(classOf({ exit: code(2), evidence: said(nil, 'goroutine 1 [running]:', frame) })).toBe('dataCorrupt');
    expect(classOf({ exit: code(2), evidence: said(nil, 'goroutine 1 [running]:', 'main.f()') })).toBe('crash');
  });
});

describe('what we ended ourselves', () => {
  test('11 and 14 by the reason that we had', () => {
    const end = { exit: signal('SIGKILL'), asked: { ...asked, signal: 'SIGKILL' } };
    expect(classOf({ ...end, asked: { ...end.asked, why: 'dataLocked' } })).toBe('dataLocked');
    expect(classOf({ ...end, asked: { ...end.asked, why: 'stuck' } })).toBe('stuck');
    const dump = { exit: code(2), evidence: said('SIGQUIT: quit', 'goroutine 1:') };
    expect(classOf({ ...dump, asked: { ...asked, signal: 'SIGQUIT', why: 'stuck' } })).toBe('stuck');
  });

  test('an etcd that waits for a lock and is killed by somebody', () => {
    const locked = '{"level":"info","msg":"db file is flocked by another process, or taking too long","took":"10s"}';
    const opened = '{"level":"info","msg":"opened backend db"}';
    expect(classOf({ exit: signal('SIGKILL'), evidence: said(locked) })).toBe('dataLocked');
    expect(classOf({ exit: signal('SIGKILL'), evidence: said(locked, opened) })).toBe('killed');
  });
});

test('nothing known is unknown, and says so', () => {
  expect(classifyExit(quiet)).toMatchObject({ class: 'unknown', row: 15 });
  expect(classifyExit({ ...quiet, exit: code(7) }).because).toContain('code 7');
});

test('every class has a row and a treatment; only a removal and a stale identity are terminal', () => {
  expect(Object.keys(rowOf).sort()).toEqual(Object.keys(treatments).sort());
  expect([...new Set(Object.values(rowOf))]).toEqual(Array.from({ length: 15 }, (_, index) => index + 1));
  const terminal = Object.entries(treatments).filter(([, { kind }]) => kind === 'terminal');
  expect(terminal.map(([name]) => name)).toEqual(['removed', 'staleIdentity']);
});

test('the evidence of a long and noisy life stays small', () => {
  let evidence = emptyEvidence;
  const noise = entriesOf([fatal('x'.repeat(50_000)), permanently.replace('"warn"', '"panic"'), 'text'.repeat(9_000)]);
  for (let round = 0; round < 5_000; round++) evidence = noise.reduce(addLine, evidence);
  expect(evidence.entries).toBe(15_000);
  expect(JSON.stringify({ ...evidence, memberId: 0, clusterId: 0 }).length).toBeLessThan(
    (maxReasons + maxLastLines + 4) * (maxTextChars + 40),
  );
});
