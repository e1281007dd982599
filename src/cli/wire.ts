import { join } from 'node:path';
import { startMetricsListener } from '../agent/api/metrics-listener.ts';
import { startApi } from '../agent/api/server.ts';
import { SocketInUseError } from '../agent/api/socket.ts';
import { assemble, type Parts } from '../agent/assemble.ts';
import { type Config, socketPathOf } from '../agent/config.ts';
import { changedFields, needsEtcdRestart, refuseFixedFields } from '../agent/config-change.ts';
import type { Answer } from '../agent/control.ts';
import { EtcdChild } from '../agent/etcd-child.ts';
import { EtcdCluster } from '../agent/etcd-cluster.ts';
import type { AgentEvent } from '../agent/events.ts';
import { realHost } from '../agent/host.ts';
import { layoutOf } from '../agent/layout.ts';
import { AgentMetrics } from '../agent/metrics.ts';
import { NodeControl } from '../agent/node-control.ts';
import { RoleOrders } from '../agent/role-orders.ts';
import { agentFiles, type Holder } from '../agent/start-order.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { realDisk } from '../base/real-disk.ts';
import { ReservingDisk } from '../base/reserving-disk.ts';
import { systemRandom } from '../base/system-random.ts';
import { inspectDataDir } from '../etcd/data-dir.ts';
import { isDecisive } from '../etcd/decisive.ts';
import { askLiveness, askReadiness } from '../etcd/health.ts';
import { formatVersion } from '../etcd/known-versions.ts';
import { checkTlsFiles } from '../pki/check-tls.ts';
import { listenersOn } from '../supervisor/port-holders.ts';
import type { ProbeOptions } from '../supervisor/probe.ts';
import { bootId, holdersOf, type Holder as Process } from '../supervisor/process.ts';
import { directLauncher } from '../supervisor/run.ts';
import { Supervisor } from '../supervisor/supervisor.ts';
import { BinaryVersion } from './binary-version.ts';
import { childPrefix } from './child-prefix.ts';
import { crashMode } from './crash-mode.ts';
import { EtcdLogs } from './etcd-logs.ts';
import { saveLastGood } from './last-good.ts';
import { openRecords } from './records.ts';
import { recoverer } from './recovery.ts';
import { RoleLink } from './role-link.ts';
import type { RunContext } from './run-context.ts';
import { keepServing } from './serving.ts';
import { takeStateLock } from './state-lock.ts';

/** Written blocks that a full disk leaves us for the record. Unit: bytes. */
const reserveBytes = 64 * 1024 * 1024;
/** While it starts, etcd is asked at this pace whether it is ready. Unit: ms. */
const readinessEveryMs = 200;
/** The agent does not restart a healthy etcd. */
const pendingLine =
  'what concerns etcd itself takes effect when etcd is next started: `stop`, then `start`, one member after the other; until then `status` shows what differs';
/** What helps where a role document was refused. */
const roleHint =
  'What was accepted last stays in force. docs/role.md says what a document must be, and which one counts as newer.';
/** How often the disk's reserve is written anew if it was used. Unit: ms. */
const refillEveryMs = 15_000;
/** Between two pieces of the reserve. Unit: ms. */
const refillPieceMs = 200;
/** The volume's marker is looked for this often. Unit: ms. */
const volumeEveryMs = 1_000;

/**
 * Builds the real parts, joins them, and runs until `context.stop` aborts; then it resolves, and etcd runs on. A rejection
 * ends the agent with 1.
 */
export async function runAgent(firstConfig: Config, context: RunContext): Promise<void> {
  const { log, clock, stop } = context;
  let current = firstConfig;
  const config = () => current;
  const ending = AbortSignal.any([stop]);
  realDisk.ensureDirectory(firstConfig.stateDir);
  const lock = await takeStateLock(firstConfig.stateDir, clock);
  const disk = new ReservingDisk({ disk: realDisk, path: `${firstConfig.stateDir}/reserve`, bytes: reserveBytes });
  disk.refillSome(); // one of the agent before is known from now on; the rest is written beside the work
  if (context.refusedConfig === undefined) saveLastGood(disk, firstConfig, log);
  const layout = layoutOf({
    stateDir: firstConfig.stateDir,
    dataRoot: firstConfig.dataRoot,
    clusterName: firstConfig.cluster.name,
    memberName: firstConfig.etcd.name,
  });

  const metrics = new AgentMetrics();
  const records = openRecords({
    config: firstConfig,
    layout,
    disk,
    clock,
    random: systemRandom,
    log,
    signal: ending,
    onAccepted: (kind, data) => metrics.count({ kind, ...data } as AgentEvent),
  });
  const cluster = new EtcdCluster({
    clock,
    log: log.child({ part: 'cluster' }),
    clientTls: firstConfig.tls.client === undefined ? undefined : agentFiles(firstConfig.tls.client),
    peerTls: firstConfig.tls.peer === undefined ? undefined : agentFiles(firstConfig.tls.peer),
    metricsUrl: firstConfig.etcd.metricsUrl,
  });
  const { prefix, owner } = await childPrefix(firstConfig.etcd, log);
  const version = new BinaryVersion({ config, host: realHost, onKnown: () => parts.agent.wake() });

  const supervisor = new Supervisor({
    directory: layout.childDir,
    lockFile: layout.lockFile,
    launcher: directLauncher(keeperPath()),
    disk,
    clock,
    log: log.child({ part: 'supervisor' }),
    signal: ending,
    isDecisive,
    rememberedLife: () => Math.max(parts.ends.last?.life ?? 0, parts.reports.reported.exitedLife),
    onLine: (life, line) => {
      logs.heard(line.text);
      let urgent = false;
      for (const news of parts.watch.take(life.number, line.text)) urgent = parts.turnReports.hear(news) || urgent;
      if (urgent) parts.agent.wake();
    },
    onEnd: () => {
      parts.status.begin();
      parts.progress.begin();
      parts.stuck.answered();
    },
    onChange: () => parts.agent.wake(),
    probes: () => probesOf(config, cluster, parts, context),
  });
  const logs = new EtcdLogs(supervisor);
  const child = new EtcdChild({
    supervisor,
    identity: layout.dataDir,
    prefix,
    environment: { PATH: context.environment.path },
    by: `agent of ${firstConfig.node.id}`,
  });
  const role = new RoleLink({
    config,
    disk,
    clock,
    log: log.child({ part: 'role' }),
    stateDir: layout.stateDir,
    clusterId: () => parts.state.knownIdentity()?.clusterId,
    onEvent: (event) => {
      if (event.kind === 'role.refused') parts.agent.refused('role document', event.because, roleHint);
      parts.reports.tellRole(event);
    },
    onChange: () => {
      parts.state.distrust('role', role.unusable());
      parts.agent.wake();
    },
    signal: ending,
  });
  const atCrashPoint = crashMode(context.environment.crashAt, log);
  const parts: Parts = assemble({
    config,
    layout,
    child,
    cluster,
    outbox: records.port,
    disk,
    host: realHost,
    clock,
    random: systemRandom,
    log: log.child({ part: 'agent' }),
    role,
    version: () => version.get(),
    versionProblem: () => version.problem(),
    holdersOf: (path) => holdersOf(path).map(holderSeen),
    portHolder: (port) => listenersOn(port).map(holderSeen)[0],
    inspectData: () => inspectDataDir(layout.dataDir),
    checkTls: checkTlsFiles,
    owner,
    bootId: () => bootId(),
    agentVersion: context.version,
    onPlan: () => {},
    ...(atCrashPoint === undefined ? {} : { atCrashPoint }),
  });

  const readNext = (): { readonly next: Config; readonly changed: readonly string[] } => {
    try {
      const next = context.readConfig();
      const changed = changedFields(current, next);
      refuseFixedFields(changed);
      return { next, changed };
    } catch (error) {
      parts.alarms.set('configurationRefused', describeError(error));
      const hint = error instanceof AgentError ? error.hint : '';
      parts.agent.refused('reload', describeError(error), hint);
      parts.agent.wake();
      throw error;
    }
  };
  const reload = async (): Promise<Answer> => {
    const { next, changed } = readNext();
    current = next;
    saveLastGood(disk, next, log);
    parts.alarms.set('configurationRefused', undefined);
    context.setLogLevel(next.log.level);
    log.info({ file: next.file }, 'the configuration was read again');
    parts.agent.wake();
    const later = needsEtcdRestart(changed) ? [pendingLine] : [];
    return {
      done: true,
      dryRun: false,
      lines: [`${next.file} was read again: ${changed.join(', ') || 'nothing has changed'}`, ...later],
    };
  };
  context.onReload(async () => {
    await reload();
  });
  parts.state.distrust('outbox', records.unusable);
  parts.alarms.set('configurationRefused', context.refusedConfig);
  if (context.refusedConfig !== undefined)
    parts.agent.refused('configuration at the start', context.refusedConfig, 'The agent runs on the last good one.');
  const control = new NodeControl({
    parts,
    child,
    role,
    roleOrders: new RoleOrders({
      ...parts,
      link: role,
      config,
      random: systemRandom,
      log,
      preview: async (wanted) => await parts.memberOrders.previewRole(wanted),
    }),
    outbox: records.control,
    logs,
    clock,
    config,
    agentVersion: context.version,
    pid: process.pid,
    etcdVersion: () => {
      const known = version.get();
      return known === undefined ? '' : formatVersion(known);
    },
    reload,
    metrics: (status) => metrics.render(status),
  });

  await version.ask();
  await recoverer({ supervisor, child, parts, clock, log, stop })();
  role.start();
  parts.state.distrust('role', role.unusable());
  const api = await keepServing({
    what: 'the local api',
    start: () => startApi({ control, socketPath: socketPathOf(firstConfig), clock, log: log.child({ part: 'api' }) }),
    isFatal: (error) => error instanceof SocketInUseError,
    onProblem: (problem) => parts.alarms.set('apiNotServed', problem),
    clock,
    log,
  });
  const { listen } = firstConfig.metrics;
  const tls = firstConfig.etcd.clientUrl.startsWith('https:') ? firstConfig.tls.server : undefined;
  const metricsListener =
    listen === undefined
      ? undefined
      : await keepServing({
          what: 'metrics over tcp',
          start: () => startMetricsListener({ listen, tls, render: () => control.metrics(), clock, log }),
          onProblem: (problem) => parts.alarms.set('metricsNotServed', problem),
          clock,
          log,
        });
  const stopTimers = [keepReserve(disk, context), every(context, volumeEveryMs, () => wakeOnVolumeChange(parts))];
  try {
    await parts.agent.run(ending);
  } finally {
    for (const stopTimer of stopTimers) stopTimer();
    await api.close();
    await metricsListener?.close();
    await records.reporting.end();
    saveReported(parts, log);
    records.close();
    cluster.close();
    lock.release();
  }
}

function probesOf(
  config: () => Config,
  cluster: EtcdCluster,
  parts: Parts,
  { clock }: RunContext,
): { readiness: ProbeOptions; liveness: ProbeOptions } {
  const { etcd, tls, timing } = config();
  const about = {
    metricsUrl: etcd.metricsUrl,
    tls: tls.client === undefined ? undefined : agentFiles(tls.client),
    clock,
  };
  return {
    readiness: {
      intervalMs: readinessEveryMs,
      deadlineMs: 5_000,
      misses: 1,
      ask: async (signal) => {
        const identity = parts.state.knownIdentity();
        const answer = await askReadiness({
          ...about,
          signal,
          client: cluster.client(etcd.clientUrl),
          expected: { memberId: identity?.memberId, clusterId: identity?.clusterId },
        });
        parts.health.notReady(answer.kind === 'ready' ? '' : answer.because);
        if (answer.kind !== 'ready') throw new NotReadyError(answer.because);
      },
    },
    liveness: {
      intervalMs: timing.probeIntervalMs,
      deadlineMs: timing.probeDeadlineMs,
      misses: timing.probeMisses,
      ask: async (signal) => {
        const answer = await askLiveness({ ...about, signal, deadlineMs: timing.probeDeadlineMs });
        if (answer.kind === 'alive') return parts.stuck.answered();
        parts.stuck.missed();
        throw new NotReadyError(answer.because);
      },
    },
  };
}

/** A probe's answer that is not the good one. */
class NotReadyError extends AgentError {
  readonly code = 'NOT_READY';
}

/** Writes the reserve piece by piece, so that nothing waits for it, and anew once it was used. */
function keepReserve(disk: ReservingDisk, context: RunContext): () => void {
  let said = false;
  let cancel = context.clock.after(refillPieceMs, step);
  function step(): void {
    if (context.stop.aborted) return;
    const state = disk.refillSome();
    if (state === 'noSpace' && !said)
      context.log.warn({ bytes: reserveBytes }, 'there is no space for the reserve of the state directory');
    said = state === 'noSpace';
    cancel = context.clock.after(state === 'more' ? refillPieceMs : refillEveryMs, step);
  }
  return () => cancel();
}

/** What was reported can be read off the outbox at the next start, so a disk that refuses costs only time. */
function saveReported(parts: Parts, log: Log): void {
  try {
    parts.reports.save();
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    log.warn({ error: describeError(error) }, 'what was reported could not be written down');
  }
}

function every({ clock, stop }: RunContext, ms: number, act: () => void): () => void {
  let cancel = clock.after(ms, tick);
  function tick(): void {
    if (stop.aborted) return;
    act();
    cancel = clock.after(ms, tick);
  }
  return () => cancel();
}

/** A volume that goes or comes back is noticed within a second, not only at the next idle turn. */
function wakeOnVolumeChange(parts: Parts): void {
  const before = parts.agent.latest?.seen.volume.kind;
  if (before !== undefined && parts.volume.look().kind !== before) parts.agent.wake();
}

/** By its program alone: an argument may be a secret. */
function holderSeen(holder: Process): Holder {
  return { pid: holder.pid, command: holder.commandLine[0] ?? '?', arguments: holder.commandLine };
}

/** Beside the bundle, or where the source has it. */
function keeperPath(): string {
  const bundled = join(import.meta.dirname, 'keeper.sh');
  return realHost.exists(bundled) ? bundled : join(import.meta.dirname, '../supervisor/keeper.sh');
}
