import type { Command } from 'commander';
import type { AgentControl, Answer } from '../../agent/control.ts';
import { agentCommand, type CommandContext, type CommonOptions, sentences } from '../command-line.ts';
import { readFounders } from '../founders.ts';
import { UsageError } from '../usage-error.ts';
import { answerText } from '../views.ts';

/**
 * `found`: makes a new cluster, once. Alone; or together with the founders of a list, each of which is given the same lines
 * that `found prepare` printed on all of them.
 */
export function addFound(program: Command, context: CommandContext): void {
  const command = agentCommand('found', 'founds a new cluster: alone, or with --list together with others')
    .option('--list <file>', 'all lines that "found prepare" printed on the founders; - is standard input')
    .option('--alone', 'found alone although this node was prepared to found with others')
    .option('--dry-run', 'say what would be done, do nothing');
  command.action(async (options: FoundOptions) => {
    const dryRun = options.dryRun === true;
    const alone = options.alone === true;
    if (alone && options.list !== undefined) throw new UsageError('--alone and --list exclude each other');
    const lines = options.list === undefined ? undefined : readFounders(options.list);
    const client = await context.client(options);
    const answer =
      lines === undefined
        ? await client.post<Answer>('/v1/found', { dryRun, alone })
        : await client.post<Answer>('/v1/found/list', { lines, dryRun });
    context.print(options, answer, answerText);
  });
  command.addCommand(prepareCommand(context));
  program.addCommand(command);
}

type FoundOptions = CommonOptions & { readonly list?: string; readonly alone?: boolean; readonly dryRun?: boolean };

type Prepared = Awaited<ReturnType<AgentControl['foundPrepare']>>;

/** Prints the line alone, so that it can be gathered by a script; any other sentence goes to standard error. */
function prepareCommand(context: CommandContext): Command {
  const command = agentCommand('prepare', 'prints the line of this founder, the same each time');
  command.action(async (_own: unknown, parsed: Command) => {
    // The options may stand before or after the word "prepare".
    const options = parsed.optsWithGlobals<CommonOptions>();
    const client = await context.client(options);
    const prepared = await client.post<Prepared>('/v1/found/prepare', {});
    context.print(options, prepared, ({ line }) => `${line}\n`);
    const said = prepared.lines.filter((line) => line !== prepared.line);
    if (options.output === 'table') context.io.err(sentences(said));
  });
  return command;
}
