import { Command, Option } from 'commander';
import { ApiClient } from './client.ts';
import { findSocket } from './find-socket.ts';
import type { Io } from './io.ts';
import { printable } from './printable.ts';

/** Options that every command which speaks to the agent has. */
export interface CommonOptions {
  readonly socket?: string;
  readonly config?: string;
  readonly output: 'table' | 'json';
}

/** What a command is given beside its own options. */
export interface CommandContext {
  readonly io: Io;
  /** A client of the agent that the options name. */
  client(options: CommonOptions): Promise<ApiClient>;
  /** Prints a value: as JSON, or by its own view. */
  print<T>(options: CommonOptions, value: T, view: (value: T) => string): void;
}

/** Builds the context. */
export function commandContext(io: Io): CommandContext {
  return {
    io,
    client: async (options) => new ApiClient(await findSocket(options, io.environment)),
    print: (options, value, view) =>
      io.out(options.output === 'json' ? `${JSON.stringify(value, null, 2)}\n` : view(value)),
  };
}

/** A command that speaks to the agent, with the options that all of these have. */
export function agentCommand(name: string, description: string): Command {
  return outputOption(new Command(name).description(description))
    .option('--socket <path>', "the agent's socket (default: runDir of the configuration, then agent.sock)")
    .option('--config <file>', 'the configuration whose runDir holds the socket');
}

/** Adds `--output`. */
export function outputOption(command: Command): Command {
  const formats = new Option('-o, --output <format>', 'how to print').choices(['table', 'json']).default('table');
  return command.addOption(formats);
}

/** Sentences of the agent, one a line. */
export function sentences(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join('');
}
