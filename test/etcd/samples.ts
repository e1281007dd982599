/** The recorded logs of real etcd in test/fixtures/etcd-logs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addLine, type Evidence, emptyEvidence } from '../../src/etcd/evidence.ts';
import type { EtcdExit } from '../../src/etcd/exit-reasons.ts';
import { factOf, type LogFact } from '../../src/etcd/facts.ts';
import { entriesOf, type LogEntry } from '../../src/etcd/log-assembler.ts';

export interface Sample {
  readonly file: string;
  readonly version: string;
  readonly name: string;
  /** Undefined if it ran on. */
  readonly exit: EtcdExit | undefined;
  readonly lines: readonly string[];
}

const directory = join(import.meta.dirname, '../fixtures/etcd-logs');

/** All samples that the index names. */
export function readSamples(): readonly Sample[] {
  const index: unknown = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8'));
  if (!Array.isArray(index)) throw new Error('the index of the samples is no list');
  return index.map((entry: IndexEntry) => ({
    file: entry.file,
    version: entry.version,
    name: entry.case,
    exit: exitOf(entry),
    lines: readFileSync(join(directory, entry.file), 'utf8').replace(/\n$/, '').split('\n'),
  }));
}

export function evidenceOf(entries: readonly LogEntry[]): Evidence {
  return entries.reduce(addLine, emptyEvidence);
}

export function factsOf(lines: readonly string[]): readonly LogFact[] {
  return entriesOf(lines).flatMap((entry) => (entry.kind === 'line' ? (factOf(entry.line) ?? []) : []));
}

interface IndexEntry {
  readonly file: string;
  readonly version: string;
  readonly case: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

function exitOf({ exitCode, signal }: IndexEntry): EtcdExit | undefined {
  if (signal !== null) return { kind: 'signal', signal };
  return exitCode === null ? undefined : { kind: 'code', code: exitCode };
}
