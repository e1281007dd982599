/** @pure file: etcd's flags: those an operator may set, with their spelling per version, and those that the agent keeps to itself. */

/** What a flag takes. `count`: a whole number from 0. `duration`: Go's, as in `10m`. `retention`: a number or a duration. `gates`: `Name=true,…`. */
export type FlagValueKind =
  | 'count'
  | 'switch'
  | 'duration'
  | 'retention'
  | 'text'
  | 'gates'
  | { readonly oneOf: readonly string[] };

/**
 * One flag for operators, under the name that it has in the newest version. Versions are the first patch of each line that has it (see
 * `sinceOneOf`). Verified against real binaries by test/real/flags.test.ts.
 */
export interface OperatorFlag {
  readonly takes: FlagValueKind;
  /** Accepted as `--name` since. Empty: never. */
  readonly plainSince: readonly string[];
  /** Accepted as `--experimental-name` since; used where `--name` is not there yet. */
  readonly experimentalSince: readonly string[];
  /** Since 3.6 a switch in `--feature-gates` of this name. */
  readonly gate?: string;
}

const everywhere: readonly string[] = ['3.4.0'];
const from35: readonly string[] = ['3.5.0'];
const from36: readonly string[] = ['3.6.0'];

const plain = (takes: FlagValueKind, plainSince = everywhere): OperatorFlag => {
  return { takes, plainSince, experimentalSince: [] };
};
/** Experimental before 3.6, plain since. */
const grown = (takes: FlagValueKind, experimentalSince = from35): OperatorFlag => {
  return { takes, plainSince: from36, experimentalSince };
};
/** An experimental switch before 3.6, a feature gate since. */
const gated = (gate: string, experimentalSince = from35): OperatorFlag => {
  return { takes: 'switch', plainSince: [], experimentalSince, gate };
};

/** What operators may set under `etcd.flags`. */
export const operatorFlags: Readonly<Record<string, OperatorFlag>> = {
  'snapshot-count': plain('count'),
  'max-snapshots': plain('count'),
  'max-wals': plain('count'),
  'quota-backend-bytes': plain('count'),
  'backend-batch-interval': plain('duration'),
  'backend-batch-limit': plain('count'),
  'backend-bbolt-freelist-type': {
    takes: { oneOf: ['array', 'map'] },
    plainSince: from35,
    experimentalSince: everywhere,
  },
  'heartbeat-interval': plain('count'),
  'election-timeout': plain('count'),
  'initial-election-tick-advance': plain('switch'),
  'max-txn-ops': plain('count'),
  'max-request-bytes': plain('count'),
  'max-concurrent-streams': plain('count', ['3.4.20', '3.5.5']),
  'max-learners': plain('count', from36),
  'grpc-keepalive-min-time': plain('duration'),
  'grpc-keepalive-interval': plain('duration'),
  'grpc-keepalive-timeout': plain('duration'),
  'raft-read-timeout': plain('duration', from35),
  'raft-write-timeout': plain('duration', from35),
  'auto-compaction-mode': plain({ oneOf: ['periodic', 'revision'] }),
  'auto-compaction-retention': plain('retention'),
  cors: plain('text'),
  'host-whitelist': plain('text'),
  'cipher-suites': plain('text'),
  'tls-min-version': plain({ oneOf: ['TLS1.2', 'TLS1.3'] }, ['3.4.25', '3.5.8']),
  'tls-max-version': plain({ oneOf: ['TLS1.2', 'TLS1.3'] }, ['3.4.25', '3.5.8']),
  'client-cert-allowed-hostname': plain('text'),
  'peer-cert-allowed-cn': plain('text'),
  'peer-cert-allowed-hostname': plain('text'),
  'peer-skip-client-san-verification': grown('switch', everywhere),
  'auth-token': plain('text'),
  'auth-token-ttl': plain('count'),
  'bcrypt-cost': plain('count'),
  'enable-pprof': plain('switch'),
  'enable-grpc-gateway': plain('switch'),
  metrics: plain({ oneOf: ['basic', 'extensive'] }),
  'feature-gates': plain('gates', from36),
  'corrupt-check-time': grown('duration', everywhere),
  'compact-hash-check-time': grown('duration', ['3.5.5']),
  'compaction-batch-limit': grown('count', everywhere),
  'compaction-sleep-interval': grown('duration'),
  'watch-progress-notify-interval': grown('duration', everywhere),
  'warning-apply-duration': grown('duration', ['3.4.16', '3.5.0']),
  'warning-unary-request-duration': plain('duration', from36),
  'bootstrap-defrag-threshold-megabytes': grown('count'),
  'snapshot-catchup-entries': grown('count', ['3.5.14']),
  'memory-mlock': grown('switch'),
  'downgrade-check-time': grown('duration'),
  'enable-distributed-tracing': grown('switch'),
  'distributed-tracing-address': grown('text'),
  'distributed-tracing-service-name': grown('text'),
  'distributed-tracing-instance-id': grown('text'),
  'distributed-tracing-sampling-rate': grown('count'),
  'initial-corrupt-check': gated('InitialCorruptCheck', everywhere),
  'compact-hash-check-enabled': gated('CompactHashCheck', ['3.5.5']),
  'enable-lease-checkpoint': gated('LeaseCheckpoint', everywhere),
  'enable-lease-checkpoint-persist': gated('LeaseCheckpointPersist', ['3.4.23', '3.5.2']),
  'stop-grpc-service-on-defrag': gated('StopGRPCServiceOnDefrag', ['3.5.14']),
  'txn-mode-write-with-shared-buffer': gated('TxnModeWriteWithSharedBuffer'),
};

const identity = 'the agent computes it from the role and the cluster';
const address = 'it is set in the addresses of the configuration';
const tls = 'it is set in the tls section of the configuration';
const log = "the agent reads etcd's log and depends on its form";
const discovery = 'a cluster is founded and joined by the agent, never by discovery';
const removedFeature = 'etcd has removed it, and data written with it cannot be upgraded';

/** Flags that the agent sets or forbids, and why. */
export const managedFlags: Readonly<Record<string, string>> = {
  name: identity,
  'data-dir': identity,
  'wal-dir': 'the log lies in the data directory: both are archived as one',
  'initial-advertise-peer-urls': address,
  'initial-cluster': identity,
  'initial-cluster-state': identity,
  'initial-cluster-token': identity,
  'listen-peer-urls': address,
  'listen-client-urls': address,
  'listen-client-http-urls': address,
  'listen-metrics-urls': address,
  'advertise-client-urls': address,
  'cert-file': tls,
  'key-file': tls,
  'client-cert-file': tls,
  'client-key-file': tls,
  'client-cert-auth': tls,
  'client-crl-file': tls,
  'trusted-ca-file': tls,
  'auto-tls': tls,
  'peer-cert-file': tls,
  'peer-key-file': tls,
  'peer-client-cert-file': tls,
  'peer-client-key-file': tls,
  'peer-client-cert-auth': tls,
  'peer-crl-file': tls,
  'peer-trusted-ca-file': tls,
  'peer-auto-tls': tls,
  'self-signed-cert-validity': tls,
  logger: log,
  'log-outputs': log,
  'log-output': log,
  'log-level': log,
  'log-format': log,
  'log-package-levels': log,
  'enable-log-rotation': log,
  'log-rotation-config-json': log,
  debug: log,
  'config-file': 'with it etcd ignores every flag, those of the agent as well',
  'force-new-cluster': 'it drops the other members; a recovery is an order of its own',
  'unsafe-no-fsync': 'a member that forgets acknowledged writes loses them for the whole cluster',
  'strict-reconfig-check': 'it is always on: it refuses changes that would lose the quorum',
  'pre-vote': 'it is always on: a member that comes back must not depose the leader',
  'socket-reuse-port': 'a second etcd could take the same port without a word',
  'socket-reuse-address': 'a second etcd could take the same port without a word',
  'enable-v2': removedFeature,
  'enable-v2v3': removedFeature,
  'v2-deprecation': 'it decides about the format of the data',
  proxy: removedFeature,
  'proxy-dial-timeout': removedFeature,
  'proxy-failure-wait': removedFeature,
  'proxy-read-timeout': removedFeature,
  'proxy-refresh-interval': removedFeature,
  'proxy-write-timeout': removedFeature,
  discovery,
  'discovery-cacert': discovery,
  'discovery-cert': discovery,
  'discovery-dial-timeout': discovery,
  'discovery-endpoints': discovery,
  'discovery-fallback': discovery,
  'discovery-insecure-skip-tls-verify': discovery,
  'discovery-insecure-transport': discovery,
  'discovery-keepalive-time': discovery,
  'discovery-keepalive-timeout': discovery,
  'discovery-key': discovery,
  'discovery-password': discovery,
  'discovery-proxy': discovery,
  'discovery-request-timeout': discovery,
  'discovery-srv': discovery,
  'discovery-srv-name': discovery,
  'discovery-token': discovery,
  'discovery-user': discovery,
  version: 'it makes etcd print its version and end',
  help: 'it makes etcd print its usage and end',
};
