import { configFileOf, readEnvironment } from './config.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

/**
 * `etcd-node-agent`: start reading here. `run` is the agent; every other command speaks to a running one, or looks at files.
 * Returns how to end. Parsers and libraries that a command does not need are not loaded for it, least of all for the agent,
 * which stays.
 */
export async function main(args: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const file = plainRun(args);
    if (file !== undefined) {
      const { runUntilSignal } = await import('./run.ts');
      await runUntilSignal(configFileOf(file.named, io.environment), io.environment);
      return exitCodes.ok;
    }
    const { runProgram } = await import('./program.ts');
    return await runProgram(args, io);
  } catch (error) {
    const { failureOf } = await import('./failures.ts');
    const { code, text } = failureOf(error, outputAskedFor(args));
    io.err(text);
    return code;
  }
}

/** `run`, or `run --config FILE`, as a unit has it; anything else is for the parser of all commands. */
function plainRun([command, option, named, ...more]: readonly string[]):
  | { readonly named: string | undefined }
  | undefined {
  if (command !== 'run' || more.length > 0) return undefined;
  if (option === undefined) return { named: undefined };
  return option === '--config' && named !== undefined && !named.startsWith('-') ? { named } : undefined;
}

/** Also where the command line was not understood: a script that wants JSON gets JSON. */
function outputAskedFor(args: readonly string[]): 'table' | 'json' {
  return /(?:^|\s)(?:-o|--output)[ =]?json(?:\s|$)/.test(args.join(' ')) ? 'json' : 'table';
}

/** A reader that went away (`status | head`) is no failure; nothing more can be said to it. */
function endQuietlyOnBrokenPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) =>
      process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failed),
    );
  }
}

if (import.meta.main) {
  endQuietlyOnBrokenPipe();
  process.exitCode = await main(process.argv.slice(2), {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    environment: readEnvironment(),
  });
}
