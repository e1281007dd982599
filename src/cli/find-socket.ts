import { existsSync } from 'node:fs';
import { defaultConfigFile, defaultSocket, type Environment } from './environment.ts';

/**
 * The agent's socket: `--socket`, else the one of the configuration named by `--config`, else `ETCD_NODE_AGENT_SOCKET`, else
 * the configuration in use. A configuration is read for its `runDir` alone, so that a mistake in it does not keep an
 * operator from asking the agent that still runs on the former one.
 */
export async function findSocket(
  options: { readonly socket?: string; readonly config?: string },
  environment: Environment,
): Promise<string> {
  if (options.socket !== undefined) return options.socket;
  if (options.config !== undefined) return socketOf(options.config);
  if (environment.socket !== undefined) return environment.socket;
  if (environment.configFile !== undefined) return socketOf(environment.configFile);
  // The usual place first: it spares the parser.
  return existsSync(defaultSocket) || !existsSync(defaultConfigFile) ? defaultSocket : socketOf(defaultConfigFile);
}

async function socketOf(file: string): Promise<string> {
  const { readRunDir } = await import('./config-file.ts');
  const runDir = readRunDir(file);
  return runDir === undefined ? defaultSocket : `${runDir}/agent.sock`;
}
