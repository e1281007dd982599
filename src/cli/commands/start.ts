import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `start`: etcd may run again. */
export function addStart(program: Command, context: CommandContext): void {
  const command = agentCommand('start', 'lets etcd run again after stop').option(
    '--dry-run',
    'say what would be done, do nothing',
  );
  command.action(async (options: CommonOptions & { readonly dryRun?: boolean }) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/start', { dryRun: options.dryRun === true }), answerText);
  });
  program.addCommand(command);
}
