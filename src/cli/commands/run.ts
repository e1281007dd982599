import { Command } from 'commander';
import type { CommandContext } from '../command-line.ts';
import { configFileOf } from '../config.ts';

/** `run`: the agent itself, in the foreground, until SIGTERM or SIGINT. etcd runs on then. */
export function addRun(program: Command, context: CommandContext): void {
  const command = new Command('run')
    .description('runs the agent in the foreground; SIGHUP reloads, SIGTERM and SIGINT end it and leave etcd running')
    .option(
      '--config <file>',
      'the configuration (default: ETCD_NODE_AGENT_CONFIG, then /etc/etcd-node-agent/config.yaml)',
    );
  command.action(async (options: { readonly config?: string }) => {
    const { runUntilSignal } = await import('../run.ts');
    await runUntilSignal(configFileOf(options.config, context.io.environment), context.io.environment);
  });
  program.addCommand(command);
}
