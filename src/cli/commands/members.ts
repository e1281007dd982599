import type { Command } from 'commander';
import type { Answer, MembersView } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { membersText } from '../members-view.ts';
import { answerText } from '../views.ts';

/** Options of an order that changes who is a member. */
export interface MemberOrderOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly acceptZeroTolerance?: boolean;
  readonly withoutRecord?: boolean;
}

/** `members`: who is in the cluster and answers now; `members evict`: a dead one is taken out. */
export function addMembers(program: Command, context: CommandContext): void {
  const command = agentCommand('members', 'shows the members, and what each says of itself now');
  command.action(async (options: CommonOptions) => {
    const client = await context.client(options);
    context.print(options, await client.get<MembersView>('/v1/members'), membersText);
  });
  command.addCommand(evictCommand(context));
  program.addCommand(command);
}

function evictCommand(context: CommandContext): Command {
  const command = withOrderOptions(
    agentCommand('evict', 'removes a dead member, or a learner that never started').argument(
      '<member-id>',
      'id of the member, in hex',
      read.hexId,
    ),
  );
  command.action(async (memberId: string, _own: unknown, parsed: Command) => {
    // The options may stand before or after the word "evict".
    const options = parsed.optsWithGlobals<MemberOrderOptions>();
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/members/evict', orderOf(memberId, options)), answerText);
  });
  return command;
}

/** The options that `members evict` and `replace` share. */
export function withOrderOptions(command: Command): Command {
  return command
    .option('--accept-zero-tolerance', 'accept that not one more voter may fail afterwards')
    .option('--without-record', 'go on where the change record cannot be written (a full database)')
    .option('--dry-run', 'say what would be done, with the numbers; do nothing');
}

/** The body of such an order. */
export function orderOf(memberId: string, options: MemberOrderOptions): Readonly<Record<string, unknown>> {
  return {
    memberId,
    dryRun: options.dryRun === true,
    acceptZeroTolerance: options.acceptZeroTolerance === true,
    withoutRecord: options.withoutRecord === true,
  };
}
