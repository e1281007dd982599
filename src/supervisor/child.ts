import { statSync } from 'node:fs';
import type { CancelTimer, Clock } from '../base/clock.ts';
import { delay } from '../base/clock.ts';
import { errnoOf } from '../base/errors.ts';
import type { AliveFifo } from './alive.ts';
import { NotOurProcessError } from './errors.ts';
import { type Exit, exitOfStatus, readExitRecord, signalled } from './keeper-records.ts';
import type { LifeDir } from './life-dir.ts';
import { isDead, type ProcessRecord, readIoBytes, readProcessStat, verifyProcess } from './process.ts';
import { lockState } from './run.ts';

/** How a life ended, as far as can be known. */
export interface ChildEnd {
  readonly exit: Exit;
  /** Wall time of the keeper's record, or undefined if it left none. Unit: ms since 1970. */
  readonly endedAtMs: number | undefined;
  /** True if the child is dead and something still holds the lock: processes it left behind, or a stuck keeper. */
  readonly lockStillHeld: boolean;
}

/** What a living child is followed with. */
export interface ChildOptions {
  readonly dir: LifeDir;
  readonly record: ProcessRecord;
  readonly identity: string;
  readonly lockFile: string;
  readonly fifo: AliveFifo;
  readonly clock: Clock;
  /** Called once, when the life is over. Not called after {@link Child.close}. */
  readonly onEnd: (end: ChildEnd) => void;
}

/** How often progress and, as a net, the death of the child are looked at. Unit: ms. */
const netMs = 1000;
/** The fifo says "gone" this soon after a death, or it is held by something else. Unit: ms. */
const fifoGraceMs = 2000;
/** A process that has just been forked is not yet the program; this long is waited for it. Unit: ms. */
const execGraceMs = 2000;

/** One living child: its end is noticed, its progress is measured, and signals reach it and nobody else. */
export class Child {
  readonly #options: ChildOptions;
  readonly #aborter = new AbortController();
  #cancelNet: CancelTimer | undefined;
  #cancelFifoGrace: CancelTimer | undefined;
  #over = false;
  #progress = '';
  #progressAtMs: number;
  #zombieExit: Exit | undefined;

  constructor(options: ChildOptions) {
    this.#options = options;
    this.#progressAtMs = options.clock.monotonicMs();
    options.fifo.watch(
      () => this.#expectGone(),
      () => this.#end(false),
    );
    this.#tick();
  }

  get record(): ProcessRecord {
    return this.#options.record;
  }

  /** Time since the child last wrote its log, used the processor or did I/O, to about a second. Unit: ms. */
  idleMs(): number {
    return this.#options.clock.monotonicMs() - this.#progressAtMs;
  }

  /**
   * Sends a signal to the child if it is surely ours: pid, start ticks, boot id, the held lock, the identity in its
   * command line, and the program where it can be read. `gone` if it has ended. Throws {@link NotOurProcessError}.
   */
  async signal(name: NodeJS.Signals): Promise<'sent' | 'gone'> {
    const deadline = this.#options.clock.monotonicMs() + execGraceMs;
    // A forked child is unsure until its exec, a few ms; afterwards the program must fit.
    for (let verdict = this.#verify(); verdict.kind !== 'ours'; verdict = this.#verify()) {
      if (verdict.kind === 'gone' || this.#over) return 'gone';
      if (this.#options.clock.monotonicMs() > deadline) throw new NotOurProcessError(this.record, verdict.why);
      await delay(this.#options.clock, 10, this.#aborter.signal);
    }
    if ((await lockState(this.#options.lockFile)) === 'free') return 'gone';
    // Nothing may lie between the last look and the signal.
    const last = this.#verify();
    if (last.kind === 'gone') return 'gone';
    if (last.kind === 'unsure') throw new NotOurProcessError(this.record, last.why);
    return sendSignal(this.record.pid, name);
  }

  /** Stops following; the child is left as it is. */
  close(): void {
    this.#over = true;
    this.#aborter.abort(new Error('the child is no longer followed'));
    this.#cancelNet?.();
    this.#cancelFifoGrace?.();
    this.#options.fifo.close();
  }

  #verify() {
    return verifyProcess(this.record, this.#options.identity);
  }

  /** The keeper wrote its exit line, or the child is dead by /proc: the fifo must end soon, or something else holds it. */
  #expectGone(): void {
    if (this.#over) return;
    this.#cancelFifoGrace ??= this.#options.clock.after(fifoGraceMs, () => this.#end(true));
  }

  #tick(): void {
    if (this.#over) return;
    this.#cancelNet = this.#options.clock.after(netMs, () => this.#tick());
    const { pid, startTicks } = this.record;
    const stat = readProcessStat(pid);
    if (stat === undefined || stat.startTicks !== startTicks || isDead(stat)) {
      // A wait status of 0 is also what the kernel shows to those who may not know.
      if (stat !== undefined && isDead(stat) && stat.startTicks === startTicks && stat.waitStatus !== 0) {
        this.#zombieExit = exitOfWaitStatus(stat.waitStatus);
      }
      this.#expectGone();
      return;
    }
    const logBytes = statSync(this.#options.dir.log, { throwIfNoEntry: false })?.size;
    const progress = `${stat.cpuTicks} ${logBytes} ${readIoBytes(pid)}`;
    if (progress === this.#progress) return;
    this.#progress = progress;
    this.#progressAtMs = this.#options.clock.monotonicMs();
  }

  #end(lockStillHeld: boolean): void {
    if (this.#over) return;
    const { dir, fifo } = this.#options;
    const exit = recordedExit(dir, fifo.text) ?? this.#zombieExit ?? unrecorded;
    this.close();
    this.#options.onEnd({ exit, endedAtMs: dir.endedAtMs(), lockStillHeld });
  }
}

/** The end of a life that is over: the keeper's record, or what it wrote into the fifo; undefined if neither is whole. */
export function recordedExit(dir: LifeDir, fifoText: string): Exit | undefined {
  const fromFile = dir.exit();
  if (fromFile.kind === 'ok') return fromFile.value;
  const fromFifo = readExitRecord(fifoText);
  return fromFifo.kind === 'ok' ? fromFifo.value : undefined;
}

/** What is said when nobody recorded the end. */
export const unrecorded: Exit = {
  kind: 'unknown',
  why: 'the keeper ended without a record of it (killed, or the machine went down)',
};

function exitOfWaitStatus(status: number): Exit {
  const signal = status & 0x7f;
  return signal === 0 ? exitOfStatus((status >> 8) & 0xff) : signalled(signal);
}

function sendSignal(pid: number, name: NodeJS.Signals): 'sent' | 'gone' {
  try {
    process.kill(pid, name);
    return 'sent';
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return 'gone';
    throw error;
  }
}
