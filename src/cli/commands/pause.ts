import type { Command } from 'commander';
import type { Answer } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText } from '../views.ts';

/** `pause`: no membership changes and no health restarts until resume, or until the time is over. */
export function addPause(program: Command, context: CommandContext): void {
  const command = agentCommand('pause', 'forbids membership changes and health restarts for a while')
    .option('--for <duration>', 'how long, from 1s to 7d', read.pauseLength, 4 * 3_600_000)
    .requiredOption('--reason <text>', 'why, for the log and the reports', read.reason);
  command.action(async (options: CommonOptions & { readonly for: number; readonly reason: string }) => {
    const client = await context.client(options);
    context.print(
      options,
      await client.post<Answer>('/v1/pause', { forMs: options.for, reason: options.reason }),
      answerText,
    );
  });
  program.addCommand(command);
}
