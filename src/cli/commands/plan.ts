import type { Command } from 'commander';
import type { PlanView } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { planText } from '../views.ts';

/** `plan`: what a turn taken now would do. */
export function addPlan(program: Command, context: CommandContext): void {
  const command = agentCommand('plan', 'shows the next step and why, or what blocks it; does nothing');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.get<PlanView>('/v1/plan'), planText);
  });
  program.addCommand(command);
}
