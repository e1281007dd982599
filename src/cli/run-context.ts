import type { Config } from '../agent/config.ts';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Environment } from './environment.ts';
import type { RootLog } from './log.ts';

/** What a running agent is given beside its configuration. */
export interface RunContext {
  readonly log: Log;
  readonly setLogLevel: RootLog['setLevel'];
  readonly clock: Clock;
  readonly environment: Environment;
  /** Version of this program, as it is reported. */
  readonly version: string;
  /** Aborts on SIGTERM and SIGINT: the agent ends, etcd runs on. */
  readonly stop: AbortSignal;
  /** Why the file was refused at the start, so that `config` is the last good one; undefined if it was good. */
  readonly refusedConfig: string | undefined;
  /** Reads the configuration file again. Throws ConfigError; nothing is changed by reading. */
  readConfig(): Config;
  /** Whom SIGHUP calls, one after the other; a rejection is logged and changes nothing. Replaces the one before. */
  onReload(reload: () => Promise<void>): void;
}
