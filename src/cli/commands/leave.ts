import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `leave`: the member hands leadership over, is removed through another voter, and its data is archived. */
export function addLeave(program: Command, context: CommandContext): void {
  const command = agentCommand('leave', 'takes the role away: the member hands over, leaves, and its data is archived')
    .option('--accept-zero-tolerance', 'leave although after that not one more voter may fail')
    .option('--without-record', 'leave although the change record cannot be written (a full database)')
    .option('--dry-run', 'say what would be done, with the numbers; do nothing');
  command.action(async (options: LeaveOptions) => {
    const client = await context.client(options);
    const request = {
      acceptZeroTolerance: options.acceptZeroTolerance === true,
      withoutRecord: options.withoutRecord === true,
      dryRun: options.dryRun === true,
    };
    context.print(options, await client.post<Answer>('/v1/leave', request), answerText);
  });
  program.addCommand(command);
}

interface LeaveOptions extends CommonOptions {
  readonly acceptZeroTolerance?: boolean;
  readonly withoutRecord?: boolean;
  readonly dryRun?: boolean;
}
