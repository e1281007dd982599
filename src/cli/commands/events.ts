import type { Command } from 'commander';
import type { Answer, EventView } from '../../agent/control.ts';
import { read } from '../arguments.ts';
import { agentCommand, type CommandContext, type CommonOptions } from '../command-line.ts';
import { answerText, eventLine } from '../views.ts';

/** `events`: what was or will be reported, oldest first; `events skip` gives up one that upstream refuses for ever. */
export function addEvents(program: Command, context: CommandContext): void {
  const command = agentCommand('events', 'shows what was or will be reported, oldest first')
    .option('--after <seq>', 'only those after this number', read.whole(0, Number.MAX_SAFE_INTEGER))
    .option('--limit <count>', 'how many', read.whole(1, 1000), 100)
    .option('-f, --follow', 'show new ones as they come, until interrupted');
  command.action(async (options: EventsOptions) => {
    const client = await context.client(options);
    const path = `/v1/events?limit=${options.limit}${options.after === undefined ? '' : `&after=${options.after}`}`;
    if (options.follow !== true) {
      const events = await client.get<EventView[]>(path);
      return context.print(options, events, (all) => all.map(eventLine).join('') || 'no events\n');
    }
    const json = options.output === 'json';
    return client.follow(`${path}&follow=true`, (event) => {
      context.io.out(json ? `${JSON.stringify(event)}\n` : eventLine(event as EventView));
    });
  });
  command.addCommand(skipCommand(context));
  program.addCommand(command);
}

type EventsOptions = CommonOptions & { readonly after?: number; readonly limit: number; readonly follow?: boolean };

function skipCommand(context: CommandContext): Command {
  const command = agentCommand('skip', 'gives up the parked event; a gap event takes its place')
    .argument('<seq>', 'number of the event, as status and events show it', read.whole(1, Number.MAX_SAFE_INTEGER))
    .requiredOption('--reason <text>', 'why, for the gap event', read.reason);
  command.action(async (seq: number, own: { readonly reason: string }, parsed: Command) => {
    const options = parsed.optsWithGlobals<CommonOptions>();
    const client = await context.client(options);
    context.print(options, await client.post<Answer>('/v1/events/skip', { seq, reason: own.reason }), answerText);
  });
  return command;
}
