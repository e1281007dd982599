import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `reject-removal`: an operator knows that the member was not removed; etcd may be started again. */
export function addRejectRemoval(program: Command, context: CommandContext): void {
  const command = agentCommand(
    'reject-removal',
    'settles an unconfirmed removal: this member was not removed',
  ).argument('<member-id>', 'id of this member, in hex', read.hexId);
  command.action(async (memberId: string, options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/reject-removal', { memberId }), answerText);
  });
  program.addCommand(command);
}
