import type { Config } from '../agent/config.ts';
import type { FileContent } from './config-schema.ts';

/** Frozen to the bottom. */
export function freezeConfig(config: Config): Config {
  return deepFreeze(config);
}

/** A correct file with every default filled in that depends on another field; frozen to the bottom. */
export function resolveConfig(file: string, content: FileContent): Config {
  const { etcd, timing, tls, metrics, outbox } = content;
  const binaries = etcd.binaries ?? {};
  const version = etcd.version ?? Object.keys(binaries)[0];
  return deepFreeze({
    file,
    node: content.node,
    cluster: content.cluster,
    dataRoot: content.dataRoot,
    mustBeMount: content.mustBeMount,
    stateDir: content.stateDir,
    runDir: content.runDir,
    etcd: {
      name: etcd.name ?? content.node.id,
      // The rules have seen to it that there is one.
      binary: etcd.binary ?? binaries[version ?? ''] ?? '',
      version,
      binaries,
      peerUrl: etcd.peerUrl,
      clientUrl: etcd.clientUrl,
      listenPeerUrls: etcd.listenPeerUrls ?? [etcd.peerUrl],
      listenClientUrls: etcd.listenClientUrls ?? [etcd.clientUrl],
      metricsUrl: etcd.metricsUrl,
      flags: etcd.flags,
      user: etcd.user,
      oomScoreAdjust: etcd.oomScoreAdjust,
      stopGraceMs: etcd.stopGrace,
    },
    tls: { peer: tls.peer, server: tls.server, client: tls.client },
    role: content.role,
    upstream: upstreamOf(content.upstream),
    metrics: { listen: metrics.listen },
    log: content.log,
    archives: content.archives,
    outbox: { maxBytes: outbox.maxBytes, maxFacts: outbox.maxFacts, keepDays: outbox.keepDays },
    timing: {
      idleTurnMs: timing.idleTurn,
      probeIntervalMs: timing.probeInterval,
      probeDeadlineMs: timing.probeDeadline,
      probeMisses: timing.probeMisses,
      statusIntervalMs: timing.statusInterval,
      listIntervalMs: timing.listInterval,
      reportFirstMs: timing.reportFirst,
      reportMaxMs: timing.reportMax,
    },
  });
}

function upstreamOf(upstream: FileContent['upstream']): Config['upstream'] {
  if (upstream.kind === 'none') return { kind: 'none' };
  const { tls } = upstream;
  return {
    kind: 'webhook',
    url: upstream.url,
    tls: tls === undefined ? undefined : { ca: tls.ca, cert: tls.cert, key: tls.key },
    tokenFile: upstream.tokenFile,
  };
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
