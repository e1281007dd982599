import type { Command } from 'commander';
import type { StatusView } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { statusText } from '../views.ts';

/** `status`: the node on one screen. */
export function addStatus(program: Command, context: CommandContext): void {
  const command = agentCommand('status', 'shows this node: etcd, member, cluster, plan, outbox, alarms');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.get<StatusView>('/v1/status'), statusText);
  });
  program.addCommand(command);
}
