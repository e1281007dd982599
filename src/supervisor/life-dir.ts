import { readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { Disk } from '../base/disk.ts';
import { errnoOf } from '../base/errors.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { blankEvidence } from './evidence.ts';
import { blankInPlaceRecord, readInPlaceRecord, writeInPlaceRecord } from './in-place-record.ts';
import { blankRecordFile, type Exit, type KeeperReading, readExitRecord, readPidRecord } from './keeper-records.ts';
import type { ProcessRecord } from './process.ts';

/** What was started, as it stands in `spec.json` before the spawn. Values of the environment are not kept. */
export interface LifeSpec {
  readonly prefix: readonly string[];
  readonly binary: string;
  readonly args: readonly string[];
  readonly environmentNames: readonly string[];
  readonly identity: string;
  /** Wall time of the start. Unit: ms since 1970. */
  readonly startedAtMs: number;
  readonly bootId: string;
}

/** An end that was asked for, as it stands in `stop`. */
export interface StopRecord {
  /** Who asked: `operator`, `plan`, … */
  readonly by: string;
  readonly reason: string;
  readonly askedAtMs: number;
  /** Signals sent so far, in order. The first is recorded before it is sent. */
  readonly signals: readonly { readonly name: string; readonly atMs: number }[];
}

/** The part of a log whose blocks were given back. Unit: bytes from the start of the log; `to` is not included. */
export interface FreedRange {
  readonly from: number;
  readonly to: number;
}

/**
 * The directory of one life of the child:
 * `spec.json` what was started · `go` until a keeper takes it · `pid`, `exit` the keeper's records · `alive` its fifo ·
 * `log` all the child wrote · `evidence` the decisive lines · `stop` who asked for the end · `freed` hole in the log ·
 * `keeper.log` complaints of the keeper itself.
 */
export class LifeDir {
  readonly path: string;
  readonly number: number;

  constructor(path: string, number: number) {
    this.path = path;
    this.number = number;
  }

  get alive(): string {
    return join(this.path, 'alive');
  }
  get log(): string {
    return join(this.path, 'log');
  }
  get evidence(): string {
    return join(this.path, 'evidence');
  }

  /** What was started, or undefined if it cannot be read; the rest of the directory counts all the same. */
  spec(): LifeSpec | undefined {
    const reading = decodeRecord(readUnlessAbsent(join(this.path, 'spec.json')), 1);
    if (reading.kind !== 'ok') return undefined;
    return specSchema.safeParse(reading.value).data;
  }

  pid(): KeeperReading<ProcessRecord> {
    return readPidRecord(readUnlessAbsent(join(this.path, 'pid')) ?? '');
  }

  exit(): KeeperReading<Exit> {
    return readExitRecord(readUnlessAbsent(join(this.path, 'exit')) ?? '');
  }

  /** When the exit record was written: wall time of the end, ms since 1970. Undefined if there is none. */
  endedAtMs(): number | undefined {
    if (this.exit().kind !== 'ok') return undefined;
    return statSync(join(this.path, 'exit'), { throwIfNoEntry: false })?.mtimeMs;
  }

  stop(): StopRecord | undefined {
    return stopSchema.safeParse(readInPlaceRecord(join(this.path, 'stop'))).data;
  }

  /** Durable when it resolves, also on a full disk. Cuts a reason that would not fit into its slot. */
  recordStop({ by, reason, ...rest }: StopRecord): Promise<void> {
    const record: StopRecord = { ...rest, by: by.slice(0, 100), reason: reason.slice(0, 500) };
    return writeInPlaceRecord(join(this.path, 'stop'), record);
  }

  freed(): FreedRange | undefined {
    return freedSchema.safeParse(readInPlaceRecord(join(this.path, 'freed'))).data;
  }

  /** Written before the blocks go, so that a reader never takes a hole for text. */
  recordFreed(freed: FreedRange): Promise<void> {
    return writeInPlaceRecord(join(this.path, 'freed'), freed);
  }

  /** True while no keeper has taken this life. */
  get waitsForKeeper(): boolean {
    return exists(join(this.path, 'go'));
  }

  /**
   * Takes the leave to start away from a keeper that has not begun; needs no free space. A keeper removes `go` under the
   * lock, so whoever withdraws must look at the lock afterwards: if it is free then, this life never runs.
   */
  withdraw(disk: Disk): void {
    disk.remove(join(this.path, 'go'));
  }
}

/**
 * Writes the files of a life into `directory`, which must be empty. All their blocks are written and on disk when it
 * resolves; together rather than one by one, so that the file system can commit them at once.
 */
export async function fillLifeDir(directory: string, spec: LifeSpec): Promise<void> {
  const files: Readonly<Record<string, string>> = {
    'spec.json': encodeRecord(spec, 1),
    pid: blankRecordFile(),
    exit: blankRecordFile(),
    stop: blankInPlaceRecord(),
    freed: blankInPlaceRecord(),
    evidence: blankEvidence(),
    log: '',
    go: '',
  };
  await Promise.all(Object.entries(files).map(([name, content]) => writeSynced(join(directory, name), content)));
  await syncDirectory(directory);
}

async function writeSynced(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    if (content !== '') await file.sync(); // an empty file is all in its directory
  } finally {
    await file.close();
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const specSchema = z.object({
  prefix: z.array(z.string()),
  binary: z.string(),
  args: z.array(z.string()),
  environmentNames: z.array(z.string()),
  identity: z.string(),
  startedAtMs: z.number(),
  bootId: z.string(),
});

const stopSchema = z.object({
  by: z.string(),
  reason: z.string(),
  askedAtMs: z.number(),
  signals: z.array(z.object({ name: z.string(), atMs: z.number() })),
});

const freedSchema = z.object({ from: z.number(), to: z.number() });

function readUnlessAbsent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
