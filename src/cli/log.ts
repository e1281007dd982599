import { pino } from 'pino';
import type { LogLevel } from '../agent/config.ts';
import { type Clock, timestamp } from '../base/clock.ts';
import type { Log, LogFields } from '../base/log.ts';
import { cleanFields } from './log-fields.ts';
import { printable } from './printable.ts';

/** What a log needs from outside. */
export interface LogOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  /** True: each line begins with the `<N>` priority that journald reads. */
  readonly journal: boolean;
  /** Receives each line, with its newline. Default: standard output, written before the call returns. */
  readonly write?: (line: string) => void;
}

/** A {@link Log} and what only its maker may do with it. */
export interface RootLog {
  readonly log: Log;
  setLevel(level: LogLevel): void;
}

/**
 * One JSON object a line on standard output, by pino. Written synchronously, so that the last lines before a crash are
 * there; a reader that stalls stalls the agent, and systemd's watchdog sees to that. Secrets are taken out by name and by
 * form, texts are cut, and nothing in a value can begin a line of its own.
 */
export function createLog(options: LogOptions): RootLog {
  const write = options.write ?? standardOutput();
  const destination = { lastLevel: 0, [Symbol.for('pino.metadata')]: true, write: writeLine };
  function writeLine(this: { lastLevel: number }, line: string): void {
    write(`${options.journal ? priorityOf(this.lastLevel) : ''}${escapeLine(line)}\n`);
  }
  const root = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${timestamp(options.clock)}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  const logWith = (bound: LogFields): Log => {
    const at = (level: LogLevel) => (fields: LogFields, message: string) => {
      if (root.isLevelEnabled(level)) root[level](cleanFields({ ...bound, ...fields }), printable(message));
    };
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => logWith({ ...bound, ...fields }),
    };
  };
  return {
    log: logWith({}),
    setLevel(level) {
      root.level = level;
    },
  };
}

function standardOutput(): (line: string) => void {
  const stdout = pino.destination({ dest: 1, sync: true });
  return (line) => {
    stdout.write(line);
  };
}

/** Levels of pino as priorities of syslog: debug 7, informational 6, warning 4, error 3. */
function priorityOf(level: number): string {
  return level >= 50 ? '<3>' : level >= 40 ? '<4>' : level >= 30 ? '<6>' : '<7>';
}

/** JSON leaves DEL, C1 controls and bidirectional marks as they are; a terminal would act on them. */
function escapeLine(line: string): string {
  return line
    .replace(/\n$/, '')
    .replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (character) => {
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
    });
}
