import * as z from 'zod';
import type { Disk } from '../../base/disk.ts';
import { AgentError } from '../../base/errors.ts';
import { decodeRecord, encodeRecord } from '../../base/record.ts';

/** What a state file holds. Only `absent` means "never written"; the two last make the agent supervise-only. */
export type Reading<T> =
  | { readonly kind: 'absent' }
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'newer'; readonly because: string }
  | { readonly kind: 'damaged'; readonly because: string };

/** A state file could not be written; the step that needed it is not taken. */
export class StateNotWrittenError extends AgentError {
  readonly code = 'STATE_NOT_WRITTEN';
  constructor(path: string, cause: unknown) {
    super(`${path} could not be written`, {
      cause,
      hint: 'Free space or repair the file system of the state directory; the agent tries again.',
    });
  }
}

/** A state file holds something that must not be overwritten: a newer format, or damage that a person should see. */
export class StateNotOursError extends AgentError {
  readonly code = 'STATE_NOT_OURS';
  constructor(path: string, because: string) {
    super(`${path} is not overwritten: ${because}`, { hint: 'See docs/runbook.md, "state that cannot be read".' });
  }
}

/** One value in one checksummed, versioned file, replaced as a whole and durably. */
export class DurableValue<Schema extends z.ZodType> {
  readonly path: string;
  readonly #disk: Disk;
  readonly #schema: Schema;
  readonly #version: number;
  /** What the same bytes said when they were read before: every turn reads every file, and few change. */
  #known: { readonly content: Uint8Array; readonly reading: Reading<z.output<Schema>> } | undefined;

  constructor(options: {
    readonly path: string;
    readonly disk: Disk;
    readonly schema: Schema;
    readonly version: number;
  }) {
    this.path = options.path;
    this.#disk = options.disk;
    this.#schema = options.schema;
    this.#version = options.version;
  }

  read(): Reading<z.output<Schema>> {
    let content: Uint8Array | undefined;
    try {
      content = this.#disk.read(this.path);
    } catch (error) {
      return {
        kind: 'damaged',
        because: `${this.path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
    if (content === undefined) return { kind: 'absent' };
    if (this.#known !== undefined && Buffer.compare(content, this.#known.content) === 0) return this.#known.reading;
    const reading = this.#decode(content);
    this.#known = { content, reading };
    return reading;
  }

  #decode(content: Uint8Array): Reading<z.output<Schema>> {
    const reading = decodeRecord(content, this.#version);
    switch (reading.kind) {
      case 'absent':
        return reading;
      case 'newer':
        return {
          kind: 'newer',
          because: `${this.path} was written by a newer agent (format ${reading.version}, this one knows ${this.#version})`,
        };
      case 'damaged':
        return { kind: 'damaged', because: `${this.path} is damaged: ${reading.why}` };
      case 'ok': {
        const parsed = z.safeDecode(this.#schema, reading.value as z.input<Schema>);
        if (parsed.success) return { kind: 'ok', value: parsed.data };
        return {
          kind: 'damaged',
          because: `${this.path} does not hold what it should: ${z.prettifyError(parsed.error)}`,
        };
      }
    }
  }

  /** Throws {@link StateNotOursError} over newer or damaged content, {@link StateNotWrittenError} if the disk refuses. */
  write(value: z.output<Schema>): void {
    const before = this.read();
    if (before.kind === 'newer' || before.kind === 'damaged') throw new StateNotOursError(this.path, before.because);
    try {
      this.#disk.replace(this.path, encodeRecord(z.encode(this.#schema, value), this.#version));
    } catch (error) {
      throw new StateNotWrittenError(this.path, error);
    }
  }
}
