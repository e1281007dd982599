import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `adopt`: data without a recorded identity becomes ours, and nothing else changes. */
export function addAdopt(program: Command, context: CommandContext): void {
  const command = agentCommand('adopt', 'takes over the data directory of an etcd that was run otherwise')
    .option('--new-cluster-id <id>', 'the cluster id may differ from the recorded one and is this', read.hexId)
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(async (options: CommonOptions & { readonly dryRun?: boolean; readonly newClusterId?: string }) => {
    const client = await context.client(options);
    context.print(
      options,
      await client.post<Answer>('/v1/adopt', { dryRun: options.dryRun === true, newClusterId: options.newClusterId }),
      answerText,
    );
  });
  program.addCommand(command);
}
