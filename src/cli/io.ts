import { type Environment, environmentOf } from './environment.ts';

/** What the program has of the world around it, so that tests can stand in for it. */
export interface Io {
  /** Standard output, text with its newlines. */
  out(text: string): void;
  /** Standard error. */
  err(text: string): void;
  readonly environment: Environment;
}

/** An Io that keeps what is written; for tests and for programs that embed the commands. */
export class MemoryIo implements Io {
  stdout = '';
  stderr = '';
  readonly environment: Environment;

  constructor(variables: Readonly<Record<string, string>> = {}) {
    this.environment = environmentOf(variables, '');
  }

  out(text: string): void {
    this.stdout += text;
  }

  err(text: string): void {
    this.stderr += text;
  }
}
