import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `confirm-removed`: an operator knows that the member was removed. */
export function addConfirmRemoved(program: Command, context: CommandContext): void {
  const command = agentCommand('confirm-removed', 'settles an unconfirmed removal: this member was removed').argument(
    '<member-id>',
    'id of this member, in hex',
    read.hexId,
  );
  command.action(async (memberId: string, options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/confirm-removed', { memberId }), answerText);
  });
  program.addCommand(command);
}
