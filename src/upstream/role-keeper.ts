import * as z from 'zod';
import { type Clock, timestamp } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import { AgentError, describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { type DesiredRole, roleSchema } from './role.ts';
import {
  type AcceptedRole,
  judgeRole,
  judgeSwitch,
  type RoleFloor,
  type RoleIdentity,
  type RoleSourceName,
  type RoleVerdict,
  sameSource,
  setAnew,
} from './role-order.ts';

/** What became of a document that was offered. */
export type RoleEvent =
  /** Nothing is known of what is wanted now; the last accepted role stays. Never read as `none`. */
  | { readonly kind: 'unknown'; readonly why: string }
  /** A document was refused as a whole; the last accepted role stays. */
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'accepted'; readonly role: DesiredRole };

/** The record of the accepted role was written by a newer agent. Nothing is changed: the agent is supervise-only. */
export class RoleNewerError extends AgentError {
  readonly code = 'ROLE_NEWER';
  constructor(path: string, version: number) {
    super(`${path} is of version ${version}, which this agent does not know`, {
      hint: 'Run the newer agent again; its records are never overwritten.',
    });
  }
}

/** What a keeper needs. */
export interface RoleKeeperOptions {
  /** The record of the accepted role. `PATH.previous` beside it is the one before. Absolute. */
  readonly path: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** Asked at each document: the cluster id becomes known later. */
  readonly identity: () => RoleIdentity;
}

const recordVersion = 1;
/** A node has seen a few sources in its life; the oldest floors go. */
const maxFloors = 16;

/** Holds the accepted role, on disk, and lets only a newer one of the same source take its place. */
export class RoleKeeper {
  readonly #options: RoleKeeperOptions;
  #accepted: AcceptedRole | undefined;
  #floors: readonly RoleFloor[] = [];
  /** Set if there was a role once and its record cannot be read: then no order can be kept, and only a command helps. */
  #lostBecause: string | undefined;

  /** Reads the record. Throws {@link RoleNewerError}, or what the disk throws. */
  constructor(options: RoleKeeperOptions) {
    this.#options = options;
    this.#load();
  }

  /** The role that is in force; undefined before the first, or if its record was lost. */
  get accepted(): AcceptedRole | undefined {
    return this.#accepted;
  }

  /** Why there is no accepted role although there was one; undefined if nothing was lost. */
  get lostBecause(): string | undefined {
    return this.#lostBecause;
  }

  /** A document from the source in use. It is accepted only once it is on disk. */
  offer(role: DesiredRole, source: RoleSourceName): RoleEvent {
    const verdict = this.judge(role, source);
    if (verdict.kind === 'refuse')
      return { kind: this.#lostBecause === undefined ? 'refused' : 'unknown', why: verdict.why };
    if (verdict.kind === 'same') return { kind: 'accepted', role: this.#accepted?.role ?? role };
    return this.#accept(role, source);
  }

  /** What {@link offer} would say; nothing is changed. */
  judge(role: DesiredRole, source: RoleSourceName): RoleVerdict {
    if (this.#lostBecause === undefined) return judgeRole(role, source, this.#accepted, this.#options.identity());
    return { kind: 'refuse', why: `${this.#lostBecause}; ${setAnew(source)}` };
  }

  /** Takes a document from another source, by command. Without `force` only if nothing would change. */
  switchSource(role: DesiredRole, source: RoleSourceName, options: { readonly force: boolean }): RoleEvent {
    const verdict = this.judgeSwitch(role, source, options);
    return verdict.kind === 'refuse' ? { kind: 'refused', why: verdict.why } : this.#accept(role, source);
  }

  /** What {@link switchSource} would say; nothing is changed. */
  judgeSwitch(role: DesiredRole, source: RoleSourceName, { force }: { readonly force: boolean }): RoleVerdict {
    if (this.#lostBecause !== undefined && !force) {
      return { kind: 'refuse', why: `${this.#lostBecause}; set the role anew with --accept` };
    }
    const floor = this.#floors.find((one) => sameSource(one.source, source));
    return judgeSwitch(role, this.#accepted, this.#options.identity(), { floor, force });
  }

  #accept(role: DesiredRole, source: RoleSourceName): RoleEvent {
    const { disk, path, clock, log } = this.#options;
    const accepted: AcceptedRole = { source, role, at: timestamp(clock) };
    const { epoch, generation } = role;
    const others = this.#floors.filter((one) => !sameSource(one.source, source));
    const floors = [...others, { source, epoch, generation }].slice(-maxFloors);
    try {
      const before = disk.read(path);
      if (before !== undefined && this.#lostBecause === undefined) disk.replace(`${path}.previous`, before);
      disk.replace(path, encodeRecord({ accepted, floors }, recordVersion));
    } catch (error) {
      log.error({ err: describeError(error) }, 'a role could not be saved');
      return { kind: 'refused', why: `it cannot be saved: ${describeError(error)}` };
    }
    this.#accepted = accepted;
    this.#floors = floors;
    this.#lostBecause = undefined;
    return { kind: 'accepted', role };
  }

  #load(): void {
    const { path, log, identity } = this.#options;
    const current = this.#read(path);
    const previous = current.kind === 'ok' ? current : this.#read(`${path}.previous`);
    if (current.kind === 'absent' && previous.kind === 'absent') return;
    if (previous.kind !== 'ok') {
      this.#lostBecause = `the record of the accepted role ${path} is ${current.kind}`;
    } else if (previous.value.accepted.role.nodeId !== identity().nodeId) {
      this.#lostBecause = `the record of the accepted role ${path} belongs to node ${previous.value.accepted.role.nodeId}`;
    } else {
      if (current.kind !== 'ok')
        log.warn({ path }, `the accepted role is ${current.kind}; the one before it is in force`);
      this.#accepted = previous.value.accepted;
      this.#floors = previous.value.floors;
    }
    if (this.#lostBecause !== undefined) log.error({ path }, this.#lostBecause);
  }

  #read(path: string): Reading {
    const reading = decodeRecord(this.#options.disk.read(path), recordVersion);
    if (reading.kind === 'newer') throw new RoleNewerError(path, reading.version);
    if (reading.kind !== 'ok') return reading;
    const parsed = recordSchema.safeParse(reading.value);
    return parsed.success ? { kind: 'ok', value: parsed.data } : { kind: 'damaged' };
  }
}

const sourceSchema = z.object({ kind: z.enum(['file', 'curator']), name: z.string() });

const recordSchema = z.object({
  accepted: z.object({ source: sourceSchema, role: roleSchema, at: z.string() }),
  floors: z.array(z.object({ source: sourceSchema, epoch: z.int(), generation: z.int() })),
});

type Reading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'damaged' }
  | { readonly kind: 'ok'; readonly value: z.infer<typeof recordSchema> };
