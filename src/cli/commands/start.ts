import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `start`: etcd may run again. */
export function addStart(program: Command, context: CommandContext): void {
  const command = agentCommand('start', 'lets etcd run again after stop or shutdown')
    .option(
      '--accept-log-regression <id>',
      'start this member although its log went back: what it had acknowledged since is given up',
      read.hexId,
    )
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(
    async (options: CommonOptions & { readonly dryRun?: boolean; readonly acceptLogRegression?: string }) => {
      const client = await context.client(options);
      const { acceptLogRegression, dryRun = false } = options;
      context.print(options, await client.post<Answer>('/v1/start', { dryRun, acceptLogRegression }), answerText);
    },
  );
  program.addCommand(command);
}
