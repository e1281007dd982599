import type { Command } from 'commander';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions, sentences } from '../command-line.ts';
import { UsageError } from '../usage-error.ts';

/** `logs`: etcd's own log, of one life or as it grows. */
export function addLogs(program: Command, context: CommandContext): void {
  const command = agentCommand('logs', "shows the last lines of etcd's own log")
    .option('--life <number>', 'of this life of etcd (default: the newest)', read.whole(1, Number.MAX_SAFE_INTEGER))
    .option('-n, --lines <count>', 'how many', read.whole(1, 10_000), 100)
    .option('-f, --follow', 'show new lines as they come, of whatever life, until interrupted');
  command.action(async (options: LogsOptions) => {
    const { life, lines, follow, output } = options;
    if (follow === true && life !== undefined) {
      throw new UsageError('--life and --follow exclude each other: what is followed is the newest life');
    }
    const client = await context.client(options);
    const path = `/v1/logs?lines=${lines}${life === undefined ? '' : `&life=${life}`}`;
    if (follow !== true) return context.print(options, await client.get<string[]>(path), sentences);
    return client.follow(`${path}&follow=true`, (line) => {
      context.io.out(output === 'json' ? `${JSON.stringify(line)}\n` : sentences([String(line)]));
    });
  });
  program.addCommand(command);
}

type LogsOptions = CommonOptions & { readonly life?: number; readonly lines: number; readonly follow?: boolean };
