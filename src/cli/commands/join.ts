import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `join`: this node gets the role of a member, with a new grant, and joins as a learner. */
export function addJoin(program: Command, context: CommandContext): void {
  const command = agentCommand('join', 'gives this node the role of a member: it joins as a learner and gets its vote')
    .option('--endpoint <url...>', 'client URLs of voters to join through (default: those of the role document)')
    .option('--cluster-id <id>', 'join this cluster and no other, in hex', read.hexId)
    .option('--dry-run', 'say what would be done, with the numbers; do nothing');
  command.action(async (options: JoinOptions) => {
    const client = await context.client(options);
    const { endpoint = [], clusterId, dryRun = false } = options;
    const request = { endpoints: endpoint, dryRun, ...(clusterId === undefined ? {} : { clusterId }) };
    context.print(options, await client.post<Answer>('/v1/join', request), answerText);
  });
  program.addCommand(command);
}

interface JoinOptions extends CommonOptions {
  readonly endpoint?: readonly string[];
  readonly clusterId?: string;
  readonly dryRun?: boolean;
}
