import type { Config } from '../../../src/agent/config.ts';

/** A directory that lies in memory: a reboot empties it. */
export const runDir = '/run';

/** The configuration of an agent in the simulation: the defaults, with the addresses of its node. */
export function fleetConfig(name: string, peerUrl: string, clientUrl: string): Config {
  return {
    file: '/agent.yaml',
    node: { id: name },
    cluster: { name: 'default' },
    dataRoot: '/root',
    mustBeMount: false,
    stateDir: '/state',
    runDir,
    etcd: {
      name,
      binary: '/usr/bin/etcd',
      version: undefined,
      binaries: {},
      peerUrl,
      clientUrl,
      listenPeerUrls: [peerUrl],
      listenClientUrls: [clientUrl],
      metricsUrl: 'http://127.0.0.1:2381',
      flags: {},
      user: undefined,
      oomScoreAdjust: 0,
      stopGraceMs: 30_000,
    },
    tls: { peer: undefined, server: undefined, client: undefined },
    role: { file: '/role.json' },
    upstream: { kind: 'none' },
    metrics: { listen: undefined },
    log: { level: 'error' },
    archives: { keep: 20, minDays: 7 },
    outbox: { maxBytes: 64 * 1024 * 1024, maxFacts: 100_000, keepDays: 7 },
    timing: {
      idleTurnMs: 10_000,
      probeIntervalMs: 2_000,
      probeDeadlineMs: 3_000,
      probeMisses: 5,
      statusIntervalMs: 30_000,
      listIntervalMs: 60_000,
      reportFirstMs: 1_000,
      reportMaxMs: 60_000,
    },
  };
}
