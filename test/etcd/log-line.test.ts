// Goal: no line of any etcd is lost or throws, and each format is told apart.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { listField, parseLogLine, textField } from '../../src/etcd/log-line.ts';
import { readSamples } from './samples.ts';

describe('formats', () => {
  test('zap JSON of 3.5 and later, with its own fields', () => {
    const line = parseLogLine(
      '{"level":"info","ts":"2026-12-01T04:13:36.863587Z","caller":"membership/cluster.go:473","msg":"removed member","removed-remote-peer-id":"e1","removed-remote-peer-urls":["http://h:1"]}\n',
    );
    expect(line).toMatchObject({
      format: 'zap',
      level: 'info',
      message: 'removed member',
      source: 'membership/cluster.go:473',
    });
    expect(line.at).toBe('2026-12-01T04:13:36.863587Z');
    expect(textField(line, 'removed-remote-peer-id')).toBe('e1');
    expect(listField(line, 'removed-remote-peer-urls')).toEqual(['http://h:1']);
  });

  test('capnslog text, which 3.4 prints before its logger exists', () => {
    const line = parseLogLine(
      "2026-12-01 04:19:37.809306 E | etcdmain: error verifying flags, 'foo' is not a valid flag.",
    );
    expect(line).toMatchObject({ format: 'capnslog', level: 'error', source: 'etcdmain' });
    expect(line.message).toBe("error verifying flags, 'foo' is not a valid flag.");
  });

  test('lines of the gRPC library and a bracketed warning', () => {
    const grpc = parseLogLine('WARNING: 2026/12/01 04:25:35 [core] grpc: addrConn.createTransport failed');
    expect(grpc).toMatchObject({
      format: 'grpc',
      level: 'warn',
      message: '[core] grpc: addrConn.createTransport failed',
    });
    const old = parseLogLine("[WARNING] Deprecated '--logger=capnslog' flag is set");
    expect(old).toMatchObject({ format: 'grpc', level: 'warn' });
  });

  test.each([
    ['dpanic', 'error'],
    ['panic', 'fatal'],
    ['fatal', 'fatal'],
    ['warn', 'warn'],
    ['somethingnew', 'none'],
  ])('level %s counts as %s', (etcdLevel, level) => {
    expect(parseLogLine(`{"level":"${etcdLevel}","msg":"m"}`)).toMatchObject({ level, etcdLevel });
  });
});

describe('damage', () => {
  const whole = '{"level":"warn","ts":"2026-12-01T04:13:36Z","caller":"a.go:1","msg":"server error","error":"gone"}';

  test('a cut line gives what is left of it', () => {
    const line = parseLogLine(whole.slice(0, -6));
    expect(line).toMatchObject({ format: 'torn', level: 'warn', message: 'server error', raw: whole.slice(0, -6) });
    expect(textField(line, 'error')).toBeUndefined();
  });

  test('a line without its head is still read', () => {
    expect(parseLogLine(whole.slice(20))).toMatchObject({ format: 'torn', level: 'none', message: 'server error' });
  });

  test('the hole that the log file has in its middle reads as NULs and is dropped', () => {
    expect(parseLogLine(`${'\0'.repeat(5000)}${whole}`)).toMatchObject({ format: 'zap', message: 'server error' });
  });

  test('binary bytes become text', () => {
    const line = parseLogLine(Uint8Array.of(0xff, 0xfe, 0x80, 0x41, 0x0a));
    expect(line).toMatchObject({ format: 'text', message: '\ufffd\ufffd\ufffdA' });
  });

  test('a field named like a method of Object is no field', () => {
    expect(textField(parseLogLine(whole), 'constructor')).toBeUndefined();
    expect(parseLogLine('{"level":"info","__proto__":{"x":1},"msg":"m"}')).toMatchObject({ message: 'm' });
  });

  test('any cut of any line is read without throwing, and all of it is kept', () => {
    const lines = readSamples().flatMap((sample) => sample.lines);
    fc.assert(
      fc.property(fc.constantFrom(...lines), fc.nat(3000), fc.nat(3000), (line, from, length) => {
        const cut = line.slice(from % (line.length + 1)).slice(0, length);
        expect(parseLogLine(cut).raw).toBe(cut);
      }),
      { numRuns: 3000 },
    );
  });

  test('any bytes are read without throwing', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => parseLogLine(bytes).raw !== undefined));
  });
});
