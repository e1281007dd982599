import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `stop`: etcd is stopped and stays stopped, across reboots. */
export function addStop(program: Command, context: CommandContext): void {
  const command = agentCommand('stop', 'stops etcd and keeps it stopped until start')
    .option('--force', 'stop even if the others are no quorum')
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(async (options: CommonOptions & { readonly force?: boolean; readonly dryRun?: boolean }) => {
    const client = await context.client(options);
    context.print(
      options,
      await client.post<Answer>('/v1/stop', { force: options.force === true, dryRun: options.dryRun === true }),
      answerText,
    );
  });
  program.addCommand(command);
}
