import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `shutdown`: the machine goes down; the unit calls it. */
export function addShutdown(program: Command, context: CommandContext): void {
  const command = agentCommand(
    'shutdown',
    'stops etcd because the machine goes down; it is started again after the next boot',
  ).option('--dry-run', 'say what would be done, do nothing');
  command.action(async (options: CommonOptions & { readonly dryRun?: boolean }) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/shutdown', { dryRun: options.dryRun === true }), answerText);
  });
  program.addCommand(command);
}
