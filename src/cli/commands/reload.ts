import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `reload`: as SIGHUP, with an answer. */
export function addReload(program: Command, context: CommandContext): void {
  const command = agentCommand('reload', 'reads the configuration file again; a bad one changes nothing');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/reload', {}), answerText);
  });
  program.addCommand(command);
}
