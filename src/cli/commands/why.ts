import type { Command } from 'commander';
import type { WhyView } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { whyText } from '../views.ts';

/** `why`: the plan and the last refusals. */
export function addWhy(program: Command, context: CommandContext): void {
  const command = agentCommand('why', 'shows why the agent is not doing what the role asks for');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.get<WhyView>('/v1/why'), whyText);
  });
  program.addCommand(command);
}
