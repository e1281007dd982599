import { Command, CommanderError } from 'commander';
import { commandContext } from './command-line.ts';
import { addAdopt } from './commands/adopt.ts';
import { addConfig } from './commands/config.ts';
import { addConfirmRemoved } from './commands/confirm-removed.ts';
import { addEvents } from './commands/events.ts';
import { addFound } from './commands/found.ts';
import { addJoin } from './commands/join.ts';
import { addLeave } from './commands/leave.ts';
import { addLogs } from './commands/logs.ts';
import { addMembers } from './commands/members.ts';
import { addPause } from './commands/pause.ts';
import { addPlan } from './commands/plan.ts';
import { addRejectRemoval } from './commands/reject-removal.ts';
import { addReload } from './commands/reload.ts';
import { addReplace } from './commands/replace.ts';
import { addResume } from './commands/resume.ts';
import { addRetire } from './commands/retire.ts';
import { addRole } from './commands/role.ts';
import { addRun } from './commands/run.ts';
import { addShutdown } from './commands/shutdown.ts';
import { addStart } from './commands/start.ts';
import { addStatus } from './commands/status.ts';
import { addStop } from './commands/stop.ts';
import { addWhy } from './commands/why.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';
import { version } from './version.ts';

/** The commands behind one command line. Returns how to end; throws what a command throws. */
export async function runProgram(args: readonly string[], io: Io): Promise<ExitCode> {
  try {
    await buildProgram(io).parseAsync(args, { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    // Help and version end this way too, with 0; what commander has to say it has printed.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    throw error;
  }
}

function buildProgram(io: Io): Command {
  const program = new Command('etcd-node-agent')
    .description('Runs etcd as a supervised process and reports every change of its membership.')
    .version(version)
    .showHelpAfterError('(--help lists commands and options)');
  const context = commandContext(io);
  for (const add of commands) add(program, context);
  prepare(program, io);
  return program;
}

/** In the order of the help. */
const commands = [
  addRun,
  addStatus,
  addPlan,
  addWhy,
  addMembers,
  addEvents,
  addLogs,
  addFound,
  addAdopt,
  addJoin,
  addLeave,
  addStop,
  addStart,
  addShutdown,
  addPause,
  addResume,
  addConfirmRemoved,
  addRejectRemoval,
  addReplace,
  addRetire,
  addReload,
  addRole,
  addConfig,
];

/** commander would end the process and write by itself. */
function prepare(command: Command, io: Io): void {
  command.exitOverride().configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) });
  command.allowExcessArguments(false);
  for (const each of command.commands) prepare(each, io);
}
