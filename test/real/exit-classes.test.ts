// Goal: real failures of each installed etcd get the class that was meant for them, from their real lines and their real end.
// Method: the binary runs directly, with stderr in a file; one fault at a time. The newest version, or ETCD_TEST_VERSIONS=all.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addLine, type Evidence, emptyEvidence } from '../../src/etcd/evidence.ts';
import { type Asked, classifyExit, type ExitVerdict, type HostEvidence } from '../../src/etcd/exit.ts';
import type { EtcdExit } from '../../src/etcd/exit-reasons.ts';
import { factOf } from '../../src/etcd/facts.ts';
import { type EtcdRun, etcdArguments } from '../../src/etcd/flags.ts';
import type { EtcdVersion } from '../../src/etcd/known-versions.ts';
import { entriesOf } from '../../src/etcd/log-assembler.ts';
import type { MemberId } from '../../src/etcd/member.ts';
import { EtcdProcess, freePort, temporaryDirectory, testedEtcds } from '../support/etcd-process.ts';

describe.each(testedEtcds())('etcd $text', ({ binary, version }) => {
  test('a bad flag is config', async () => {
    await using place = await newPlace();
    await using etcd = place.start(binary, ['--no-such-flag=1']);
    expect(await verdictOf(etcd)).toMatchObject({ class: 'config', row: 10 });
  });

  test.each([
    'auth-token=no-such-kind',
    'auth-token=jwt,pub-key=/nonexistent,sign-method=RS256',
    'cipher-suites=NO_SUCH_SUITE',
    'auto-compaction-retention=-1',
  ])('a value that etcd refuses when it uses it is config: %s', async (flag) => {
    await using place = await newPlace();
    await using etcd = place.start(binary, [...argsFor(place, version), `--${flag}`]);
    expect(await verdictOf(etcd)).toMatchObject({ class: 'config', row: 10 });
  });

  test.each(['client', 'peer', 'metrics'] as const)('C18: the %s port in use is portInUse', async (side) => {
    await using place = await newPlace();
    const stranger = createServer().listen(place.ports[side], '127.0.0.1');
    onTestFinished(() => void stranger.close());
    await using etcd = place.start(binary, argsFor(place, version));
    expect(await verdictOf(etcd)).toMatchObject({ class: 'portInUse', row: 6 });
  });

  test('a data directory that another etcd holds is waited for in silence, and dataLocked once that wait is ended', async () => {
    await using place = await newPlace();
    await using other = await newPlace();
    await using first = place.start(binary, argsFor(place, version));
    await first.logged('serving client traffic');
    const args = argsFor({ ...other, dataDir: place.dataDir }, version);
    await using second = other.start(binary, args);
    await second.logged('db file is flocked by another process');
    second.signal('SIGKILL');
    const why = { kind: 'signalled' as const, signal: 'SIGKILL', afterGrace: true, why: 'dataLocked' as const };
    expect(await verdictOf(second, why)).toMatchObject({ class: 'dataLocked', row: 11 });
    expect(await verdictOf(second)).toMatchObject({ class: 'dataLocked', row: 11 });
    expect(first.running).toBe(true);
  });

  test('C12: a flipped byte in the log is dataCorrupt', async () => {
    await using place = await newPlace();
    await using first = place.start(binary, argsFor(place, version));
    await first.logged('serving client traffic');
    first.signal('SIGKILL');
    await first.ended;
    const segments = readdirSync(join(place.dataDir, 'member/wal')).filter((name) => name.endsWith('.wal'));
    const path = join(place.dataDir, 'member/wal', segments[0] ?? '');
    const bytes = readFileSync(path);
    // In the first entry, well before the end: no torn tail.
    bytes[120] = (bytes[120] ?? 0) ^ 0xff;
    writeFileSync(path, bytes);
    await using second = place.start(binary, argsFor(place, version));
    expect(await verdictOf(second)).toMatchObject({ class: 'dataCorrupt', row: 8 });
  });

  test('an empty log segment is dataCorrupt', async () => {
    await using place = await newPlace();
    await using first = place.start(binary, argsFor(place, version));
    await first.logged('serving client traffic');
    first.signal('SIGKILL');
    await first.ended;
    for (const name of readdirSync(join(place.dataDir, 'member/wal'))) {
      if (name.endsWith('.wal')) truncateSync(join(place.dataDir, 'member/wal', name), 0);
    }
    await using second = place.start(binary, argsFor(place, version));
    expect(await verdictOf(second)).toMatchObject({ class: 'dataCorrupt', row: 8 });
  });

  test.runIf(mayMount())('C14: a full disk is host', async () => {
    await using place = await newPlace();
    using _disk = smallDisk(place.dataDir);
    await using etcd = place.start(binary, argsFor(place, version));
    const exit = await etcd.end();
    const { bavail, bsize } = statfsSync(place.dataDir);
    const host = { freeBytes: bavail * bsize, oomKills: undefined };
    expect(judge(exit, etcd.log(), { kind: 'none' }, host)).toMatchObject({ class: 'host', row: 7 });
  });

  test('a missing certificate file is config, although etcd joins and serves first', async () => {
    await using place = await newPlace();
    const files = {
      certFile: '/nonexistent/x.crt',
      keyFile: '/nonexistent/x.key',
      trustedCaFile: '/nonexistent/ca.crt',
    };
    await using etcd = place.start(binary, argsFor(place, version, { clientTls: files }, 'https'));
    expect(await verdictOf(etcd)).toMatchObject({ class: 'config', row: 10 });
  });

  test('peers that do not answer at a join is bootstrapRefused', async () => {
    await using place = await newPlace();
    const members = [
      { name: 'n1', peerUrls: [`http://127.0.0.1:${place.ports.peer}`] },
      { name: 'n2', peerUrls: [`http://127.0.0.1:${await freePort()}`] },
    ];
    const initial = { state: 'existing' as const, members, token: 'lab' };
    await using etcd = place.start(binary, argsFor(place, version, { initial }));
    expect(await verdictOf(etcd)).toMatchObject({ class: 'bootstrapRefused', row: 9 });
  });

  test.each(['SIGABRT', 'SIGSEGV', 'SIGQUIT'] as const)(
    'C01: %s from outside is a crash with its dump',
    async (signal) => {
      await using place = await newPlace();
      await using etcd = place.start(binary, argsFor(place, version));
      await etcd.logged('serving client traffic');
      etcd.signal(signal);
      const verdict = await verdictOf(etcd);
      expect(verdict).toMatchObject({ class: 'crash', row: 13, panicSeen: false });
      expect(verdict.because).toContain(signal);
      expect(evidenceOf(etcd.log()).trace).toMatchObject({ cause: 'signal' });
    },
  );

  test.each(['SIGKILL', 'SIGTERM', 'SIGHUP'] as const)('C02: %s from outside is killed', async (signal) => {
    await using place = await newPlace();
    await using etcd = place.start(binary, argsFor(place, version));
    await etcd.logged('serving client traffic');
    etcd.signal(signal);
    expect(await verdictOf(etcd)).toMatchObject({ class: 'killed', row: 12 });
  });

  test('SIGTERM that we sent is stopped, and the log names the member that it was', async () => {
    await using place = await newPlace();
    await using etcd = place.start(binary, argsFor(place, version));
    await etcd.logged('serving client traffic');
    etcd.signal('SIGTERM');
    const asked = { kind: 'signalled' as const, signal: 'SIGTERM', afterGrace: false, why: 'stop' as const };
    expect(await verdictOf(etcd, asked)).toMatchObject({ class: 'stopped', row: 3, dirty: false });
    const evidence = evidenceOf(etcd.log());
    expect(evidence).toMatchObject({ served: true, signalReceived: 'terminated' });
    expect(evidence.memberId).toBeGreaterThan(0n);
    expect(evidence.version).toContain(`${version.major}.${version.minor}.`);
  });

  test('an id without its memory is staleIdentity', async () => {
    const [one, two, three] = [await newPlace(), await newPlace(), await newPlace()];
    await using places = new AsyncDisposableStack();
    for (const place of [one, two, three]) places.use(place);
    const members = [one, two, three].map((place, index) => {
      return { name: `n${index + 1}`, peerUrls: [`http://127.0.0.1:${place.ports.peer}`] };
    });
    const args = (place: Place, name: string, state: 'new' | 'existing') => {
      return argsFor(place, version, { name, initial: { state, members, token: 'lab' } });
    };
    await using first = one.start(binary, args(one, 'n1', 'new'));
    await using second = two.start(binary, args(two, 'n2', 'new'));
    await using third = three.start(binary, args(three, 'n3', 'new'));
    for (const etcd of [first, second, third]) await etcd.logged('serving client traffic');
    // Its leader must go on: a new one knows nothing of what this member held, fills it anew and nobody says a word.
    const leads = leaderOf(first.log()) === evidenceOf(third.log()).memberId;
    const [victim, place, name] = leads ? [second, two, 'n2'] : [third, three, 'n3'];
    victim.signal('SIGKILL');
    await victim.ended;
    const wiped = { ...place, dataDir: `${place.dataDir}-wiped` };
    await using back = wiped.start(binary, args(wiped, name, 'existing'));
    expect(await verdictOf(back)).toMatchObject({ class: 'staleIdentity', row: 4 });
  });
});

interface Place extends AsyncDisposable {
  readonly dataDir: string;
  readonly ports: Readonly<Record<'client' | 'peer' | 'metrics', number>>;
  readonly start: (binary: string, args: readonly string[]) => EtcdProcess;
}

async function newPlace(): Promise<Place> {
  const directory = temporaryDirectory();
  const ports = { client: await freePort(), peer: await freePort(), metrics: await freePort() };
  let lives = 0;
  return {
    dataDir: join(directory.path, 'data'),
    ports,
    start: (binary, args) => new EtcdProcess(binary, args, join(directory.path, `log-${++lives}`)),
    [Symbol.asyncDispose]: async () => directory[Symbol.dispose](),
  };
}

function argsFor(
  { dataDir, ports }: Pick<Place, 'dataDir' | 'ports'>,
  version: EtcdVersion,
  change: Partial<EtcdRun> = {},
  clientScheme = 'http',
): readonly string[] {
  const peerUrls = [`http://127.0.0.1:${ports.peer}`];
  const clientUrls = [`${clientScheme}://127.0.0.1:${ports.client}`];
  const { args, problems } = etcdArguments(
    {
      name: 'n1',
      dataDir,
      listenPeerUrls: peerUrls,
      advertisePeerUrls: peerUrls,
      listenClientUrls: clientUrls,
      advertiseClientUrls: clientUrls,
      listenMetricsUrls: [`${clientScheme}://127.0.0.1:${ports.metrics}`],
      initial: { state: 'new', members: [{ name: 'n1', peerUrls }], token: 'lab' },
      flags: {},
      ...change,
    },
    version,
  );
  if (problems.length > 0) throw new Error(problems.join('; '));
  return args;
}

async function verdictOf(etcd: EtcdProcess, asked: Asked = { kind: 'none' }): Promise<ExitVerdict> {
  const exit = await etcd.end();
  const verdict = judge(exit, etcd.log(), asked, { freeBytes: undefined, oomKills: undefined });
  if (verdict.class === 'unknown') throw new Error(`unknown end: ${verdict.because}\n${etcd.lastLines()}`);
  return verdict;
}

function judge(exit: EtcdExit, log: string, asked: Asked, host: HostEvidence): ExitVerdict {
  const evidence = evidenceOf(log);
  return classifyExit({
    exit,
    evidence,
    asked,
    host,
    lists: [],
    lastKnownVoters: [],
    ownId: evidence.memberId,
    clusterId: evidence.clusterId,
    ownRemovalJournalled: false,
  });
}

function evidenceOf(log: string): Evidence {
  return entriesOf(log.split('\n')).reduce(addLine, emptyEvidence);
}

/** Who leads, by the last word of this member on it. */
function leaderOf(log: string): MemberId | undefined {
  const facts = entriesOf(log.split('\n')).flatMap((entry) =>
    entry.kind === 'line' ? (factOf(entry.line) ?? []) : [],
  );
  return facts.findLast((fact) => fact.kind === 'leader')?.leaderId;
}

/** A file system of 8 MB at `path`, unmounted before its place is removed. */
function smallDisk(path: string): Disposable {
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,mode=0700', 'tmpfs', path]);
  return { [Symbol.dispose]: () => void execFileSync('umount', [path]) };
}

/** A small file system needs root and the right to mount; where that is missing the recorded samples cover the class. */
function mayMount(): boolean {
  using directory = temporaryDirectory();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory.path], { stdio: 'ignore' });
    execFileSync('umount', [directory.path]);
    return true;
  } catch {
    return false;
  }
}
