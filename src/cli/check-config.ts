import { ConfigError } from './config-error.ts';
import { loadConfig } from './config-file.ts';
import { checkMachine } from './config-machine.ts';
import { checkEtcdFlags } from './flag-check.ts';

/** All that `config check` looks at. Throws ConfigError with every problem; returns what was checked. */
export function checkConfig(file: string, machine: boolean): { readonly nodeId: string; readonly machine: boolean } {
  const config = loadConfig(file, { checkFlags: checkEtcdFlags });
  const problems = machine ? checkMachine(config) : [];
  if (problems.length > 0) {
    throw new ConfigError(problems.map((problem) => ({ file, line: 0, column: 0, ...problem })));
  }
  return { nodeId: config.node.id, machine };
}
