// Goal: an operator's flag is spelled for the version or refused with a sentence that helps; the agent's own flags cannot be set.
import { describe, expect, test } from 'vitest';
import { managedFlags, operatorFlags } from '../../src/etcd/flag-table.ts';
import { type EtcdRun, etcdArguments } from '../../src/etcd/flags.ts';
import { type EtcdVersion, parseVersion } from '../../src/etcd/known-versions.ts';
import { type OperatorFlagValues, readOperatorFlags } from '../../src/etcd/operator-flags.ts';

const version = (text: string): EtcdVersion => {
  const parsed = parseVersion(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
};
const argsOf = (flags: OperatorFlagValues, of: string) => readOperatorFlags(flags, version(of)).args;
const problemsOf = (flags: OperatorFlagValues, of = '3.7.3') => readOperatorFlags(flags, version(of)).problems;

describe('spelling', () => {
  test.each([
    ['3.4.23', '--experimental-corrupt-check-time=1m'],
    ['3.5.30', '--experimental-corrupt-check-time=1m'],
    ['3.6.16', '--corrupt-check-time=1m'],
    ['3.7.3', '--corrupt-check-time=1m'],
  ])('on %s a flag that grew up is %s, however the operator wrote it', (of, arg) => {
    for (const name of ['corrupt-check-time', 'experimental-corrupt-check-time', '--corrupt-check-time']) {
      expect(argsOf({ [name]: '1m' }, of)).toEqual([arg]);
    }
  });

  test('switches that became feature gates are joined with those of the operator', () => {
    const flags = { 'initial-corrupt-check': true, 'feature-gates': 'SetMemberLocalAddr=true' };
    expect(argsOf(flags, '3.7.3')).toEqual(['--feature-gates=InitialCorruptCheck=true,SetMemberLocalAddr=true']);
    expect(argsOf({ 'initial-corrupt-check': true }, '3.5.16')).toEqual(['--experimental-initial-corrupt-check=true']);
  });
});

describe('refusals', () => {
  test('a reason that names a section of the configuration names one that there is', () => {
    const named = Object.values(managedFlags).flatMap((reason) => /the (\w+) section/.exec(reason)?.[1] ?? []);
    expect(new Set(named)).toEqual(new Set(['tls']));
  });

  test('every flag that the agent keeps to itself is refused by name with its reason', () => {
    for (const [name, reason] of Object.entries(managedFlags)) {
      const [problem] = problemsOf({ [name]: 'x' });
      expect(problem).toMatchObject({ flag: name, kind: 'managed' });
      expect(problem?.message).toContain(reason);
    }
    expect(problemsOf({ 'experimental-enable-v2v3': '/v2' })).toMatchObject([{ kind: 'managed' }]);
  });

  test('no flag is both', () => {
    expect(Object.keys(operatorFlags).filter((name) => Object.hasOwn(managedFlags, name))).toEqual([]);
  });

  test('an unknown flag, with the one that was meant', () => {
    expect(problemsOf({ 'quota-backend-byte': 1 })[0]?.message).toContain('quota-backend-bytes');
    const stranger = problemsOf({ 'completely-different-thing': 1 })[0];
    expect(stranger?.kind).toBe('unknown');
    expect(stranger?.message).not.toContain('meant');
    expect(problemsOf({ constructor: 1 })).toMatchObject([{ kind: 'unknown' }]);
  });

  test('a flag that this version lacks, with the version that has it', () => {
    const [problem] = problemsOf({ 'max-learners': 2 }, '3.5.30');
    expect(problem).toMatchObject({ kind: 'notInThisVersion' });
    expect(problem?.message).toContain('3.6.0');
  });

  test.each([
    ['quota-backend-bytes', '8GB'],
    ['quota-backend-bytes', -1],
    ['quota-backend-bytes', 1.5],
    ['enable-pprof', 'yes'],
    ['grpc-keepalive-interval', '10'],
    ['auto-compaction-mode', 'hourly'],
    ['auto-compaction-retention', 'soon'],
    ['auth-token', 'simple\n--force-new-cluster'],
    ['feature-gates', 'A=maybe'],
  ])('%s does not take %s', (name, value) => {
    expect(problemsOf({ [name]: value })).toMatchObject([{ flag: name, kind: 'badValue' }]);
  });

  test('flags that do not fit each other, before etcd finds out', () => {
    expect(problemsOf({ 'heartbeat-interval': 500 })).toMatchObject([{ kind: 'conflict', flag: 'election-timeout' }]);
    expect(problemsOf({ 'heartbeat-interval': 500, 'election-timeout': 2500 })).toEqual([]);
    const compaction = { 'auto-compaction-mode': 'revision', 'auto-compaction-retention': '1h' };
    expect(problemsOf(compaction)).toMatchObject([{ kind: 'conflict' }]);
    expect(problemsOf({ 'initial-corrupt-check': true, 'feature-gates': 'InitialCorruptCheck=false' })).toMatchObject([
      { kind: 'conflict' },
    ]);
    expect(problemsOf({ 'max-wals': 1, '--max-wals': 2 })).toMatchObject([{ kind: 'twice' }]);
  });

  test('one bad flag leaves no arguments at all', () => {
    expect(readOperatorFlags({ 'max-wals': 1, nonsense: 1 }, version('3.7.3')).args).toEqual([]);
  });
});

describe('the command line', () => {
  const files = { certFile: '/c', keyFile: '/k', trustedCaFile: '/ca' };
  const run: EtcdRun = {
    name: 'n1',
    dataDir: '/d/n1',
    listenPeerUrls: ['https://10.0.0.1:2380'],
    advertisePeerUrls: ['https://10.0.0.1:2380'],
    listenClientUrls: ['http://127.0.0.1:2379'],
    advertiseClientUrls: ['http://127.0.0.1:2379'],
    listenMetricsUrls: [],
    initial: { state: 'existing', members: [{ name: 'n1', peerUrls: ['https://10.0.0.1:2380'] }], token: 't' },
    peerTls: files,
    flags: {},
  };
  const built = (change: Partial<EtcdRun>) => etcdArguments({ ...run, ...change }, version('3.4.23'));

  test('says everything that a version might default otherwise', () => {
    const { args, problems } = built({});
    expect(problems).toEqual([]);
    for (const arg of ['--logger=zap', '--log-outputs=stderr', '--pre-vote=true', '--strict-reconfig-check=true']) {
      expect(args).toContain(arg);
    }
    expect(args).toContain('--peer-client-cert-auth=true');
    expect(args).toContain('--heartbeat-interval=100');
    expect(args.filter((arg) => /^--(cert-file|force-new)/.test(arg))).toEqual([]);
  });

  test("an operator's own timing stands once", () => {
    const { args } = built({ flags: { 'election-timeout': 5000 } });
    expect(args.filter((arg) => arg.startsWith('--election-timeout'))).toEqual(['--election-timeout=5000']);
  });

  test.each<[string, Partial<EtcdRun>]>([
    ['https without certificates', { peerTls: undefined as never }],
    ['certificates without https', { clientTls: files }],
    ['an address with a path', { listenClientUrls: ['http://127.0.0.1:2379/x'] }],
    ['an address without a port', { listenClientUrls: ['http://127.0.0.1'] }],
    ['a name that would end the list of members', { name: 'n1,n2=http://x:1' }],
    ['a relative data directory', { dataDir: 'd' }],
    ['members without us', { initial: { ...run.initial, members: [] } }],
    ['another peer address of ours', { advertisePeerUrls: ['https://10.0.0.2:2380'] }],
    ['an empty token', { initial: { ...run.initial, token: '' } }],
  ])('%s is a problem and gives no arguments', (_, change) => {
    const { args, problems } = built(change);
    expect(problems.length).toBeGreaterThan(0);
    expect(args).toEqual([]);
  });
});
