import type { ChildEnd } from './child.ts';
import type { StopRecord } from './life-dir.ts';
import type { State } from './machine.ts';
import type { ProbeVerdict } from './probe.ts';

/** What to run. */
export interface StartSpec {
  /** Best-effort limits: `setpriv`, `prlimit`, `choom` with their arguments. Default: none. */
  readonly prefix?: readonly string[];
  readonly binary: string;
  readonly args: readonly string[];
  /** The child's whole environment; nothing is inherited. Should hold a PATH: the keeper finds its tools by it. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * What stands in the child's command line for as long as it lives, as an argument or as `--name=IDENTITY`; for example
   * its data directory.
   */
  readonly identity: string;
}

/** One life of the child. */
export interface Life {
  /** From 1; never used twice. */
  readonly number: number;
  readonly pid: number;
  /** True if an earlier agent (or an earlier start) began it. */
  readonly adopted: boolean;
  /** Wall time of the start. Unit: ms since 1970. */
  readonly startedAtMs: number;
  /** Its directory; life-dir.ts says what is in it. */
  readonly path: string;
}

/** How a life ended, and the record of who asked for that, if anybody did. */
export interface LifeEnd extends ChildEnd {
  readonly stop: StopRecord | undefined;
}

/** A life that is over. */
export interface EndedLife {
  readonly number: number;
  readonly startedAtMs: number | undefined;
  readonly end: LifeEnd;
}

/** What {@link Supervisor.recover} found. */
export type Recovered =
  /** No child ever ran. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'adopted'; readonly life: Life }
  /** Nothing lives, and this is the last life that ran; {@link Supervisor.replay} gives its lines. */
  | ({ readonly kind: 'ended' } & EndedLife);

/** Who asks for an end, and how. */
export interface StopOptions {
  /** From the first signal to KILL; 0 is KILL at once. Unit: ms. */
  readonly graceMs: number;
  readonly by: string;
  readonly reason: string;
  /** The first signal, default SIGTERM. SIGQUIT makes many programs write out where they hang. */
  readonly firstSignal?: NodeJS.Signals;
}

/** The supervisor as a plain value. */
export interface SupervisorView {
  readonly phase: State;
  /** Since when it is in this phase. Unit: ms since 1970. */
  readonly sinceMs: number;
  /** The living life, or the last one of this agent; undefined before the first. */
  readonly life: Life | undefined;
  /** The asked-for end of that life, if there is one. */
  readonly stop: StopRecord | undefined;
  /** True while the child has outlived a KILL: it hangs in the kernel or is frozen. No other is started meanwhile. */
  readonly killPending: boolean;
  /** Why the last signal could not be sent, if so. */
  readonly signalProblem: string | undefined;
  readonly liveness: ProbeVerdict;
  /** When that life became ready to this agent (an adopted one: again), or undefined. Unit: ms since 1970. */
  readonly readyAtMs: number | undefined;
  /** How long that life has been ready to this agent; stands still when it has ended. Unit: ms. */
  readonly readyMs: number;
  /** Time without log, CPU or I/O of the living child, to about a second; undefined if none lives. Unit: ms. */
  readonly idleMs: number | undefined;
  readonly lastEnd: { readonly number: number; readonly end: LifeEnd } | undefined;
}
