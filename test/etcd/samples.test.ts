// Goal: each recorded end of a real etcd gets the class that was written down for it by hand, and no line is lost.
// Method: all samples through assembler, evidence and classifier; a sample without an expectation fails.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { classifyExit } from '../../src/etcd/exit.ts';
import { entriesOf } from '../../src/etcd/log-assembler.ts';
import { type ExpectedEnd, type ExpectedRun, expected } from '../fixtures/expected-classes.ts';
import { evidenceOf, factsOf, readSamples, type Sample } from './samples.ts';

const samples = readSamples();

test('every recorded sample is covered: all 311, by an expectation that is used', () => {
  const files = readdirSync(join(import.meta.dirname, '../fixtures/etcd-logs')).filter((name) => name !== 'index.json');
  expect(samples.map(({ file }) => file).sort()).toEqual(files.sort());
  expect(samples).toHaveLength(311);
  const used = new Set(samples.flatMap((sample) => [sample.name, `${sample.version}-${sample.name}`]));
  expect(Object.keys(expected).filter((key) => !used.has(key))).toEqual([]);
});

describe.each(samples)('$file', (sample) => {
  const wanted = expectationOf(sample);

  test('no line is lost', () => {
    const total = entriesOf(sample.lines).reduce((sum, entry) => {
      return sum + (entry.kind === 'line' ? 1 : entry.block.totalLines);
    }, 0);
    expect(total).toBe(sample.lines.length);
  });

  if ('ends' in wanted) test('its end has the expected class', () => checkEnd(sample, wanted));
  else test('its log says what it must', () => checkRun(sample, wanted));
});

function expectationOf(sample: Sample): ExpectedEnd | ExpectedRun {
  const wanted = expected[`${sample.version}-${sample.name}`] ?? expected[sample.name];
  if (wanted === undefined) throw new Error(`nothing is expected of ${sample.file}`);
  return wanted;
}

function checkEnd(sample: Sample, wanted: ExpectedEnd): void {
  if (sample.exit === undefined) throw new Error('this sample did not end');
  const evidence = evidenceOf(entriesOf(sample.lines));
  const { asked } = wanted;
  const verdict = classifyExit({
    exit: sample.exit,
    evidence,
    asked: asked ? { kind: 'signalled', signal: asked, afterGrace: false, why: 'stop' } : { kind: 'none' },
    host: { freeBytes: undefined, oomKills: wanted.oomKills },
    lists: [],
    lastKnownVoters: [],
    ownId: evidence.memberId,
    clusterId: evidence.clusterId,
    ownRemovalJournalled: false,
  });
  expect(verdict.class, verdict.because).toBe(wanted.ends);
  expect(verdict.panicSeen).toBe(wanted.panicSeen ?? false);
  expect(verdict.because).not.toBe('');
}

function checkRun(sample: Sample, wanted: ExpectedRun): void {
  expect(sample.exit).toBeUndefined();
  const seen = new Set(factsOf(sample.lines).map(({ kind }) => kind));
  for (const kind of wanted.sees) expect([...seen]).toContain(kind);
  for (const kind of wanted.seesNot ?? []) expect([...seen]).not.toContain(kind);
}
