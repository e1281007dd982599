import * as z from 'zod';
import type { Disk } from '../base/disk.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import type { HighWater } from './header-guard.ts';

/** What a curator knows of its cluster across restarts. */
export interface CuratorMemory {
  readonly highWater: HighWater | undefined;
  /** Why it changes nothing until somebody accepts the membership; empty if it may. */
  readonly readOnly: string;
}

const schema = z.object({
  clusterId: z.string().regex(/^[0-9a-f]{1,16}$/),
  term: z.string().regex(/^\d+$/),
  revision: z.string().regex(/^\d+$/),
  readOnly: z.string(),
});
const version = 1;

/** One checksummed record. What cannot be read is read-only, never "nothing known". */
export class HighWaterFile {
  readonly #disk: Disk;
  readonly #path: string;

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  read(): CuratorMemory {
    const reading = decodeRecord(this.#disk.read(this.#path), version);
    if (reading.kind === 'absent') return { highWater: undefined, readOnly: '' };
    const parsed = reading.kind === 'ok' ? schema.safeParse(reading.value) : undefined;
    if (parsed?.success !== true) {
      const why = reading.kind === 'newer' ? `it is of version ${reading.version}` : 'it is damaged';
      return {
        highWater: undefined,
        readOnly: `what this curator knew of its cluster cannot be read: ${this.#path}: ${why}`,
      };
    }
    const { clusterId, term, revision, readOnly } = parsed.data;
    const highWater = { clusterId: BigInt(`0x${clusterId}`), term: BigInt(term), revision: BigInt(revision) };
    return { highWater, readOnly };
  }

  /** Throws the system's error if the disk refuses. */
  write({ highWater, readOnly }: CuratorMemory): void {
    if (highWater === undefined) return;
    const { clusterId, term, revision } = highWater;
    const record = {
      clusterId: clusterId.toString(16),
      term: term.toString(),
      revision: revision.toString(),
      readOnly,
    };
    this.#disk.replace(this.#path, encodeRecord(record, version));
  }
}
