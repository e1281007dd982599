import { join } from 'node:path';
import type { CancelTimer, Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type AliveFifo, openAlive } from './alive.ts';
import { Child, type ChildEnd, recordedExit, unrecorded } from './child.ts';
import { AlreadyRunningError, LockHeldError, SupervisorClosedError } from './errors.ts';
import { type EvidenceLine, readEvidence } from './evidence.ts';
import { findLiving, type LivingLife } from './find-living.ts';
import { describeExit } from './keeper-records.ts';
import { launchLife } from './launch.ts';
import type { EndedLife, Life, LifeEnd, Recovered, StartSpec, StopOptions, SupervisorView } from './life.ts';
import type { LifeDir } from './life-dir.ts';
import { LifeOutput } from './life-output.ts';
import { type LifeProbes, startLifeProbes } from './life-probes.ts';
import type { LogLine } from './line-splitter.ts';
import { defaultLifeLimits, type LifeLimits, Lives } from './lives.ts';
import { defaultLogLimits, type LogLimits, trimReserve } from './log-space.ts';
import { readLog } from './log-tail.ts';
import { type Action, advance, type Event, type State } from './machine.ts';
import type { ProbeVerdict } from './probe.ts';
import { holdersOf, type ProcessRecord, readIoBytes, readProcessStat } from './process.ts';
import type { Launcher } from './run.ts';
import { StopRecorder } from './stop-recorder.ts';

/** What a supervisor is made of. */
export interface SupervisorOptions {
  /** Lives are kept below it, in `lives/`. On a disk that survives a reboot. */
  readonly directory: string;
  /** One child at a time holds it; beside the data directory, since it guards the data and not the agent. */
  readonly lockFile: string;
  readonly launcher: Launcher;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the supervisor; the child runs on. */
  readonly signal: AbortSignal;
  /** Every line of the living child's log, in order, from the first of the life. Never called again after an abort. */
  readonly onLine: (life: Life, line: LogLine) => void;
  /** Names lines to be copied to the evidence at once. */
  readonly isDecisive: (line: string) => boolean;
  /** A life is over; called once, after all its lines. */
  readonly onEnd: (life: Life, end: LifeEnd) => void;
  /** Anything in {@link SupervisorView} may have changed. */
  readonly onChange: () => void;
  /** The questions asked while a child lives. */
  readonly probes?: (life: Life) => LifeProbes;
  readonly logLimits?: LogLimits;
  readonly lifeLimits?: LifeLimits;
  /** The newest life that the owner remembers; no number up to it is used again, also where the records of lives are gone. */
  readonly rememberedLife?: () => number;
  /** A keeper records its child within this. Unit: ms, default 15 000. */
  readonly launchMs?: number;
  /** A lock that is held by none of our lives is looked at for this long before it counts as a stranger's. Unit: ms, default 10 000. */
  readonly lookMs?: number;
  /** A child that outlives KILL by this is told as `killPending`, and is sent KILL anew this often. Unit: ms, default 5000. */
  readonly killPendingMs?: number;
}

/** All that belongs to the living child. */
interface Living {
  readonly life: Life;
  readonly child: Child;
  readonly output: LifeOutput;
  readonly stop: StopRecorder;
  readonly probes: AbortController;
}

/**
 * Supervises one child, whatever it is: a thin shell around machine.ts. It decides no restart: an end is told, and the
 * next life begins by {@link Supervisor.start}. Its own end leaves the child running, for the next one to adopt.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #lives: Lives;
  #state: State = 'idle';
  #sinceMs: number;
  #cancelTimers: CancelTimer[] = [];
  #living: Living | undefined;
  /** Set while a start or a recovery is under way; signals wait for it. */
  #looking: Promise<unknown> | undefined;
  #launch: { readonly spec: StartSpec; readonly done: PromiseWithResolvers<Life> } | undefined;
  #stopOptions: StopOptions | undefined;
  #waiters: PromiseWithResolvers<LifeEnd | undefined>[] = [];
  #life: Life | undefined;
  #stop: StopRecorder | undefined;
  #killPending = false;
  #signalProblem: string | undefined;
  #liveness: ProbeVerdict = 'unknown';
  #readyAt: { readonly wallMs: number; readonly monotonicMs: number } | undefined;
  #readyMs = 0;
  #lastEnd: SupervisorView['lastEnd'];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#sinceMs = options.clock.wallMs();
    this.#lives = new Lives({
      directory: join(options.directory, 'lives'),
      disk: options.disk,
      clock: options.clock,
      log: options.log,
      limits: options.lifeLimits ?? defaultLifeLimits,
      remembered: options.rememberedLife,
    });
    if (options.signal.aborted) this.#close();
    else options.signal.addEventListener('abort', () => this.#close(), { once: true });
  }

  /**
   * To be called once, before the first start: adopts a living child, whatever moment an earlier agent was killed at, or
   * says how the last life ended. Throws {@link LockHeldError} if a process that is not ours holds the lock.
   */
  async recover(): Promise<Recovered> {
    const living = await this.#look(() => this.#findLiving());
    if (living !== undefined) return { kind: 'adopted', life: this.#adopt(living) };
    const dir = this.#lives.all().findLast((life) => life.pid().kind !== 'blank' || life.exit().kind !== 'blank');
    if (dir === undefined) return { kind: 'nothing' };
    trimReserve(dir);
    const end: LifeEnd = { ...ending(dir), stop: dir.stop() };
    this.#lastEnd = { number: dir.number, end };
    return { kind: 'ended', number: dir.number, startedAtMs: dir.spec()?.startedAtMs, end };
  }

  /**
   * Begins a new life and resolves when its child is recorded. If the lock turns out to be held by a life of ours, that
   * one is adopted instead. Throws {@link AlreadyRunningError}, {@link LockHeldError}, LaunchFailedError,
   * LifeNotPreparedError or BinaryUnusableError; then nothing was started.
   */
  start(spec: StartSpec): Promise<Life> {
    if (this.#options.signal.aborted) return Promise.reject(new SupervisorClosedError());
    const startable = this.#state === 'idle' || this.#state === 'ended';
    if (!startable || this.#looking !== undefined) {
      return Promise.reject(new AlreadyRunningError(this.#state, this.#living?.life.pid));
    }
    this.#launch = { spec, done: Promise.withResolvers() };
    const { promise } = this.#launch.done;
    this.#handle('start');
    return promise;
  }

  /**
   * Ends the child: the first signal, after the grace KILL. Who asked stands on disk before the first signal. Resolves
   * with the end; undefined if nothing lives. While a child cannot be killed it stays pending, and the view says so.
   */
  async stop(options: StopOptions): Promise<LifeEnd | undefined> {
    if (this.#options.signal.aborted) throw new SupervisorClosedError();
    if (this.#state === 'idle' || this.#state === 'ended') return undefined;
    const waiter = Promise.withResolvers<LifeEnd | undefined>();
    this.#waiters.push(waiter);
    if (this.#state !== 'stopping' && this.#state !== 'killing') this.#stopOptions = options;
    this.#handle(options.graceMs <= 0 ? 'kill' : 'stop');
    return waiter.promise;
  }

  /** The lives after `number` that are over, oldest first, as far as they are kept. */
  endedAfter(number: number): readonly EndedLife[] {
    const current = this.#living?.life.number;
    return this.#lives
      .all()
      .filter((dir) => dir.number > number && dir.number !== current && dir.exit().kind !== 'blank')
      .map((dir) => ({
        number: dir.number,
        startedAtMs: dir.spec()?.startedAtMs,
        end: { ...ending(dir), stop: dir.stop() },
      }));
  }

  /** Gives the lines of a life that is over, first to last. False if its record was pruned. */
  async replay(number: number, onLine: (line: LogLine) => void): Promise<boolean> {
    const dir = this.#lives.find(number);
    if (dir === undefined) return false;
    const freed = dir.freed();
    await readLog({ path: dir.log, clock: this.#options.clock, onLine, freed: () => freed });
    return true;
  }

  /** The decisive lines of a life, also those whose part of the log was freed. */
  evidence(number: number): readonly EvidenceLine[] {
    const dir = this.#lives.find(number);
    return dir === undefined ? [] : readEvidence(dir.evidence);
  }

  /** CPU and I/O of the living child so far, and its kernel state; undefined if they cannot be read. */
  activity(): { readonly state: string; readonly cpuTicks: number; readonly ioBytes: number | undefined } | undefined {
    const record = this.#living?.child.record;
    const stat = record === undefined ? undefined : readProcessStat(record.pid);
    if (record === undefined || stat === undefined || stat.startTicks !== record.startTicks) return undefined;
    return { state: stat.state, cpuTicks: stat.cpuTicks, ioBytes: readIoBytes(record.pid) };
  }

  view(): SupervisorView {
    return {
      phase: this.#state,
      sinceMs: this.#sinceMs,
      life: this.#life,
      stop: this.#stop?.record,
      killPending: this.#killPending,
      signalProblem: this.#signalProblem,
      liveness: this.#liveness,
      readyAtMs: this.#readyAt?.wallMs,
      readyMs: this.#readyForMs(),
      idleMs: this.#living?.child.idleMs(),
      lastEnd: this.#lastEnd,
    };
  }

  // --- the machine and what its states do ---

  #handle(event: Event): void {
    if (this.#options.signal.aborted) return;
    const { state, actions } = advance(this.#state, event);
    if (state === this.#state) return;
    this.#options.log.debug({ event, from: this.#state, to: state }, 'phase');
    for (const cancel of this.#cancelTimers.splice(0)) cancel();
    this.#state = state;
    this.#sinceMs = this.#options.clock.wallMs();
    for (const action of actions) this.#actions[action]();
    this.#options.onChange();
  }

  readonly #actions: Readonly<Record<Action, () => void>> = {
    launch: () => this.#background(this.#launchNow()),
    watchReadiness: () => this.#watchReadiness(),
    sendTerm: () => this.#background(this.#signalAsked(this.#stopOptions?.firstSignal ?? 'SIGTERM')),
    startGrace: () => this.#after(this.#stopOptions?.graceMs ?? 0, () => this.#handle('graceOver')),
    sendKill: () => this.#background(this.#signalAsked('SIGKILL')),
    watchKill: () => this.#watchKill(),
    settle: () => this.#settle(),
  };

  async #launchNow(): Promise<void> {
    const launch = this.#launch;
    if (launch === undefined) return;
    try {
      const life = await this.#look(() => this.#launchOrAdopt(launch.spec));
      this.#launch = undefined;
      launch.done.resolve(life);
    } catch (error) {
      this.#launch = undefined;
      this.#handle('launchFailed');
      launch.done.reject(this.#options.signal.aborted ? new SupervisorClosedError() : error);
    }
  }

  async #launchOrAdopt(spec: StartSpec): Promise<Life> {
    // Twice, since a lock may be free again by the time we look who holds it.
    for (let attempt = 1; attempt <= 2; attempt++) {
      const launched = await launchLife(
        { ...this.#options, lives: this.#lives, launchMs: this.#options.launchMs ?? 15_000 },
        spec,
      );
      if (launched.kind === 'launched') {
        const alive = openAlive(launched.dir.alive); // not held: it has ended already
        const fifo = alive.kind === 'held' ? alive.fifo : undefined;
        return this.#follow(launched.dir, launched.record, spec.identity, 'launched', fifo);
      }
      const living = await this.#findLiving();
      if (living !== undefined) return this.#adopt(living);
    }
    throw new LockHeldError(this.#options.lockFile, holdersOf(this.#options.lockFile));
  }

  #watchReadiness(): void {
    const living = this.#living;
    if (living === undefined) return;
    const { clock, probes, log, onChange } = this.#options;
    startLifeProbes(probes?.(living.life) ?? {}, {
      clock,
      signal: living.probes.signal,
      onReady: () => {
        if (this.#state !== 'starting') return; // it is being stopped: too late to matter
        this.#readyAt = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
        this.#handle('becameReady');
      },
      onLiveness: (verdict, because) => {
        this.#liveness = verdict;
        if (verdict === 'bad') log.warn({ life: living.life.number, because }, 'the child does not answer');
        onChange();
      },
    });
  }

  /** Records the signal, then sends it. What hinders it is told in the view; KILL is tried again as long as it lasts. */
  async #signalAsked(name: NodeJS.Signals): Promise<void> {
    await this.#looking?.catch(() => {}); // a launch under way: its outcome is awaited, its failure told elsewhere
    const living = this.#living;
    if (living === undefined) return;
    try {
      const { by = '', reason = '' } = this.#stopOptions ?? {};
      await living.stop.note(name, { by, reason });
      await living.child.signal(name);
      this.#signalProblem = undefined;
    } catch (error) {
      if (this.#options.signal.aborted || this.#living !== living) return;
      this.#signalProblem = describeError(error);
      this.#options.log.error(
        { life: living.life.number, signal: name, why: this.#signalProblem },
        'no signal was sent',
      );
      this.#options.onChange();
    }
  }

  #watchKill(): void {
    this.#after(this.#options.killPendingMs ?? 5000, () => {
      if (this.#living === undefined) return;
      if (!this.#killPending) {
        this.#killPending = true;
        this.#options.log.error({ pid: this.#living.life.pid }, 'the child outlives KILL; nothing else is started');
        this.#options.onChange();
      }
      this.#background(this.#signalAsked('SIGKILL'));
      this.#watchKill();
    });
  }

  #settle(): void {
    const end = this.#lastEnd?.end;
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(end);
    this.#stopOptions = undefined;
    this.#killPending = false;
    this.#signalProblem = undefined;
  }

  // --- one life ---

  #findLiving(): Promise<LivingLife | undefined> {
    return findLiving({ ...this.#options, lives: this.#lives, patienceMs: this.#options.lookMs ?? 10_000 });
  }

  #adopt({ dir, record, identity, fifo }: LivingLife): Life {
    return this.#follow(dir, record, identity, 'adopted', fifo);
  }

  #follow(
    dir: LifeDir,
    record: ProcessRecord,
    identity: string,
    how: 'launched' | 'adopted',
    fifo: AliveFifo | undefined,
  ): Life {
    const { clock, log, lockFile } = this.#options;
    if (this.#options.signal.aborted) {
      fifo?.close();
      throw new SupervisorClosedError();
    }
    const startedAtMs = dir.spec()?.startedAtMs ?? clock.wallMs();
    const life: Life = { number: dir.number, pid: record.pid, adopted: how === 'adopted', startedAtMs, path: dir.path };
    const stop = this.#beginLife(life, dir);
    log.info({ life: life.number, pid: life.pid, adopted: life.adopted }, 'the child runs');
    const output = this.#outputOf(life, dir);
    output.start();
    if (fifo === undefined) {
      this.#handle(how);
      this.#background(this.#ended(life, dir, output, ending(dir)));
    } else {
      const onEnd = (end: ChildEnd) => this.#background(this.#ended(life, dir, output, end));
      const child = new Child({ dir, record, identity, lockFile, fifo, clock, onEnd });
      this.#living = { life, child, output, stop, probes: new AbortController() };
      this.#handle(how);
    }
    return life;
  }

  #beginLife(life: Life, dir: LifeDir): StopRecorder {
    this.#life = life;
    this.#stop = new StopRecorder(dir, this.#options.clock, this.#options.log);
    this.#liveness = 'unknown';
    this.#readyAt = undefined;
    this.#readyMs = 0;
    return this.#stop;
  }

  #outputOf(life: Life, dir: LifeDir): LifeOutput {
    const { clock, log, isDecisive, onLine } = this.#options;
    return new LifeOutput({
      dir,
      clock,
      log,
      limits: this.#options.logLimits ?? defaultLogLimits,
      isDecisive,
      onLine: (line) => onLine(life, line),
      onError: crash,
    });
  }

  async #ended(life: Life, dir: LifeDir, output: LifeOutput, childEnd: ChildEnd): Promise<void> {
    this.#living?.probes.abort(new Error('the child has ended'));
    await output.finish(childEnd.lockStillHeld);
    if (this.#options.signal.aborted) return;
    this.#readyMs = this.#readyForMs();
    this.#living = undefined;
    const end: LifeEnd = { ...childEnd, stop: this.#stop?.record };
    this.#lastEnd = { number: life.number, end };
    this.#options.log.info(
      { life: life.number, exit: describeExit(end.exit), asked: end.stop?.reason },
      'a life is over',
    );
    // The owner hears of the end before anybody who waits for it, and before a next life can begin.
    this.#options.onEnd(life, end);
    this.#handle('exited');
    try {
      this.#lives.prune(dir.number);
    } catch (error) {
      this.#options.log.warn({ why: describeError(error) }, 'old lives were not removed');
    }
  }

  #readyForMs(): number {
    if (this.#living === undefined || this.#readyAt === undefined) return this.#readyMs;
    return this.#options.clock.monotonicMs() - this.#readyAt.monotonicMs;
  }

  // --- plumbing ---

  #after(ms: number, fire: () => void): void {
    this.#cancelTimers.push(this.#options.clock.after(ms, fire));
  }

  async #look<T>(find: () => Promise<T>): Promise<T> {
    const looking = find();
    this.#looking = looking;
    try {
      return await looking;
    } finally {
      this.#looking = undefined;
    }
  }

  /** Work that nobody awaits. What it throws is a bug of ours: the agent ends with it, the child does not. */
  #background(work: Promise<unknown>): void {
    work.catch(crash);
  }

  #close(): void {
    for (const cancel of this.#cancelTimers.splice(0)) cancel();
    const living = this.#living;
    living?.probes.abort(new Error('the supervisor was closed'));
    living?.child.close();
    this.#background(living?.output.close() ?? Promise.resolve());
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new SupervisorClosedError());
  }
}

/** How a life that is over ended. */
function ending(dir: LifeDir): ChildEnd {
  return { exit: recordedExit(dir, '') ?? unrecorded, endedAtMs: dir.endedAtMs(), lockStillHeld: false };
}

/** Ends the agent through its handler for uncaught errors. */
function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
