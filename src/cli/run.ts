import { resolve } from 'node:path';
import type { Config } from '../agent/config.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { realDisk } from '../base/real-disk.ts';
import { systemClock } from '../base/system-clock.ts';
import { ConfigError, formatProblem } from './config-error.ts';
import { loadConfig, readTextOrNothing } from './config-file.ts';
import type { Environment } from './environment.ts';
import { exitCodes } from './exit-codes.ts';
import { checkEtcdFlags } from './flag-check.ts';
import { readLastGood } from './last-good.ts';
import { createLog } from './log.ts';
import { recordedOtherwise } from './recorded-node.ts';
import type { RunContext } from './run-context.ts';
import { AgentAlreadyRunningError } from './state-lock.ts';
import { version } from './version.ts';

/**
 * From a configuration file to a running agent, until SIGTERM or SIGINT. Throws ConfigError before anything is touched, if
 * the file is broken and there is no last good configuration. A
 * promise that nobody waited for, or an exception that nobody caught, ends the agent with 1: half a state is worse than a
 * restart, and etcd runs on meanwhile.
 */
export async function runUntilSignal(
  file: string,
  environment: Environment,
  runAgent: RunAgent = async (config, context) => (await import('./wire.ts')).runAgent(config, context),
): Promise<void> {
  const readConfig = () => loadConfig(file, { checkFlags: checkEtcdFlags });
  const { config, refused } = bootConfig(file, readConfig);
  const clock = systemClock;
  const { log, setLevel } = createLog({ clock, level: config.log.level, journal: environment.journal });
  dieOnLostErrors(log);
  const stop = stopOnSignal(log);
  const reloading = reloadOnHangup(log);
  log.info({ version, node: config.node.id, config: file, pid: process.pid }, 'the agent starts');
  for (const problem of refused?.problems ?? [])
    log.error({ problem: formatProblem(problem) }, 'the configuration is refused; the agent runs on the last good one');
  try {
    await runAgent(config, {
      log,
      setLogLevel: setLevel,
      clock,
      environment,
      version,
      stop,
      refusedConfig: refused?.message,
      readConfig,
      onReload: reloading.onReload,
    });
  } catch (error) {
    const hint = error instanceof AgentError ? { hint: error.hint } : {};
    log.error({ error, because: describeError(error), ...hint }, 'the agent ends of an error; etcd runs on');
    process.exit(error instanceof AgentAlreadyRunningError ? exitCodes.alreadyRunning : exitCodes.failed);
  }
  log.info({}, 'the agent has ended');
  // A timer or a socket that a part forgot must not keep the process.
  process.exit(exitCodes.ok);
}

/**
 * The file's configuration or, where the file is broken or names another node than this one, what it was when it was good: a typing
 * error must not keep etcd down over a reboot, nor hide one that runs. Throws ConfigError if there is neither.
 */
export function bootConfig(
  file: string,
  readConfig: () => Config,
): { readonly config: Config; readonly refused: ConfigError | undefined } {
  try {
    return { config: ofThisNode(readConfig()), refused: undefined };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const lastGood = readLastGood(realDisk, resolve(file), readTextOrNothing(file));
    if (lastGood.config !== undefined && recordedOtherwise(lastGood.config).length > 0) throw error;
    if (lastGood.config === undefined)
      throw new ConfigError(
        error.problems,
        `${error.hint}. There is no last good configuration either: ${lastGood.because}.`,
      );
    return { config: lastGood.config, refused: error };
  }
}

function ofThisNode(config: Config): Config {
  const problems = recordedOtherwise(config);
  if (problems.length === 0) return config;
  throw new ConfigError(problems.map((problem) => ({ file: config.file, line: 0, column: 0, ...problem })));
}

/** The agent's own main: resolves when it has ended in order, rejects if it cannot go on. */
export type RunAgent = (config: Config, context: RunContext) => Promise<void>;

function dieOnLostErrors(log: Log): void {
  const die = (kind: string) => (error: unknown) => {
    log.error({ error, because: describeError(error) }, `the agent ends of ${kind}; etcd runs on`);
    process.exit(exitCodes.failed);
  };
  process.on('uncaughtException', die('an uncaught exception'));
  process.on('unhandledRejection', die('an unhandled rejection'));
}

function stopOnSignal(log: Log): AbortSignal {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) {
      log.warn({ signal }, 'told to end a second time; the agent ends at once, etcd runs on');
      process.exit(exitCodes.failed);
    }
    log.info(
      { signal },
      'the agent ends and etcd runs on; to stop etcd as well, run: etcd-node-agent stop, while an agent runs',
    );
    stop.abort();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return stop.signal;
}

/** SIGHUP is listened to from the start: by default it would end the agent. Reloads do not overlap. */
function reloadOnHangup(log: Log): { onReload(reload: () => Promise<void>): void } {
  let reload: (() => Promise<void>) | undefined;
  let last = Promise.resolve();
  process.on('SIGHUP', () => {
    last = last
      .then(() => reload?.())
      .catch((error: unknown) => log.error({ because: describeError(error) }, 'the reload failed and changed nothing'));
  });
  return {
    onReload(next) {
      reload = next;
    },
  };
}
