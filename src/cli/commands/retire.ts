import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `retire --last-member CLUSTER-ID`: the cluster ends with this node, which may found another one afterwards. */
export function addRetire(program: Command, context: CommandContext): void {
  const command = agentCommand('retire', 'ends the cluster of which this is the last member')
    .requiredOption('--last-member <cluster-id>', 'id of the cluster that ends, in hex', read.hexId)
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(async (options: CommonOptions & { readonly lastMember: string; readonly dryRun?: boolean }) => {
    const client = await context.client(options);
    const request = { clusterId: options.lastMember, dryRun: options.dryRun === true };
    context.print(options, await client.post<Answer>('/v1/retire', request), answerText);
  });
  program.addCommand(command);
}
