import type { CancelTimer, Clock } from '../base/clock.ts';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type DesiredRole, parseRole } from './role.ts';
import { type RoleFileAccess, realRoleFile } from './role-file.ts';
import type { RoleEvent, RoleKeeper } from './role-keeper.ts';
import type { RoleSourceName } from './role-order.ts';

/** What a watched role file needs. */
export interface RoleSourceOptions {
  /** Absolute. */
  readonly path: string;
  readonly keeper: RoleKeeper;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  /** Called for each new state of affairs, never twice in a row for the same one. */
  readonly onEvent: (event: RoleEvent) => void;
  /** Quiet time after a change before the file is read. Unit: ms, default 200. Editors write in several steps. */
  readonly settleMs?: number;
  /** A look without any hint, for file systems that give none. Unit: ms, default 10 000. */
  readonly lookMs?: number;
  readonly access?: RoleFileAccess;
}

/** A role document in a file: read when it changes, offered to the keeper. */
export class RoleSource {
  readonly #options: RoleSourceOptions;
  readonly #access: RoleFileAccess;
  #stopWatching: (() => void) | undefined;
  #cancelSettle: CancelTimer | undefined;
  #cancelLook: CancelTimer | undefined;
  #reading: Promise<void> | undefined;
  #lastEvent = '';

  constructor(options: RoleSourceOptions) {
    this.#options = options;
    this.#access = options.access ?? realRoleFile;
    options.signal.addEventListener('abort', () => this.#stop(), { once: true });
    if (!options.signal.aborted) this.#look();
  }

  /** This source, as the keeper knows it. */
  get name(): RoleSourceName {
    return { kind: 'file', name: this.#options.path };
  }

  /** Reads the file now, out of turn (SIGHUP, a command), and resolves when its content was offered. */
  async readNow(): Promise<void> {
    await this.#reading;
    await this.#read();
  }

  /** Watches anew each time, so that a directory that was replaced is watched as well; then reads. */
  #look(): void {
    const { clock, lookMs, log } = this.#options;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
    try {
      this.#stopWatching = this.#access.watch(this.#options.path, () => this.#changed());
    } catch (error) {
      log.debug({ err: describeError(error) }, 'the directory of the role file cannot be watched');
    }
    this.#cancelLook = clock.after(lookMs ?? 10_000, () => this.#look());
    this.#readInTurn();
  }

  #changed(): void {
    if (this.#options.signal.aborted) return;
    this.#cancelSettle?.();
    this.#cancelSettle = this.#options.clock.after(this.#options.settleMs ?? 200, () => this.#readInTurn());
  }

  /** One read at a time; a change during a read is read afterwards. */
  #readInTurn(): void {
    const before = this.#reading ?? Promise.resolve();
    const mine = before
      .then(() => this.#read())
      .catch((error: unknown) => {
        this.#options.log.error({ err: describeError(error) }, 'the role file could not be looked at');
      });
    this.#reading = mine;
  }

  async #read(): Promise<void> {
    if (this.#options.signal.aborted) return;
    const document = await readRoleDocument(this.#options.path, this.#access);
    if (this.#options.signal.aborted) return;
    this.#emit(document.kind === 'role' ? this.#options.keeper.offer(document.role, this.name) : document);
  }

  #emit(event: RoleEvent): void {
    const text = JSON.stringify(event);
    if (text === this.#lastEvent) return;
    this.#lastEvent = text;
    this.#options.onEvent(event);
  }

  #stop(): void {
    this.#stopWatching?.();
    this.#cancelSettle?.();
    this.#cancelLook?.();
  }
}

/** What a role file says now; or why it says nothing, or nothing that can be obeyed. */
export async function readRoleDocument(
  path: string,
  access: RoleFileAccess = realRoleFile,
): Promise<Exclude<RoleEvent, { readonly kind: 'accepted' }> | { readonly kind: 'role'; readonly role: DesiredRole }> {
  const content = await access.read(path);
  if (content.kind === 'unknown') return { kind: 'unknown', why: content.why };
  const reading = parseRole(content.text, path);
  if (reading.kind === 'empty') return { kind: 'unknown', why: `${path} is empty` };
  if (reading.kind === 'invalid') return { kind: 'refused', why: reading.problems.join('; ') };
  return reading;
}
