// Goal: no line is lost or changed on its way, however the bytes arrive; records are whole or said not to be.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { blankEvidence, Evidence, readEvidence } from '../../src/supervisor/evidence.ts';
import { blankInPlaceRecord, readInPlaceRecord, writeInPlaceRecord } from '../../src/supervisor/in-place-record.ts';
import {
  blankRecordFile,
  cksum,
  exitOfStatus,
  readExitRecord,
  readPidRecord,
} from '../../src/supervisor/keeper-records.ts';
import { LineSplitter, type LogLine, maxLineBytes } from '../../src/supervisor/line-splitter.ts';
import { runCommand } from '../../src/supervisor/run.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'supervisor-text-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('lines', () => {
  test('whatever the slices, the same lines with the same offsets', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '{', '\r', '\0'), maxLength: 20 });
    void fc.assert(
      fc.property(
        fc.array(line, { maxLength: 20 }),
        fc.boolean(),
        fc.array(fc.nat({ max: 12 })),
        (lines, torn, cuts) => {
          const text = lines.join('\n') + (torn ? '' : '\n');
          const bytes = Buffer.from(text);
          const got: LogLine[] = [];
          const splitter = new LineSplitter((each) => got.push(each));
          let from = 0;
          for (const cut of [...cuts, bytes.length]) {
            const slice = Buffer.from(bytes.subarray(from, from + cut));
            splitter.push(slice);
            slice.fill(0x21); // the buffer is reused
            from += cut;
          }
          splitter.end();
          expect(splitter.offset).toBe(bytes.length);
          const wanted = text.split('\n');
          if (wanted.at(-1) === '') wanted.pop();
          expect(got.map((each) => each.text)).toEqual(wanted);
          for (const each of got)
            expect(bytes.subarray(each.offset, each.offset + Buffer.byteLength(each.text)).toString()).toBe(each.text);
          expect(got.filter((each) => each.cut)).toHaveLength(text !== '' && !text.endsWith('\n') ? 1 : 0);
        },
      ),
    );
  });

  test('a line of exactly 1 MiB is whole; one byte more is cut, and the next line is right again', () => {
    const got: LogLine[] = [];
    const splitter = new LineSplitter((each) => got.push(each));
    for (const length of [maxLineBytes, maxLineBytes + 1]) splitter.push(Buffer.from(`${'x'.repeat(length)}\nnext\n`));
    expect(got.map(({ text, cut }) => [text.length, cut])).toEqual([
      [maxLineBytes, false],
      [4, false],
      [maxLineBytes, true],
      [4, false],
    ]);
  });

  test('a freed part stands as one line, and the lines it tore are marked', () => {
    const got: LogLine[] = [];
    const splitter = new LineSplitter((each) => got.push(each));
    splitter.push(Buffer.from('whole\nhea'));
    splitter.freed(1000);
    splitter.push(Buffer.from('ail\nwhole\n'));
    expect(got).toEqual([
      { text: 'whole', offset: 0, cut: false },
      { text: 'hea', offset: 6, cut: true },
      { text: '… 1000 bytes freed …', offset: 9, cut: true, freedBytes: 1000 },
      { text: 'ail', offset: 1009, cut: true },
      { text: 'whole', offset: 1013, cut: false },
    ]);
  });
});

describe('records of the keeper', () => {
  test('our checksum is the one that cksum prints', async () => {
    for (const text of ['', 'a', 'exit 1 0', 'x'.repeat(1000)]) {
      const { stdout } = await runCommand('cksum', [], { timeoutMs: 5000, stdin: text });
      expect(`${cksum(Buffer.from(text))} ${text.length}`).toBe(stdout.trim());
    }
  });

  test('a blank file is blank, a torn or changed line is damaged', () => {
    const body = 'exit 1 137';
    const line = `${body} ${cksum(Buffer.from(`${body}\n`))} ${body.length + 1}`;
    expect(readExitRecord(blankRecordFile())).toEqual({ kind: 'blank' });
    expect(readExitRecord('')).toEqual({ kind: 'blank' });
    expect(readExitRecord(`${line}\n   \n`)).toEqual({
      kind: 'ok',
      value: { kind: 'signal', signal: 9, name: 'SIGKILL' },
    });
    for (let length = 1; length < body.length + 2; length++) {
      expect(readExitRecord(line.slice(0, length)).kind).toBe('damaged');
    }
    expect(readExitRecord(line.replace('137', '131'))).toEqual({ kind: 'damaged' });
    expect(readPidRecord(line)).toEqual({ kind: 'damaged' });
  });

  test('a status above 128 is a signal', () => {
    expect(exitOfStatus(128)).toEqual({ kind: 'code', code: 128 });
    expect(exitOfStatus(143)).toMatchObject({ kind: 'signal', name: 'SIGTERM' });
    expect(exitOfStatus(165)).toMatchObject({ kind: 'signal', signal: 37, name: 'signal 37' });
  });
});

describe('records in place', () => {
  test('a torn write leaves the former record', async () => {
    const file = join(directory, 'record');
    writeFileSync(file, blankInPlaceRecord());
    expect(readInPlaceRecord(file)).toBeUndefined();
    for (let n = 1; n <= 5; n++) {
      await writeInPlaceRecord(file, { n });
      expect(readInPlaceRecord(file)).toEqual({ n });
      const whole = readFileSync(file);
      expect(whole.length).toBe(8192);
      const torn = Buffer.from(whole);
      torn.fill(0, n % 2 === 1 ? 20 : 4116, n % 2 === 1 ? 4096 : 8192);
      writeFileSync(join(directory, 'torn'), torn);
      expect(readInPlaceRecord(join(directory, 'torn'))).toEqual(n === 1 ? undefined : { n: n - 1 });
    }
    await expect(writeInPlaceRecord(file, 'x'.repeat(5000))).rejects.toThrow(/does not fit/);
    expect(readInPlaceRecord(file)).toEqual({ n: 5 });
    expect(readInPlaceRecord(join(directory, 'absent'))).toBeUndefined();
  });
});

describe('evidence', () => {
  test('the first eight lines and the newest 24 are kept, long ones cut, damaged ones left out', () => {
    const file = join(directory, 'evidence');
    writeFileSync(file, blankEvidence());
    const evidence = new Evidence(file);
    for (let n = 0; n < 100; n++) evidence.keep(n * 10, n === 99 ? `"é${'\u0001'.repeat(3000)}` : `line ${n}`);
    evidence.close();
    const kept = readEvidence(file);
    expect(kept.map(({ offset }) => offset / 10)).toEqual([
      0,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      ...Array.from({ length: 24 }, (_, n) => 76 + n),
    ]);
    expect(kept.at(-1)).toMatchObject({ cut: true });
    expect(readFileSync(file).length).toBe(65_536);
    const bytes = readFileSync(file);
    bytes[30] = (bytes[30] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    expect(readEvidence(file)).toHaveLength(31);
  });

  test('a new agent that reads the log anew copies no line twice', () => {
    const file = join(directory, 'evidence');
    writeFileSync(file, blankEvidence());
    for (let agent = 0; agent < 3; agent++) {
      const evidence = new Evidence(file);
      for (let n = 0; n <= agent; n++) evidence.keep(n * 10, `line ${n}`);
      evidence.close();
    }
    expect(readEvidence(file).map(({ text }) => text)).toEqual(['line 0', 'line 1', 'line 2']);
  });
});
