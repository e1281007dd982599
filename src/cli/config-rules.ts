import type { Issue, Path } from './config-source.ts';
import { canListen } from './config-values.ts';
import { isLoopback, isWildcard, parseEndpoint, parseListenAddress } from './endpoint.ts';
import { parseDuration } from './units.ts';

/** A problem of one of etcd's flags, as the table of etcd's flags sees it. */
export interface FlagProblem {
  readonly flag: string;
  readonly problem: string;
}

/** Judges `etcd.flags` for a version (undefined: not known beforehand). */
export type CheckFlags = (
  flags: Readonly<Record<string, string>>,
  version: string | undefined,
) => readonly FlagProblem[];

/**
 * What concerns more than one field. The rules read the raw content, so that they speak although another field is wrong; a
 * field that is not even of its own form is none of their business.
 */
export function rulesBrokenBy(content: unknown): readonly Issue[] {
  const file = new Reader(content);
  return rules.flatMap((rule) => rule(file));
}

type Rule = (file: Reader) => readonly Issue[];

const rules: readonly Rule[] = [
  noPrototypeKeys,
  oneWayToNameTheBinary,
  listenOnAddresses,
  oneSchemePerPort,
  tlsWhereHttps,
  portsDiffer,
  directoriesApart,
  socketPathFits,
  walBesideData,
  webhookIsSafe,
  delaysInOrder,
];

/** Looks values up by path; what has another type is undefined. */
class Reader {
  readonly content: unknown;

  constructor(content: unknown) {
    this.content = content;
  }

  at(...path: Path): unknown {
    return path.reduce<unknown>((value, key) => {
      return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? Reflect.get(value, key)
        : undefined;
    }, this.content);
  }

  text(...path: Path): string | undefined {
    const value = this.at(...path);
    return typeof value === 'string' ? value : undefined;
  }

  keys(...path: Path): readonly string[] {
    const value = this.at(...path);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
  }

  texts(...path: Path): readonly { readonly path: Path; readonly text: string }[] {
    const value = this.at(...path);
    if (!Array.isArray(value)) return [];
    return value.flatMap((text, index) => (typeof text === 'string' ? [{ path: [...path, index], text }] : []));
  }
}

/** Keys that JavaScript treats specially would vanish silently. */
function noPrototypeKeys(file: Reader): readonly Issue[] {
  const found: Issue[] = [];
  const visit = (value: unknown, path: Path): void => {
    if (typeof value !== 'object' || value === null || path.length > 8) return;
    for (const key of Object.keys(value)) {
      if (key === '__proto__') found.push({ path: [...path, key], message: 'is no key of this file', atKey: true });
      else visit(Reflect.get(value, key), [...path, key]);
    }
  };
  visit(file.content, []);
  return found;
}

function oneWayToNameTheBinary(file: Reader): readonly Issue[] {
  if (file.at('etcd') === undefined) return [];
  const versions = file.keys('etcd', 'binaries');
  const version = file.text('etcd', 'version');
  const hasBinary = file.at('etcd', 'binary') !== undefined;
  const hasBinaries = file.at('etcd', 'binaries') !== undefined;
  if (hasBinary && hasBinaries)
    return [{ path: ['etcd', 'binaries'], message: 'stands beside binary; want one of them' }];
  if (!hasBinary && !hasBinaries) {
    return [
      { path: ['etcd', 'binary'], message: 'is missing; want the absolute path of an etcd, or binaries by version' },
    ];
  }
  if (hasBinary && version !== undefined) {
    return [{ path: ['etcd', 'version'], message: 'is for a choice among binaries; want it gone beside binary' }];
  }
  if (!hasBinaries) return [];
  if (versions.length === 0) return [{ path: ['etcd', 'binaries'], message: 'is empty; want at least one version' }];
  if (version === undefined && versions.length > 1) {
    return [{ path: ['etcd', 'version'], message: `is missing; want one of ${versions.join(', ')}` }];
  }
  if (version !== undefined && !versions.includes(version)) {
    return [{ path: ['etcd', 'version'], message: `has no path in binaries; want one of ${versions.join(', ')}` }];
  }
  return [];
}

function listenOnAddresses(file: Reader): readonly Issue[] {
  return (['peer', 'client'] as const).flatMap((side) => {
    const url = file.text('etcd', `${side}Url`);
    const key = side === 'peer' ? 'listenPeerUrls' : 'listenClientUrls';
    const endpoint = parseEndpoint(url ?? '');
    if (url === undefined || endpoint === undefined) return [];
    if (canListen(url) || file.at('etcd', key) !== undefined) return [];
    const message = `is missing; ${side}Url has a name and etcd listens on addresses only; want such as [${endpoint.scheme}://0.0.0.0:${endpoint.port}]`;
    return [{ path: ['etcd', key], message }];
  });
}

function oneSchemePerPort(file: Reader): readonly Issue[] {
  return (['peer', 'client'] as const).flatMap((side) => {
    const scheme = parseEndpoint(file.text('etcd', `${side}Url`) ?? '')?.scheme;
    if (scheme === undefined) return [];
    return file.texts('etcd', side === 'peer' ? 'listenPeerUrls' : 'listenClientUrls').flatMap(({ path, text }) => {
      const own = parseEndpoint(text)?.scheme;
      const message = `is ${own} while ${side}Url is ${scheme}; want the same scheme`;
      return own === undefined || own === scheme ? [] : [{ path, message }];
    });
  });
}

/** https without files is refused by etcd late; files beside http are ignored by etcd, and that would be plain text unnoticed. */
function tlsWhereHttps(file: Reader): readonly Issue[] {
  const scheme = (key: string) => parseEndpoint(file.text('etcd', key) ?? '')?.scheme;
  const peer = scheme('peerUrl');
  const client = scheme('clientUrl');
  const metrics = scheme('metricsUrl') ?? 'http';
  const clientSide = client === undefined ? undefined : client === 'https' || metrics === 'https' ? 'https' : 'http';
  const wanted = [
    { key: 'peer', scheme: peer, because: 'etcd.peerUrl' },
    { key: 'server', scheme: clientSide, because: 'etcd.clientUrl or etcd.metricsUrl' },
    { key: 'client', scheme: clientSide, because: 'etcd.clientUrl or etcd.metricsUrl' },
  ];
  return wanted.flatMap(({ key, scheme: own, because }) => {
    const given = file.at('tls', key) !== undefined;
    if (own === 'https' && !given) {
      return [{ path: ['tls', key], message: `is missing; ${because} is https; want cert, key and ca` }];
    }
    if (own !== 'http' || !given) return [];
    return [
      {
        path: ['tls', key],
        message: `is given, but ${because} is not https; want https there, or this gone`,
        atKey: true,
      },
    ];
  });
}

function portsDiffer(file: Reader): readonly Issue[] {
  const metricsListen = parseListenAddress(file.text('metrics', 'listen') ?? '');
  const listeners = [
    ...listenersOf(file, 'peerUrl', 'listenPeerUrls'),
    ...listenersOf(file, 'clientUrl', 'listenClientUrls'),
    ...urlAt(['etcd', 'metricsUrl'], file.text('etcd', 'metricsUrl') ?? 'http://127.0.0.1:2381'),
    ...(metricsListen === undefined ? [] : [{ path: ['metrics', 'listen'] satisfies Path, ...metricsListen }]),
  ];
  return listeners.flatMap((later, index) => {
    const earlier = listeners
      .slice(0, index)
      .find((each) => each.port === later.port && sameHost(each.host, later.host));
    if (earlier === undefined) return [];
    return [
      { path: later.path, message: `has port ${later.port}, as ${earlier.path.join('.')} has; want ports that differ` },
    ];
  });
}

interface Listener {
  readonly path: Path;
  readonly host: string;
  readonly port: number;
}

function listenersOf(file: Reader, urlKey: string, listenKey: string): readonly Listener[] {
  if (file.at('etcd', listenKey) === undefined) return urlAt(['etcd', urlKey], file.text('etcd', urlKey) ?? '');
  return file.texts('etcd', listenKey).flatMap(({ path, text }) => urlAt(path, text));
}

function urlAt(path: Path, text: string): readonly Listener[] {
  const endpoint = parseEndpoint(text);
  return endpoint === undefined ? [] : [{ path, host: endpoint.host, port: endpoint.port }];
}

function sameHost(one: string, other: string): boolean {
  return one === other || isWildcard(one) || isWildcard(other) || (isLoopback(one) && isLoopback(other));
}

function directoriesApart(file: Reader): readonly Issue[] {
  const directories = [
    { key: 'dataRoot', path: file.text('dataRoot') },
    { key: 'stateDir', path: file.text('stateDir') ?? '/var/lib/etcd-node-agent' },
    { key: 'runDir', path: file.text('runDir') ?? '/run/etcd-node-agent' },
  ];
  return directories.flatMap(({ key, path }, index) => {
    const clash = directories.slice(0, index).find((other) => path !== undefined && overlaps(path, other.path));
    if (clash === undefined) return [];
    return [{ path: file.at(key) === undefined ? [clash.key] : [key], message: apart(key, clash.key) }];
  });
}

function apart(key: string, other: string): string {
  return `overlaps: ${other} and ${key} must not lie inside each other; want directories of their own`;
}

function overlaps(one: string, other: string | undefined): boolean {
  return other !== undefined && (`${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`));
}

function socketPathFits(file: Reader): readonly Issue[] {
  const runDir = file.text('runDir');
  // sun_path of a unix socket holds 108 bytes, the closing zero included; `/agent.sock` takes 11.
  if (runDir === undefined || Buffer.byteLength(runDir) <= 96) return [];
  return [
    {
      path: ['runDir'],
      message: `has ${Buffer.byteLength(runDir)} bytes; want at most 96, since a socket's path is short`,
    },
  ];
}

/** The archive is made by one rename; a WAL elsewhere would be left behind and later met by another member. */
function walBesideData(file: Reader): readonly Issue[] {
  if (file.at('etcd', 'flags', 'wal-dir') === undefined) return [];
  const message = 'is refused: data and WAL are archived by one rename; want the WAL inside the data directory';
  return [{ path: ['etcd', 'flags', 'wal-dir'], message, atKey: true }];
}

function webhookIsSafe(file: Reader): readonly Issue[] {
  const url = file.text('upstream', 'url');
  const plain = url?.startsWith('http://') === true;
  const host = /^http:\/\/\[?([^\]/:]+|[0-9a-f:]+)\]?(?::\d+)?(?:\/|$)/.exec(url ?? '')?.[1] ?? '';
  const issues: Issue[] = [];
  if (plain && file.at('upstream', 'tokenFile') !== undefined && !isLoopback(host)) {
    issues.push({
      path: ['upstream', 'tokenFile'],
      message: 'would cross the network readable; want an https url beside it',
    });
  }
  if (plain && file.at('upstream', 'tls') !== undefined) {
    issues.push({
      path: ['upstream', 'tls'],
      message: 'is given, but url is http; want an https url, or this gone',
      atKey: true,
    });
  }
  const cert = file.at('upstream', 'tls', 'cert') !== undefined;
  const key = file.at('upstream', 'tls', 'key') !== undefined;
  if (cert !== key) {
    const missing = cert ? 'key' : 'cert';
    issues.push({ path: ['upstream', 'tls', missing], message: `is missing; want cert and key together` });
  }
  return issues;
}

function delaysInOrder(file: Reader): readonly Issue[] {
  const pairs = [{ first: 'reportFirst', most: 'reportMax', firstDefault: '1s', mostDefault: '60s' }];
  return pairs.flatMap(({ first, most, firstDefault, mostDefault }) => {
    const firstMs = parseDuration(file.text('timing', first) ?? firstDefault);
    const mostMs = parseDuration(file.text('timing', most) ?? mostDefault);
    if (firstMs === undefined || mostMs === undefined || firstMs <= mostMs) return [];
    const path = file.at('timing', most) === undefined ? ['timing', first] : ['timing', most];
    return [{ path, message: `want ${first} to be at most ${most}` }];
  });
}
