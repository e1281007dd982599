import { AgentError, describeError, InvariantError } from '../base/errors.ts';
import { AgentUnreachableError, RefusedError } from './client.ts';
import { ConfigError } from './config-error.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { printable } from './printable.ts';
import { UsageError } from './usage-error.ts';

/** How a failed command ends and what it prints. The one place where errors become exit codes. */
export function failureOf(
  error: unknown,
  output: 'table' | 'json',
): { readonly code: ExitCode; readonly text: string } {
  const code = exitCodeOf(error);
  const report = {
    code: error instanceof AgentError ? error.code : 'UNEXPECTED',
    message: describeError(error),
    hint: error instanceof AgentError ? error.hint : '',
  };
  if (output === 'json') {
    const problems = error instanceof ConfigError ? { problems: error.problems } : {};
    return { code, text: `${JSON.stringify({ error: { ...report, ...problems } })}\n` };
  }
  // Problems of a configuration are lines of their own; each was made printable where it was made.
  const message = report.message
    .split('\n')
    .map((line) => printable(line))
    .join('\n');
  const prefix = code === exitCodes.configuration ? '' : `${words.get(code) ?? 'failed'}: `;
  const stack = error instanceof InvariantError || !(error instanceof AgentError) ? stackOf(error) : '';
  return {
    code,
    text: `${prefix}${message}\n${report.hint === '' ? '' : `hint: ${printable(report.hint)}\n`}${stack}`,
  };
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof ConfigError) return exitCodes.configuration;
  if (error instanceof RefusedError) return exitCodes.refused;
  if (error instanceof AgentUnreachableError) return exitCodes.unreachable;
  return error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
}

const words: ReadonlyMap<ExitCode, string> = new Map([
  [exitCodes.refused, 'refused'],
  [exitCodes.unreachable, 'not reachable'],
  [exitCodes.usage, 'usage'],
]);

function stackOf(error: unknown): string {
  if (!(error instanceof Error) || error.stack === undefined) return '';
  return error.stack
    .split('\n')
    .slice(1, 6)
    .map((line) => `${printable(line)}\n`)
    .join('');
}
