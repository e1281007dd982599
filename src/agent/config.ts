/** @pure file: the configuration of the agent as its parts see it; cli/config.ts makes it from the file, with all defaults filled in. */

/** Everything that the operator decides. Frozen; a reload makes a new one. */
export interface Config {
  /** The file it was read from; absolute. */
  readonly file: string;
  readonly node: {
    /** Name of this node towards upstream. A lower-case label of at most 63 letters, digits and `-`. Never changes. */
    readonly id: string;
  };
  readonly cluster: {
    /** Our name of the cluster; a directory below the data root. Label as above, default `default`. Never changes. */
    readonly name: string;
  };
  /** Data lies in `<dataRoot>/<cluster.name>/<etcd.name>/data` and the archives beside it, on one file system. Absolute. See layout.ts. */
  readonly dataRoot: string;
  /** True: the data root must be a mount point from the first start on. Default false. */
  readonly mustBeMount: boolean;
  /** The agent's own records. Absolute, default `/var/lib/etcd-node-agent`; outside the data root, so that it survives a lost volume. */
  readonly stateDir: string;
  /** Holds the socket of the local API, mode 0750. Absolute, default `/run/etcd-node-agent`, at most 96 bytes (a socket's path has 107). */
  readonly runDir: string;
  readonly etcd: EtcdConfig;
  readonly tls: TlsConfig;
  readonly role: {
    /** The role document, where the role comes from a file. Absolute. A missing file is an unknown role, never "none". */
    readonly file: string;
  };
  readonly upstream: UpstreamConfig;
  readonly metrics: {
    /** Where the agent's own metrics are served over TCP, with the scheme of `etcd.clientUrl`. Default: nowhere (the socket has them). */
    readonly listen: ListenAddress | undefined;
  };
  readonly log: {
    /** Least severe level that is written. Default `info`. Changed by a reload. */
    readonly level: LogLevel;
  };
  readonly archives: {
    /** How many archived data directories stay. Default 2, from 1 to 100. */
    readonly keep: number;
    /** None goes before this many days. Default 7, from 1 to 365: evidence outlives a weekend. */
    readonly minDays: number;
  };
  readonly outbox: OutboxConfig;
  readonly timing: TimingConfig;
}

/** Levels of the log, most talkative first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** An address to listen on; IPv6 without brackets. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** What is known beforehand of the etcd to run. */
export interface EtcdConfig {
  /** etcd's `--name`. Label as `node.id`, which is the default. Never changes. */
  readonly name: string;
  /** The binary to run: the one named for `version`, or the only one. Absolute. */
  readonly binary: string;
  /** Which of `binaries` is run (`3.5.30`); undefined where only a path was given, then the binary is asked. */
  readonly version: string | undefined;
  /** Version → absolute path. Empty where only a path was given. */
  readonly binaries: Readonly<Record<string, string>>;
  /** What other members dial. `http(s)://host:port`, as all URLs here. */
  readonly peerUrl: string;
  /** What clients dial. */
  readonly clientUrl: string;
  /** Where etcd listens for members: addresses, never names. Default: the peer URL. */
  readonly listenPeerUrls: readonly string[];
  /** Where etcd listens for clients: addresses, never names. Default: the client URL. */
  readonly listenClientUrls: readonly string[];
  /** Where etcd serves `/health` and `/metrics`. Default `http://127.0.0.1:2381`. */
  readonly metricsUrl: string;
  /** Further flags of etcd, without dashes, as text. Those that the agent sets itself are refused. Default none. */
  readonly flags: Readonly<Record<string, string>>;
  /** User (name or number) that etcd runs as. Default: the agent's own. */
  readonly user: string | undefined;
  /** The kernel's oom_score_adj of etcd. Default -900, from -1000 to 1000: the agent may die first. */
  readonly oomScoreAdjust: number;
  /** Time from TERM to KILL. Unit: ms, default 30 000, from 20 000 to 600 000: measured worst orderly end about 15 s. */
  readonly stopGraceMs: number;
}

/** PEM files of one identity; absolute paths. Read anew on change. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Whom the holder trusts. */
  readonly ca: string;
}

/** Identities. Present exactly where the URL is https. */
export interface TlsConfig {
  /** etcd towards members; with an https peer URL. */
  readonly peer: TlsFiles | undefined;
  /** etcd towards clients; with an https client or metrics URL. */
  readonly server: TlsFiles | undefined;
  /** The agent as a client of etcd; with an https client or metrics URL. */
  readonly client: TlsFiles | undefined;
}

/** Who hears of changes. */
export type UpstreamConfig =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'webhook';
      /** Where events are posted. `http(s)`, with a path. */
      readonly url: string;
      /** Trust other than the machine's (`ca`), and an identity of our own (`cert` and `key`). */
      readonly tls:
        | { readonly ca: string | undefined; readonly cert: string | undefined; readonly key: string | undefined }
        | undefined;
      /** File with a bearer token. Absolute; https only, or loopback. */
      readonly tokenFile: string | undefined;
    };

/** Bounds of the reports that wait on disk. */
export interface OutboxConfig {
  /** Unit: bytes, default 64 MiB, from 1 MiB to 1 GiB. */
  readonly maxBytes: number;
  /** Default 100 000, from 100 to 1 000 000. */
  readonly maxFacts: number;
  /** Acknowledged facts stay this many days for a restored receiver. Default 7, from 0 to 90. */
  readonly keepDays: number;
}

/** Rhythms. The defaults are for a LAN; raise them together with etcd's own on all members. */
export interface TimingConfig {
  /** Rest between two turns when nothing wakes the agent, ± 20 %. Unit: ms, default 10 000, from 500 to 300 000. */
  readonly idleTurnMs: number;
  /** Between two liveness probes. Unit: ms, default 2000, from 200 to 60 000. */
  readonly probeIntervalMs: number;
  /** A probe that takes longer has failed. Unit: ms, default 3000, from 200 to 60 000. */
  readonly probeDeadlineMs: number;
  /** Failed probes in a row until etcd counts as unresponsive. Default 5, from 2 to 100. */
  readonly probeMisses: number;
  /** Between two Status calls in quiet times. Unit: ms, default 30 000, from 5000 to 600 000: 1 Hz hits about 2 % of removals. */
  readonly statusIntervalMs: number;
  /** Between two linearizable member lists when nothing triggers one. Unit: ms, default 60 000, from 2000 to 600 000. */
  readonly listIntervalMs: number;
  /** Delay before a failed report is sent again; it doubles. Unit: ms, default 1000, from 100 to 60 000. */
  readonly reportFirstMs: number;
  /** No report waits longer, a receiver's Retry-After aside. Unit: ms, default 60 000, from 1000 to 3 600 000. */
  readonly reportMaxMs: number;
}

/** Where the local API listens. */
export function socketPathOf(config: Config): string {
  return `${config.runDir}/agent.sock`;
}
