// Goal: every flag is spelled as the installed version of etcd wants it, and etcd starts and serves with our command line.
// Method: the binary parses the line with --version behind it (a flag that it does not know ends with code 2); then one real start.
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { managedFlags, type OperatorFlag, operatorFlags } from '../../src/etcd/flag-table.ts';
import { type EtcdRun, etcdArguments } from '../../src/etcd/flags.ts';
import { type OperatorFlagValues, spellingOf } from '../../src/etcd/operator-flags.ts';
import { EtcdProcess, freePort, installedEtcds, temporaryDirectory, testedEtcds } from '../support/etcd-process.ts';

// Parsing takes 20 ms: all installed versions, always.
describe.each(installedEtcds())('etcd $text parses', ({ binary, version, text }) => {
  test('a line with everything in it that this version has', () => {
    const files = { certFile: '/x.crt', keyFile: '/x.key', trustedCaFile: '/ca.crt', crlFile: '/x.crl' };
    const run = { ...runWith('/data', 'https', 2379, allFlagsOf(text)), clientTls: files, peerTls: files };
    const { args, problems } = etcdArguments({ ...run, forceNewCluster: true }, version);
    expect(problems).toEqual([]);
    expect(execFileSync(binary, [...args, '--version'], { encoding: 'utf8', env: {} })).toContain(
      `etcd Version: ${text}`,
    );
    expect(args.length).toBeGreaterThan(50);
  });

  test('no flag that we say it lacks', () => {
    const lacking = Object.keys(operatorFlags).filter((name) => spellingOf(name, version) === undefined);
    for (const name of lacking) {
      for (const spelled of [`--${name}`, `--experimental-${name}`]) {
        expect(refusalOf(binary, `${spelled}=x`), spelled).toContain('flag provided but not defined');
      }
    }
  });

  test('every flag of its own usage text is known to us, as for operators or as managed', () => {
    const usage = spawnSync(binary, ['--help'], { encoding: 'utf8', env: {} });
    const names = [...`${usage.stdout}${usage.stderr}`.matchAll(/^ +--([a-z0-9-]+)/gm)].map(([, name = '']) => name);
    const known = new Set([...Object.keys(operatorFlags), ...Object.keys(managedFlags)]);
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !known.has(name.replace(/^experimental-/, '')))).toEqual([]);
  });
});

describe.each(testedEtcds())('etcd $text', ({ binary, version }) => {
  test('serves with our command line and an operator flag of each kind', async () => {
    using directory = temporaryDirectory();
    const [client, peer, metrics] = [await freePort(), await freePort(), await freePort()];
    const flags = {
      'quota-backend-bytes': 8 * 1024 ** 3,
      'auto-compaction-mode': 'revision',
      'auto-compaction-retention': 1000,
      'heartbeat-interval': 50,
      'election-timeout': 500,
      'corrupt-check-time': '10m',
      'initial-corrupt-check': true,
      metrics: 'extensive',
    };
    const run = runWith(join(directory.path, 'data'), 'http', client, flags, peer, metrics);
    const { args, problems } = etcdArguments(run, version);
    expect(problems).toEqual([]);
    await using etcd = new EtcdProcess(binary, args, join(directory.path, 'log'));
    await etcd.logged('serving client traffic insecurely');
    writeFileSync(join(directory.path, 'args'), args.join('\n'));
    const health = await fetch(`http://127.0.0.1:${metrics}/health`);
    expect(await health.text()).toContain('"health":"true"');
  });
});

function runWith(
  dataDir: string,
  scheme: 'http' | 'https',
  client: number,
  flags: OperatorFlagValues,
  peer = 2380,
  metrics = 2381,
): EtcdRun {
  const peerUrls = [`${scheme}://127.0.0.1:${peer}`];
  const clientUrls = [`${scheme}://127.0.0.1:${client}`];
  return {
    name: 'n1',
    dataDir,
    listenPeerUrls: peerUrls,
    advertisePeerUrls: peerUrls,
    listenClientUrls: clientUrls,
    advertiseClientUrls: clientUrls,
    listenMetricsUrls: [`${scheme}://127.0.0.1:${metrics}`],
    initial: { state: 'new', members: [{ name: 'n1', peerUrls }], token: 'lab' },
    flags,
  };
}

/** Every operator flag that the version has, with a value of its kind. */
function allFlagsOf(text: string): OperatorFlagValues {
  const version = installedEtcds().find((etcd) => etcd.text === text)?.version;
  if (version === undefined) throw new Error(`etcd ${text} is not installed`);
  const names = Object.entries(operatorFlags).filter(([name]) => spellingOf(name, version) !== undefined);
  return Object.fromEntries(names.map(([name, flag]) => [name, sampleValue(name, flag)]));
}

function sampleValue(name: string, { takes }: OperatorFlag): string | number | boolean {
  if (typeof takes === 'object') return takes.oneOf[0] ?? '';
  if (name === 'feature-gates') return 'SetMemberLocalAddr=true';
  if (name === 'election-timeout') return 1000;
  if (name === 'cors') return 'https://h:1';
  return { count: 7, switch: true, duration: '7s', retention: '7h', text: 'x', gates: '' }[takes];
}

function refusalOf(binary: string, arg: string): string {
  const { status, stdout, stderr } = spawnSync(binary, [arg, '--version'], { encoding: 'utf8', env: {} });
  return `${status}: ${stdout}${stderr}`;
}
