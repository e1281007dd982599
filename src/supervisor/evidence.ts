import { closeSync, fdatasync, openSync, readFileSync } from 'node:fs';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { writeWhole } from './in-place-record.ts';

/** One decisive line, kept beside the log. */
export interface EvidenceLine {
  /** 1 for the first decisive line of the life. */
  readonly sequence: number;
  /** Where the line starts in the log. Unit: bytes. */
  readonly offset: number;
  readonly text: string;
  /** True if the text did not fit whole. */
  readonly cut: boolean;
}

const slotBytes = 2048;
const slots = 32;
/** The first lines stay for ever; the slots behind them keep the newest. */
const keptFirst = 8;

/** What a prepared evidence file contains: 64 KiB of written blocks. */
export function blankEvidence(): string {
  return `${' '.repeat(slots * slotBytes - 1)}\n`;
}

/** Every whole entry of an evidence file, in the order of the log. Damaged slots are left out. */
export function readEvidence(path: string): readonly EvidenceLine[] {
  const content = readFileSync(path);
  const found: EvidenceLine[] = [];
  for (let slot = 0; slot < slots; slot++) {
    const text = content.subarray(slot * slotBytes, (slot + 1) * slotBytes).toString('utf8');
    const reading = decodeRecord(text.trimEnd(), 1);
    if (reading.kind === 'ok' && isEvidence(reading.value)) found.push(reading.value);
  }
  return found.sort((a, b) => a.sequence - b.sequence);
}

/**
 * Copies decisive lines into a file whose blocks are there already, so that a full disk cannot lose them: the first
 * eight of a life, and the newest 24. A line that an earlier agent copied is not copied again.
 */
export class Evidence {
  readonly #fd: number;
  #sequence: number;
  #lastOffset: number;

  constructor(path: string) {
    const known = readEvidence(path).at(-1);
    this.#sequence = known?.sequence ?? 0;
    this.#lastOffset = known?.offset ?? -1;
    this.#fd = openSync(path, 'r+');
  }

  /** Writes the line; it survives our death when this returns, and a power cut after {@link sync}. */
  keep(offset: number, text: string): void {
    if (offset <= this.#lastOffset) return;
    const sequence = this.#sequence + 1;
    const slot = sequence <= keptFirst ? sequence - 1 : keptFirst + ((sequence - keptFirst - 1) % (slots - keptFirst));
    writeWhole(this.#fd, Buffer.from(fitted(sequence, offset, text)), slot * slotBytes);
    this.#sequence = sequence;
    this.#lastOffset = offset;
  }

  /** Resolves when what was kept is on disk. */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => fdatasync(this.#fd, (error) => (error ? reject(error) : resolve())));
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** The entry as one slot; text is cut until it fits. */
function fitted(sequence: number, offset: number, text: string): string {
  for (let length = Math.min(text.length, slotBytes); ; length = Math.floor(length * 0.8)) {
    const kept = text.slice(0, length);
    const line = encodeRecord({ sequence, offset, cut: kept.length < text.length, text: kept }, 1);
    const spare = slotBytes - Buffer.byteLength(line);
    if (spare >= 0) return line + ' '.repeat(spare);
  }
}

function isEvidence(value: unknown): value is EvidenceLine {
  return typeof value === 'object' && value !== null && 'sequence' in value && 'offset' in value && 'text' in value;
}
