import { parseArgs } from 'node:util';

/** What the person who started the demo wants. */
export interface Arguments {
  /** The summary alone goes to standard output, as one JSON object; progress goes to standard error. */
  readonly json: boolean;
  /** The cluster runs on after the end. */
  readonly keep: boolean;
  /** A version of etcd, `3.5.30`, or a line, `3.5`. Undefined: the newest here. */
  readonly etcd: string | undefined;
  /** End and remove a demo that was kept: its directory. Undefined: run the demo. */
  readonly stop: string | undefined;
}

/** The arguments do not make sense. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Reads the arguments. Throws {@link UsageError}. */
export function readArguments(args: readonly string[]): Arguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        json: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        etcd: { type: 'string' },
        stop: { type: 'string' },
      },
    });
    return { json: values.json, keep: values.keep, etcd: values.etcd, stop: values.stop };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
