import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `resume`: ends a pause. */
export function addResume(program: Command, context: CommandContext): void {
  const command = agentCommand('resume', 'ends a pause');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/resume', {}), answerText);
  });
  program.addCommand(command);
}
