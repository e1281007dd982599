/** @pure file: what the program takes from its environment, and nothing else. */

/** The documented variables, read once by cli/config.ts. */
export interface Environment {
  /** `ETCD_NODE_AGENT_CONFIG`: the configuration file, where `--config` is not given. */
  readonly configFile: string | undefined;
  /** `ETCD_NODE_AGENT_SOCKET`: the agent's socket, where `--socket` is not given. */
  readonly socket: string | undefined;
  /** True if standard output is the journal (`JOURNAL_STREAM` names the file that it is). */
  readonly journal: boolean;
  /** `NOTIFY_SOCKET`: where systemd wants to hear of readiness; undefined outside systemd. */
  readonly notifySocket: string | undefined;
  /** `WATCHDOG_USEC`, in ms: systemd wants to hear from us at least that often; undefined if it does not watch. */
  readonly watchdogMs: number | undefined;
  /** `ETCD_NODE_AGENT_CRASH_AT`: a test mode, see crash-mode.ts; undefined without it. */
  readonly crashAt: string | undefined;
  /** `PATH`, for the few programs that are run. Default `/usr/sbin:/usr/bin:/sbin:/bin`. */
  readonly path: string;
}

/** Where the configuration is if nobody says otherwise. */
export const defaultConfigFile = '/etc/etcd-node-agent/config.yaml';
/** Where the socket is if neither option, environment nor configuration says otherwise. */
export const defaultSocket = '/run/etcd-node-agent/agent.sock';

/** @pure Reads the variables. `stdout` is `device:inode` of standard output. An empty variable counts as not set. */
export function environmentOf(variables: Readonly<Record<string, string | undefined>>, stdout: string): Environment {
  const read = (name: string) => (variables[name] === '' ? undefined : variables[name]);
  const watchdogUsec = Number(read('WATCHDOG_USEC'));
  return Object.freeze({
    configFile: read('ETCD_NODE_AGENT_CONFIG'),
    socket: read('ETCD_NODE_AGENT_SOCKET'),
    // systemd sets it for all that the unit runs; it says something of us only while our output is that very file.
    journal: read('JOURNAL_STREAM') === stdout,
    notifySocket: read('NOTIFY_SOCKET'),
    watchdogMs: Number.isSafeInteger(watchdogUsec) && watchdogUsec > 0 ? Math.floor(watchdogUsec / 1000) : undefined,
    crashAt: read('ETCD_NODE_AGENT_CRASH_AT'),
    path: read('PATH') ?? '/usr/sbin:/usr/bin:/sbin:/bin',
  });
}
