/** How the programs end. Documented in docs/exit-codes.md; scripts rely on them, so they never change their meaning. */
export const exitCodes = {
  ok: 0,
  /** It was tried and failed, or something unforeseen happened. */
  failed: 1,
  /** The command line is wrong. Nothing was done. */
  usage: 2,
  /** The configuration is wrong or cannot be read. Nothing was done. */
  configuration: 3,
  /** The agent refused, and said why. Nothing was done. */
  refused: 4,
  /** No agent answers on the socket, or we may not speak to it. Nothing was done. */
  unreachable: 5,
  /** `run`: another agent runs on this node. Nothing was done. */
  alreadyRunning: 6,
} as const;

/** One of {@link exitCodes}. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
