import * as z from 'zod';
import type { Disk } from '../../base/disk.ts';
import { decodeRecord, encodeRecord } from '../../base/record.ts';
import type { ClusterId } from '../../etcd/member.ts';
import type { Layout } from '../layout.ts';
import type { Supervision } from '../observed.ts';
import { usedVersionSchema } from '../used-version.ts';
import { DurableValue, type Reading, StateNotOursError, StateNotWrittenError } from './durable-value.ts';
import {
  endsSchema,
  foundingSchema,
  type IdentityRecord,
  identitySchema,
  joinSchema,
  type LeaveRecord,
  leaveSchema,
  pauseSchema,
  progressSchema,
  type RunIntentRecord,
  reportedSchema,
  restartsSchema,
  runIntentSchema,
  tombstonesSchema,
  verdictSchema,
  volumeSchema,
} from './schemas.ts';

/**
 * All that one node remembers, apart from its role and its outbox. One file for each thought, so that one damaged file
 * does not hide the others.
 */
export class AgentState {
  readonly founding: DurableValue<typeof foundingSchema>;
  readonly identity: DurableValue<typeof identitySchema>;
  readonly join: DurableValue<typeof joinSchema>;
  readonly leave: DurableValue<typeof leaveSchema>;
  readonly tombstones: DurableValue<typeof tombstonesSchema>;
  readonly volume: DurableValue<typeof volumeSchema>;
  readonly pause: DurableValue<typeof pauseSchema>;
  readonly verdict: DurableValue<typeof verdictSchema>;
  readonly reported: DurableValue<typeof reportedSchema>;
  readonly ends: DurableValue<typeof endsSchema>;
  readonly restarts: DurableValue<typeof restartsSchema>;
  readonly progress: DurableValue<typeof progressSchema>;
  readonly usedVersion: DurableValue<typeof usedVersionSchema>;
  readonly #disk: Disk;
  readonly #layout: Layout;
  readonly #distrusted = new Map<string, string>();

  constructor(options: { readonly disk: Disk; readonly layout: Layout }) {
    this.#disk = options.disk;
    this.#layout = options.layout;
    const file = <Schema extends z.ZodType>(name: string, schema: Schema): DurableValue<Schema> =>
      new DurableValue({ path: `${options.layout.stateDir}/${name}`, disk: options.disk, schema, version: 1 });
    this.founding = file('founding', foundingSchema);
    this.identity = file('identity', identitySchema);
    this.join = file('join', joinSchema);
    this.leave = file('leave', leaveSchema);
    this.tombstones = file('tombstones', tombstonesSchema);
    this.volume = file('volume', volumeSchema);
    this.pause = file('pause', pauseSchema);
    this.verdict = file('verdict', verdictSchema);
    this.reported = file('reported', reportedSchema);
    this.ends = file('ends', endsSchema);
    this.restarts = file('restarts', restartsSchema);
    this.progress = file('progress', progressSchema);
    this.usedVersion = file('used-version', usedVersionSchema);
  }

  /** Other records of the agent (`what`: outbox, journal, configuration) cannot be trusted, or can be again (undefined). */
  distrust(what: string, because: string | undefined): void {
    if (because === undefined) this.#distrusted.delete(what);
    else this.#distrusted.set(what, because);
  }

  /** Whether every file can be trusted; if not, which and why. */
  supervision(): Supervision {
    const [distrusted] = this.#distrusted.values();
    if (distrusted !== undefined) return { kind: 'superviseOnly', because: distrusted };
    const files = [
      this.founding,
      this.identity,
      this.join,
      this.leave,
      this.tombstones,
      this.volume,
      this.pause,
      this.verdict,
      this.reported,
      this.ends,
      this.restarts,
      this.progress,
      this.usedVersion,
    ];
    for (const file of files) {
      const reading = file.read();
      if (reading.kind === 'newer' || reading.kind === 'damaged')
        return { kind: 'superviseOnly', because: reading.because };
    }
    if (this.#isLost()) {
      const because = `${this.#layout.stateDir} holds no record of this node, and ${this.#layout.identityCopy} does`;
      return { kind: 'superviseOnly', because, lost: true };
    }
    return { kind: 'full' };
  }

  /** The recorded identity; from its copy beside the data where the state directory's own cannot be read, or was lost. */
  knownIdentity(): IdentityRecord | undefined {
    const reading = this.identity.read();
    if (reading.kind === 'ok') return reading.value;
    if (reading.kind === 'absent' && !this.#isLost()) return undefined;
    const copy = this.#identityCopy();
    return copy.kind === 'ok' ? copy.value : undefined;
  }

  /** Whether this agent itself has removed the member: the call was answered, or read back. */
  hasLeft(identity: Pick<IdentityRecord, 'clusterId' | 'memberId'>): boolean {
    return this.leaveOf(identity)?.state === 'removed';
  }

  /** How this agent removes, or has removed, the member; undefined if it does not. */
  leaveOf({ clusterId, memberId }: Pick<IdentityRecord, 'clusterId' | 'memberId'>): LeaveRecord | undefined {
    const leave = this.leave.read();
    if (leave.kind !== 'ok') return undefined;
    return leave.value.memberId === memberId && leave.value.clusterId === clusterId ? leave.value : undefined;
  }

  /** Clusters that ended with this node. */
  retiredClusters(): ReadonlySet<ClusterId> {
    const stones = this.tombstones.read();
    const retired = stones.kind === 'ok' ? stones.value.filter((stone) => stone.retired && stone.archive !== '') : [];
    return new Set(retired.map(({ clusterId }) => clusterId));
  }

  /**
   * Records the identity: the copy beside the data first, so that the state never names what the data does not know.
   * A damaged copy is replaced, one of a newer agent is not. Throws {@link StateNotWrittenError}, StateNotOursError.
   */
  recordIdentity(identity: IdentityRecord): void {
    const before = this.identity.read();
    if (before.kind === 'newer' || before.kind === 'damaged')
      throw new StateNotOursError(this.identity.path, before.because);
    if (this.#identityCopy().kind !== 'newer') {
      try {
        this.#disk.ensureDirectory(this.#layout.memberDir);
        this.#disk.replace(this.#layout.identityCopy, encodeRecord(z.encode(identitySchema, identity), 1));
      } catch (error) {
        throw new StateNotWrittenError(this.#layout.identityCopy, error);
      }
    }
    this.identity.write(identity);
  }

  /** The marker of the volume is recorded before anything is put there: a copy without it means that our records are gone. */
  #isLost(): boolean {
    return this.volume.read().kind === 'absent' && this.#identityCopy().kind === 'ok';
  }

  #identityCopy(): Reading<IdentityRecord> {
    const { identityCopy } = this.#layout;
    return new DurableValue({ path: identityCopy, disk: this.#disk, schema: identitySchema, version: 1 }).read();
  }

  /** Whether etcd is to run. Two copies; the one in the state directory wins where both can be read. */
  runIntent(): Reading<RunIntentRecord> {
    const own = this.#readIntent(`${this.#layout.stateDir}/run-intent`);
    if (own.kind === 'ok') return own;
    const copy = this.#readIntent(this.#layout.runIntentCopy);
    if (copy.kind === 'ok') return copy;
    return own.kind === 'absent' ? copy : own;
  }

  /**
   * Writes both copies; the one beside the data only where the member's directory is there, since nothing is created on a
   * volume that may be missing. A copy that is refused is removed: the first one counts, and a stale one would mislead. Nothing
   * replaces `removed` but an intent for another member. Throws {@link StateNotWrittenError}: then nothing has changed.
   */
  recordRunIntent(intent: RunIntentRecord): void {
    const before = this.runIntent();
    if (before.kind === 'ok' && isFinalFor(before.value, intent)) return;
    const line = encodeRecord(intent, 1);
    const path = `${this.#layout.stateDir}/run-intent`;
    try {
      this.#disk.replace(path, line);
    } catch (error) {
      throw new StateNotWrittenError(path, error);
    }
    this.#copyIntent(line);
  }

  #copyIntent(line: string): void {
    const { memberDir, runIntentCopy } = this.#layout;
    try {
      if (this.#disk.list(memberDir) !== undefined) this.#disk.replace(runIntentCopy, line);
    } catch {
      try {
        this.#disk.remove(runIntentCopy);
      } catch {
        // A disk that takes nothing at all: no etcd runs on it either, and the first copy counts.
      }
    }
  }

  #readIntent(path: string): Reading<RunIntentRecord> {
    let content: Uint8Array | undefined;
    try {
      content = this.#disk.read(path);
    } catch (error) {
      return { kind: 'damaged', because: `${path} cannot be read: ${String(error)}` };
    }
    // The format never changes, so whatever version an agent wrote is read.
    const reading = decodeRecord(content, Number.MAX_SAFE_INTEGER);
    if (reading.kind === 'absent') return reading;
    if (reading.kind !== 'ok') return { kind: 'damaged', because: `${path} is damaged` };
    const parsed = runIntentSchema.safeParse(reading.value);
    return parsed.success
      ? { kind: 'ok', value: parsed.data }
      : { kind: 'damaged', because: `${path} does not hold a run intent` };
  }
}

/** A removed id never starts again; only the member that comes after it on this node may have another intent. */
function isFinalFor(before: RunIntentRecord, next: RunIntentRecord): boolean {
  if (before.intent !== 'removed' || next.intent === 'removed') return false;
  return before.memberId === next.memberId && before.clusterId === next.clusterId;
}
