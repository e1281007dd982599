import { readFileSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { errnoOf } from '../base/errors.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';

/** Size of one slot. Unit: bytes. */
const slotBytes = 4096;

/** What a prepared file of two slots contains. */
export function blankInPlaceRecord(): string {
  return `${' '.repeat(2 * slotBytes - 1)}\n`;
}

/**
 * A small record that can be rewritten on a full disk: the file's blocks are written beforehand, and two slots are used
 * in turn, so that a torn write leaves the former content. One write at a time. `value` may take about 4000 bytes as JSON.
 */
export async function writeInPlaceRecord(path: string, value: unknown): Promise<void> {
  const newest = newestSlot(path);
  const record = encodeRecord({ sequence: (newest?.sequence ?? 0) + 1, value }, 1);
  const slot = Buffer.from(record.padEnd(slotBytes, ' '));
  if (slot.byteLength !== slotBytes) {
    throw new RangeError(`a record of ${record.length} bytes does not fit into ${path}`);
  }
  const file = await open(path, 'r+');
  try {
    await file.write(slot, 0, slotBytes, newest?.index === 0 ? slotBytes : 0);
    await file.datasync(); // awaited, not blocking: a slow disk must not hold the event loop
  } finally {
    await file.close();
  }
}

/** The newest whole record's value, or undefined if none was written (or the file is not there). */
export function readInPlaceRecord(path: string): unknown {
  return newestSlot(path)?.value;
}

/** Writes all of `bytes` at `position`; a short write is gone on with, so it either is whole or throws. */
export function writeWhole(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.byteLength; ) {
    const written = writeSync(fd, bytes, done, bytes.byteLength - done, position + done);
    if (written === 0) throw new Error('write returned 0');
    done += written;
  }
}

interface Slot {
  readonly index: number;
  readonly sequence: number;
  readonly value: unknown;
}

function newestSlot(path: string): Slot | undefined {
  let newest: Slot | undefined;
  const content = readUnlessAbsent(path);
  for (const index of [0, 1]) {
    const text = content.subarray(index * slotBytes, (index + 1) * slotBytes).toString('utf8');
    const reading = decodeRecord(text.trimEnd(), 1);
    if (reading.kind !== 'ok' || !isSequenced(reading.value)) continue;
    if (newest === undefined || reading.value.sequence > newest.sequence) newest = { index, ...reading.value };
  }
  return newest;
}

function isSequenced(value: unknown): value is { sequence: number; value: unknown } {
  return typeof value === 'object' && value !== null && 'sequence' in value && typeof value.sequence === 'number';
}

function readUnlessAbsent(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
