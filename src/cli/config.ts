import { fstatSync } from 'node:fs';
import { resolve } from 'node:path';
import { defaultConfigFile, type Environment, environmentOf } from './environment.ts';

/** The environment of this process; the only place that reads it. The file is read by config-file.ts. */
export function readEnvironment(): Environment {
  return environmentOf(process.env, standardOutputIdentity());
}

/** Which file holds the configuration: the one that was named, else `ETCD_NODE_AGENT_CONFIG`, else the usual one. Absolute. */
export function configFileOf(named: string | undefined, environment: Environment): string {
  return resolve(named ?? environment.configFile ?? defaultConfigFile);
}

/** `device:inode`, as systemd writes it into JOURNAL_STREAM. */
function standardOutputIdentity(): string {
  try {
    const { dev, ino } = fstatSync(1);
    return `${dev}:${ino}`;
  } catch {
    return 'closed';
  }
}
