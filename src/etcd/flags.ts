/** @pure file: what to run → etcd's command line, for its version. */

import type { EtcdVersion } from './known-versions.ts';
import { sameUrls } from './member.ts';
import {
  canonicalName,
  defaultElectionMs,
  defaultHeartbeatMs,
  type OperatorFlagValues,
  readOperatorFlags,
} from './operator-flags.ts';

/** One run of etcd. URLs are complete: scheme, host, port, no path. Paths are absolute. */
export interface EtcdRun {
  readonly name: string;
  readonly dataDir: string;
  readonly listenPeerUrls: readonly string[];
  readonly advertisePeerUrls: readonly string[];
  readonly listenClientUrls: readonly string[];
  readonly advertiseClientUrls: readonly string[];
  /** The only port that answers before etcd is ready. With https it asks for a client certificate as the client port does. */
  readonly listenMetricsUrls: readonly string[];
  /** With what a member without a log begins; etcd ignores it once there is one. */
  readonly initial: InitialCluster;
  readonly clientTls?: TlsFiles;
  readonly peerTls?: TlsFiles;
  /** Only in a recovery that an operator ordered: all other members are dropped. */
  readonly forceNewCluster?: boolean;
  readonly flags: OperatorFlagValues;
}

/** `new`: all founders with the token; `existing`: the live list, with this member in it. */
export interface InitialCluster {
  readonly state: 'new' | 'existing';
  readonly members: readonly { readonly name: string; readonly peerUrls: readonly string[] }[];
  readonly token: string;
}

/** Files of one side. Clients and peers must always show a certificate. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly trustedCaFile: string;
  readonly crlFile?: string;
}

/** @pure The command line without the binary, or what is wrong with the wish, one sentence each. Nothing secret is ever in it. */
export function etcdArguments(
  run: EtcdRun,
  version: EtcdVersion,
): { readonly args: readonly string[]; readonly problems: readonly string[] } {
  const operator = readOperatorFlags(run.flags, version);
  const problems = [...operator.problems.map(({ message }) => message), ...problemsOf(run)];
  if (problems.length > 0) return { args: [], problems };
  const args = [
    ...identityArguments(run),
    ...addressArguments(run),
    ...initialArguments(run.initial),
    ...tlsArguments(run.clientTls, ''),
    ...tlsArguments(run.peerTls, 'peer-'),
    ...alwaysArguments,
    ...timingArguments(run.flags),
    ...operator.args,
  ];
  return { args: run.forceNewCluster ? [...args, '--force-new-cluster'] : args, problems: [] };
}

/** JSON on stderr, at a level at which changes of membership are seen (3.4 needs `zap` and `pre-vote` to be said; the others have them). */
const alwaysArguments: readonly string[] = [
  '--logger=zap',
  '--log-outputs=stderr',
  '--log-level=info',
  '--pre-vote=true',
  '--strict-reconfig-check=true',
];

function identityArguments({ name, dataDir }: EtcdRun): readonly string[] {
  return [`--name=${name}`, `--data-dir=${dataDir}`];
}

function addressArguments(run: EtcdRun): readonly string[] {
  const metrics =
    run.listenMetricsUrls.length === 0 ? [] : [`--listen-metrics-urls=${run.listenMetricsUrls.join(',')}`];
  return [
    `--listen-peer-urls=${run.listenPeerUrls.join(',')}`,
    `--initial-advertise-peer-urls=${run.advertisePeerUrls.join(',')}`,
    `--listen-client-urls=${run.listenClientUrls.join(',')}`,
    `--advertise-client-urls=${run.advertiseClientUrls.join(',')}`,
    ...metrics,
  ];
}

function initialArguments({ state, members, token }: InitialCluster): readonly string[] {
  const list = members.flatMap(({ name, peerUrls }) => peerUrls.map((url) => `${name}=${url}`)).join(',');
  return [`--initial-cluster=${list}`, `--initial-cluster-state=${state}`, `--initial-cluster-token=${token}`];
}

function tlsArguments(files: TlsFiles | undefined, side: '' | 'peer-'): readonly string[] {
  if (files === undefined) return [];
  const crl = files.crlFile === undefined ? [] : [`--${side === '' ? 'client' : 'peer'}-crl-file=${files.crlFile}`];
  return [
    `--${side}cert-file=${files.certFile}`,
    `--${side}key-file=${files.keyFile}`,
    `--${side}trusted-ca-file=${files.trustedCaFile}`,
    `--${side}client-cert-auth=true`,
    ...crl,
  ];
}

/** Written out so that the recorded command line says all; an operator's own values take their place. */
function timingArguments(flags: OperatorFlagValues): readonly string[] {
  const set = new Set(Object.keys(flags).map(canonicalName));
  const defaults = { 'heartbeat-interval': defaultHeartbeatMs, 'election-timeout': defaultElectionMs };
  return Object.entries(defaults).flatMap(([name, value]) => (set.has(name) ? [] : [`--${name}=${value}`]));
}

function problemsOf(run: EtcdRun): readonly string[] {
  const found: string[] = [];
  const wantsText = (what: string, texts: readonly string[]) => {
    const bad = texts.find((text) => text === '' || /[\s,=\0]/.test(text));
    if (bad !== undefined) found.push(`${what} must not be empty or contain blanks, commas or "=": "${bad}"`);
  };
  wantsText('a member name', [run.name, ...run.initial.members.map(({ name }) => name)]);
  wantsText('the cluster token', [run.initial.token]);
  const clientUrls = [...run.listenClientUrls, ...run.advertiseClientUrls];
  const peerUrls = [...run.listenPeerUrls, ...run.advertisePeerUrls];
  for (const url of [...clientUrls, ...peerUrls, ...run.listenMetricsUrls]) {
    if (!/^https?:\/\/[^\s,/?#=]+:\d+$/.test(url)) found.push(`"${url}" is no address such as https://10.0.0.1:2379`);
  }
  found.push(...schemeProblems('client', [...clientUrls, ...run.listenMetricsUrls], run.clientTls !== undefined));
  found.push(...schemeProblems('peer', peerUrls, run.peerTls !== undefined));
  if (!run.dataDir.startsWith('/')) found.push(`the data directory must be an absolute path: "${run.dataDir}"`);
  const own = run.initial.members.find(({ name }) => name === run.name);
  if (own === undefined) found.push(`${run.name} is not among the initial members`);
  else if (!sameUrls(own.peerUrls, run.advertisePeerUrls)) {
    found.push(`the initial members give ${run.name} other peer addresses than it advertises`);
  }
  return found;
}

/** etcd would serve plain text on an http address although certificates are given, and end late on an https address without them. */
function schemeProblems(side: string, urls: readonly string[], tls: boolean): readonly string[] {
  const wrong = urls.find((url) => url.startsWith('https://') !== tls);
  if (wrong === undefined) return [];
  return [tls ? `certificates are given for ${side}s, but ${wrong} is not https` : `${wrong} needs certificates`];
}
