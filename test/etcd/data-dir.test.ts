// Goal: a data directory is told for what it is without etcd; damage, a torn end and unreadable files are three things.
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { founderClusterId, founderMemberId } from '../../src/etcd/bootstrap-ids.ts';
import { crc32c } from '../../src/etcd/crc32c.ts';
import { type DataDir, inspectDataDir, isMountPoint } from '../../src/etcd/data-dir.ts';
import { logRegression } from '../../src/etcd/log-regression.ts';
import { type WalSegment, WalSegmentReader } from '../../src/etcd/wal.ts';
import { temporaryDirectory } from '../support/etcd-process.ts';
import { entry, metadata, segment, snapshot, state } from './wal-writer.ts';

const head = [metadata(0xabn, 0xc1n), snapshot(0n, 0n)];
const firstName = '0000000000000000-0000000000000000.wal';
const secondName = '0000000000000001-0000000000000003.wal';

async function inspected(files: Readonly<Record<string, Uint8Array | string>>): Promise<DataDir> {
  using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'member/wal'), { recursive: true });
  mkdirSync(join(directory.path, 'member/snap'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory.path, 'member', name), content);
  return await inspectDataDir(directory.path);
}

/** Where the type of each record stands: etcd's checksum does not cover it, so a flip there may go unseen, by etcd as well. */
function typeBytes(bytes: Uint8Array): ReadonlySet<number> {
  const found = new Set<number>();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const length = view.getBigInt64(at, true);
    found.add(at + 9);
    at += 8 + Number((length & 0xff_ffffn) + (length < 0n ? (length >> 56n) & 7n : 0n));
  }
  return found;
}

function read(bytes: Uint8Array, chunk = bytes.length): WalSegment {
  const reader = new WalSegmentReader(bytes.length);
  for (let at = 0; at < bytes.length; at += chunk) reader.feed(bytes.subarray(at, at + chunk));
  return reader.result();
}

describe('a member', () => {
  const whole = segment([...head, state(1n, 2n), entry(1n, 1n), entry(2n, 2n), state(2n, 2n)]);

  test('is known with its ids and the end of its log', async () => {
    expect(await inspected({ [`wal/${firstName}`]: whole.bytes, 'snap/db': 'x' })).toEqual({
      kind: 'member',
      memberId: 0xabn,
      clusterId: 0xc1n,
      last: { term: 2n, index: 2n },
      commit: 2n,
      term: 2n,
      tornTail: false,
      hasDb: true,
      hasSnapshots: false,
      segments: 1,
    });
  });

  test('an entry that raft wrote again ends the log there', () => {
    const bytes = segment([...head, entry(1n, 1n), entry(1n, 2n), entry(1n, 3n), entry(2n, 2n)]).bytes;
    expect(read(bytes).lastEntry).toEqual({ term: 2n, index: 2n });
  });

  test('a new segment without entries sends us to the one before', async () => {
    const first = segment([...head, entry(1n, 1n), entry(1n, 2n)], 0);
    const second = segment([metadata(0xabn, 0xc1n), state(1n, 2n)], 64, first.crc);
    const found = await inspected({ [`wal/${firstName}`]: first.bytes, [`wal/${secondName}`]: second.bytes });
    expect(found).toMatchObject({ kind: 'member', last: { term: 1n, index: 2n }, segments: 2 });
  });

  test('a snapshot that was received counts once it is committed, not before', async () => {
    const received = (commit: bigint) => segment([...head, entry(1n, 1n), snapshot(3n, 90n), state(3n, commit)]).bytes;
    const names = { 'snap/db': '', 'snap/a.snap': '' };
    expect(await inspected({ ...names, [`wal/${firstName}`]: received(90n) })).toMatchObject({
      last: { term: 3n, index: 90n },
      hasSnapshots: true,
    });
    expect(await inspected({ ...names, [`wal/${firstName}`]: received(1n) })).toMatchObject({ last: { index: 1n } });
  });

  test('C13: a torn end is a member whose last record is lost', async () => {
    const sector = new Uint8Array(2000).fill(7);
    const { bytes } = segment([...head, entry(1n, 1n), entry(1n, 2n, sector)], 0);
    const torn = bytes.slice();
    torn.fill(0, torn.length - 1200);
    for (const content of [torn, bytes.subarray(0, bytes.length - 300)]) {
      expect(await inspected({ [`wal/${firstName}`]: content })).toMatchObject({ tornTail: true, last: { index: 1n } });
    }
  });

  test('the same is read whatever the size of the pieces', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), (chunk) => {
        expect(read(whole.bytes, chunk)).toEqual(read(whole.bytes));
      }),
    );
  });
});

describe('damage', () => {
  const { bytes } = segment([...head, entry(1n, 1n, new Uint8Array(64).fill(9)), entry(1n, 2n)]);

  test('C12: any flipped bit is noticed, or cuts the end, and never throws', () => {
    const good = read(bytes);
    const used = bytes.length - 4096;
    const types = typeBytes(bytes.subarray(0, used));
    fc.assert(
      fc.property(fc.nat(used * 8 - 1), (bit) => {
        fc.pre(!types.has(bit >> 3));
        const flipped = bytes.slice();
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const found = read(flipped);
        const same = found.end.kind === 'clean' && found.records === good.records;
        // Padding carries nothing.
        if (same) expect({ ...found, records: 0 }).toEqual({ ...good, records: 0 });
        else expect(found.records).toBeLessThan(good.records);
      }),
      { numRuns: 2000 },
    );
  });

  test('a wrong checksum is damage, and the ids are still told', async () => {
    const flipped = bytes.slice();
    const at = flipped.lastIndexOf(9);
    flipped[at] = 8;
    const found = await inspected({ [`wal/${firstName}`]: flipped });
    expect(found).toMatchObject({ kind: 'broken', memberId: 0xabn, clusterId: 0xc1n });
  });

  test.each([
    ['an empty segment', { [`wal/${firstName}`]: new Uint8Array(0) }],
    ['garbage', { [`wal/${firstName}`]: new Uint8Array(4096).fill(0xa5) }],
    ['a missing segment', { [`wal/${firstName}`]: bytes, 'wal/0000000000000002-0000000000000009.wal': bytes }],
    ['snapshots without their db', { [`wal/${firstName}`]: bytes, 'snap/0-1.snap': '' }],
  ])('%s is broken', async (_, files) => {
    expect(await inspected(files)).toMatchObject({ kind: 'broken' });
  });

  test('any bytes are read without throwing', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (garbage) => read(garbage).records >= 0));
  });
});

describe('no member', () => {
  test('absent, empty (with what else lies there), a file, begun without a log, a proxy', async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => join(directory.path, name);
    expect(await inspectDataDir(at('none'))).toEqual({ kind: 'absent' });
    mkdirSync(at('empty'));
    writeFileSync(at('empty/identity'), '');
    expect(await inspectDataDir(at('empty'))).toEqual({ kind: 'empty', others: ['identity'] });
    expect(await inspectDataDir(at('empty/identity'))).toEqual({ kind: 'notADirectory' });
    mkdirSync(at('begun/member/snap'), { recursive: true });
    writeFileSync(at('begun/member/snap/db'), '');
    expect(await inspectDataDir(at('begun'))).toEqual({ kind: 'noWal', hasDb: true, hasSnapshots: false });
    mkdirSync(at('old/proxy'), { recursive: true });
    expect(await inspectDataDir(at('old'))).toMatchObject({ kind: 'broken' });
  });

  test('unreadable is never absent', async () => {
    using directory = temporaryDirectory();
    symlinkSync('loop', join(directory.path, 'loop'));
    expect(await inspectDataDir(join(directory.path, 'loop'))).toMatchObject({ kind: 'unreadable' });
    mkdirSync(join(directory.path, 'closed'));
    chmodSync(join(directory.path, 'closed'), 0);
    const closed = await inspectDataDir(join(directory.path, 'closed'));
    expect(closed.kind).toBe(process.getuid?.() === 0 ? 'empty' : 'unreadable');
  });

  test('a mount point is told from a directory', async () => {
    using directory = temporaryDirectory();
    expect(await isMountPoint('/proc')).toBe(true);
    expect(await isMountPoint(directory.path)).toBe(false);
  });
});

describe('a log that went back', () => {
  const data = { last: { term: 4n, index: 100n }, term: 5n, commit: 100n };

  test('is noticed by index and by term', () => {
    expect(logRegression({ term: 5n, appliedIndex: 101n }, data)).toContain('index 100');
    expect(logRegression({ term: 6n, appliedIndex: 90n }, data)).toContain('term 5');
  });

  test('a log that is ahead or equal is none', () => {
    expect(logRegression({ term: 5n, appliedIndex: 100n }, data)).toBeUndefined();
    expect(logRegression({ term: 4n, appliedIndex: 7n }, data)).toBeUndefined();
  });
});

describe('numbers that etcd computes', () => {
  test('CRC-32C of the standard text, whole and continued', () => {
    const text = new TextEncoder().encode('123456789');
    expect(crc32c(text)).toBe(0xe3069283);
    expect(crc32c(text.subarray(4), crc32c(text.subarray(0, 4)))).toBe(0xe3069283);
  });

  test('ids of a founder, as etcd 3.4.23 and 3.7.3 gave them for this address and token', () => {
    const url = 'http://127.0.0.1:41002';
    expect(founderMemberId([url], 'lab')).toBe(0x16640624a73df83cn);
    expect(founderClusterId([{ name: 'n1', peerUrls: [url] }], 'lab')).toBe(0x64dff783d9f10a49n);
  });

  test('the order of founders and addresses does not matter, the token does', () => {
    const founders = [
      { name: 'a', peerUrls: ['http://h:1', 'http://h:2'] },
      { name: 'b', peerUrls: ['http://h:3'] },
    ];
    const turned = [...founders]
      .reverse()
      .map((founder) => ({ ...founder, peerUrls: [...founder.peerUrls].reverse() }));
    expect(founderClusterId(turned, 't')).toBe(founderClusterId(founders, 't'));
    expect(founderClusterId(founders, 'u')).not.toBe(founderClusterId(founders, 't'));
  });
});
