/** @pure file: the classes in which etcd ends, and what follows each. */

/** How etcd ended. Listed with evidence and treatment in docs/exit-classes.md. */
export type ExitClass =
  | 'removed'
  | 'removalUnconfirmed'
  | 'stopped'
  | 'staleIdentity'
  | 'version'
  | 'portInUse'
  | 'host'
  | 'dataCorrupt'
  | 'bootstrapRefused'
  | 'config'
  | 'dataLocked'
  | 'outOfMemory'
  | 'killed'
  | 'crash'
  | 'stuck'
  | 'unknown';

/** What follows an end. */
export type Treatment =
  /** This member never starts again: tombstone, archive, report; or, for a stale identity, an operator's `replace`. */
  | { readonly kind: 'terminal' }
  /** No start before the named thing happens. */
  | { readonly kind: 'hold'; readonly until: HoldUntil }
  /** A delay that grows from `firstMs` to `maxMs`, without an end. Unit: ms. `prepare` is done before each try. */
  | { readonly kind: 'retry'; readonly firstMs: number; readonly maxMs: number; readonly prepare: RetryPreparation }
  /** At once, then with a growing delay, within the restart budget. */
  | { readonly kind: 'restart' }
  /** {@link mayStartUnconfirmed} decides about each start. */
  | { readonly kind: 'ask'; readonly firstMs: number; readonly maxMs: number }
  /** What is wanted of the process decides: it was asked to stop. Costs no budget. */
  | { readonly kind: 'byDesiredState' };

/** `operator`: an order. `versionChange`: another binary. `configChange`: the configuration or a file that it names. `unlocked`: nobody holds the directory. */
export type HoldUntil = 'operator' | 'versionChange' | 'configChange' | 'unlocked';

/** What a retry does first: nothing, or read the members again and compute the start arguments anew. */
export type RetryPreparation = 'none' | 'rebuildArguments';

/** The treatment of each class. Numbers: design of the agent, docs/exit-classes.md. */
export const treatments: Readonly<Record<ExitClass, Treatment>> = {
  removed: { kind: 'terminal' },
  removalUnconfirmed: { kind: 'ask', firstMs: 1_000, maxMs: 60_000 },
  stopped: { kind: 'byDesiredState' },
  staleIdentity: { kind: 'terminal' },
  version: { kind: 'hold', until: 'versionChange' },
  portInUse: { kind: 'retry', firstMs: 2_000, maxMs: 30_000, prepare: 'none' },
  host: { kind: 'retry', firstMs: 30_000, maxMs: 300_000, prepare: 'none' },
  dataCorrupt: { kind: 'hold', until: 'operator' },
  bootstrapRefused: { kind: 'retry', firstMs: 1_000, maxMs: 60_000, prepare: 'rebuildArguments' },
  config: { kind: 'hold', until: 'configChange' },
  dataLocked: { kind: 'hold', until: 'unlocked' },
  outOfMemory: { kind: 'restart' },
  killed: { kind: 'restart' },
  crash: { kind: 'restart' },
  stuck: { kind: 'restart' },
  unknown: { kind: 'restart' },
};

/** The row of each class in the order in which they are tried; the first that matches wins. */
export const rowOf: Readonly<Record<ExitClass, number>> = {
  removed: 1,
  removalUnconfirmed: 2,
  stopped: 3,
  staleIdentity: 4,
  version: 5,
  portInUse: 6,
  host: 7,
  dataCorrupt: 8,
  bootstrapRefused: 9,
  config: 10,
  dataLocked: 11,
  outOfMemory: 12,
  killed: 12,
  crash: 13,
  stuck: 14,
  unknown: 15,
};
