import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext } from '../command-line.ts';
import { answerText } from '../views.ts';
import { type MemberOrderOptions, orderOf, withOrderOptions } from './members.ts';

/** `replace`: the data of this node's member is lost or must not run; its id is removed and the node joins anew. */
export function addReplace(program: Command, context: CommandContext): void {
  const command = withOrderOptions(
    agentCommand('replace', 'removes this member, whose data is lost or must not run, and joins anew').argument(
      '<member-id>',
      'id of this member, in hex',
      read.hexId,
    ),
  );
  command.action(async (memberId: string, options: MemberOrderOptions) => {
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/replace', orderOf(memberId, options)), answerText);
  });
  program.addCommand(command);
}
