import type { Clock } from '../base/clock.ts';
import { AgentError, describeError } from '../base/errors.ts';
import { type EtcdRun, etcdArguments, type InitialCluster } from '../etcd/flags.ts';
import { type EtcdVersion, formatVersion } from '../etcd/known-versions.ts';
import type { TlsFinding, TlsUse } from '../pki/check-tls.ts';
import type { Config, TlsFiles } from './config.ts';
import type { Host } from './host.ts';
import type { Layout } from './layout.ts';
import type { StartProblem } from './observed.ts';
import type { StartOrder } from './ports.ts';
import type { DurableValue } from './state/durable-value.ts';
import type { IdentityRecord } from './state/schemas.ts';
import { type usedVersionSchema, versionProblem } from './used-version.ts';

/** etcd cannot be started with this configuration; nothing was started. */
export class StartRefusedError extends AgentError {
  readonly code = 'START_REFUSED';
}

/** What etcd is started with, and what stands in the way of a start: looked at before every one. */
export class StartOrders {
  readonly #options: StartOrdersOptions;

  constructor(options: StartOrdersOptions) {
    this.#options = options;
  }

  /** The command for this member. Throws {@link StartRefusedError}. */
  order(identity: IdentityRecord, founding: boolean): StartOrder & { readonly version: string } {
    const { config } = this.#options;
    const version = this.#version();
    const { args, problems } = etcdArguments(this.#run(identity, founding), version);
    if (problems.length > 0) {
      throw new StartRefusedError(problems.join('; '), {
        hint: `Correct ${config().file}, then reload the agent (SIGHUP).`,
      });
    }
    return { binary: config().etcd.binary, arguments: args, version: formatVersion(version) };
  }

  /** What stands in the way, and everything that a start depends on as one comparable text. Never throws. */
  preflight(identity: IdentityRecord | undefined): {
    readonly startingWith: string;
    readonly problems: readonly StartProblem[];
  } {
    const problems: StartProblem[] = [];
    let command = '';
    try {
      if (identity !== undefined) command = this.order(identity, false).arguments.join(' ');
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      problems.push({ what: describeError(error), hint: error.hint });
    }
    const older = versionProblem(this.#options.usedVersion, this.#options.version());
    problems.push(...this.#tlsProblems(), ...this.#holders(), ...(older === undefined ? [] : [older]));
    return {
      startingWith: [command, ...this.#files().map((path) => this.#options.host.fingerprint(path))].join('\n'),
      problems,
    };
  }

  /** A process other than our own etcd that has the data open now; undefined if none is seen. */
  holder(): Holder | undefined {
    const ownPid = this.#options.ownPid();
    const holders = this.#options.holdersOf(`${this.#options.layout.dataDir}/member/snap/db`);
    return holders.find(({ pid }) => pid !== ownPid);
  }

  #run(identity: IdentityRecord, founding: boolean): EtcdRun {
    const { tls, etcd } = this.#options.config();
    return {
      name: identity.name,
      dataDir: this.#options.layout.dataDir,
      listenPeerUrls: etcd.listenPeerUrls,
      advertisePeerUrls: [identity.peerUrl],
      listenClientUrls: etcd.listenClientUrls,
      advertiseClientUrls: [etcd.clientUrl],
      listenMetricsUrls: [etcd.metricsUrl],
      initial: initialOf(identity, founding),
      flags: etcd.flags,
      ...(tls.server === undefined ? {} : { clientTls: etcdFiles(tls.server) }),
      ...(tls.peer === undefined ? {} : { peerTls: etcdFiles(tls.peer) }),
    };
  }

  #version(): EtcdVersion {
    const version = this.#options.version();
    if (version !== undefined) return version;
    const { binary } = this.#options.config().etcd;
    const problem = this.#options.versionProblem();
    throw new StartRefusedError(problem === '' ? `${binary} is being asked which version of etcd it is` : problem, {
      hint: 'Check that the file exists, is executable and is etcd for this machine (`etcd --version`).',
    });
  }

  #files(): readonly string[] {
    const { tls, etcd } = this.#options.config();
    const sides = [tls.server, tls.peer, tls.client].filter((side): side is TlsFiles => side !== undefined);
    return [etcd.binary, ...sides.flatMap(({ cert, key, ca }) => [cert, key, ca])];
  }

  /** etcd joins first and only then dies of a missing file, so the files are looked at before. */
  #tlsProblems(): readonly StartProblem[] {
    const { tls, etcd } = this.#options.config();
    const uses: TlsUse[] = [];
    const nowMs = this.#options.clock.wallMs();
    const add = (files: TlsFiles | undefined, as: TlsUse['as'], urls: readonly string[]) => {
      if (files !== undefined)
        uses.push({
          files: agentFiles(files),
          as,
          addresses: urls.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, '')),
          nowMs,
        });
    };
    add(tls.peer, 'peer', [etcd.peerUrl]);
    const servers = [etcd.clientUrl, etcd.metricsUrl].filter((url) => url.startsWith('https:'));
    add(tls.server, 'server', [...new Set(servers)]);
    add(tls.client, 'client', []);
    const findings = uses
      .flatMap((use) => this.#options.checkTls(use))
      .filter((finding) => finding.severity === 'refuse');
    return findings.map(({ file, what, remedy }) => ({ what: `${file}: ${what}`, hint: remedy }));
  }

  /** A second etcd on the same data waits for ever without a word. */
  #holders(): readonly StartProblem[] {
    const holder = this.holder();
    if (holder === undefined) return [];
    return [
      {
        what: `the data directory is held by process ${holder.pid} (${holder.command})`,
        hint: 'Stop that process; the agent looks again by itself and never ends a process that is not its own.',
      },
    ];
  }
}

export interface StartOrdersOptions {
  readonly config: () => Config;
  readonly layout: Layout;
  readonly usedVersion: DurableValue<typeof usedVersionSchema>;
  readonly host: Host;
  readonly clock: Clock;
  /** Looks at certificates and keys; see pki/check-tls.ts. */
  readonly checkTls: (use: TlsUse) => readonly TlsFinding[];
  /** The version that the binary says it is; undefined if it does not run. */
  readonly version: () => EtcdVersion | undefined;
  /** Why it is not known, in words; empty while it is being asked. */
  readonly versionProblem: () => string;
  /** The processes that have the file open, as far as they are seen. */
  readonly holdersOf: (path: string) => readonly Holder[];
  /** The pid of the etcd that this agent supervises, while it runs. */
  readonly ownPid: () => number | undefined;
}

/** A process that holds a file. */
export interface Holder {
  readonly pid: number;
  readonly command: string;
  /** Its whole command line, where it can be read. */
  readonly arguments?: readonly string[];
}

/** The files of one identity as the TLS code calls them. */
export function agentFiles(files: TlsFiles): { certFile: string; keyFile: string; caFile: string } {
  return { certFile: files.cert, keyFile: files.key, caFile: files.ca };
}

function etcdFiles(files: TlsFiles): { certFile: string; keyFile: string; trustedCaFile: string } {
  return { certFile: files.cert, keyFile: files.key, trustedCaFile: files.ca };
}

/** Recorded at the founding or the adoption; etcd reads it only while it has no log. */
function initialOf(identity: IdentityRecord, founding: boolean): InitialCluster {
  const members = identity.initialCluster.split(',').map((entry) => {
    const at = entry.indexOf('=');
    return { name: entry.slice(0, at), peerUrls: [entry.slice(at + 1)] };
  });
  return { state: founding ? 'new' : 'existing', members, token: identity.initialClusterToken };
}
