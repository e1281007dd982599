/** A structured log, as pino offers it: fields first, then a sentence. Parts get a child with their own `part` field. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Log;
}

/** Facts that go with a log line. Never a secret. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A log that keeps nothing; for tests and for pure helpers that need one. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
