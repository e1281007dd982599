/** @pure file: the two lines that keeper.sh writes. */

import type { ProcessRecord } from './process.ts';

/** How a child ended. A shell reports signal N as 128 + N, so a code above 128 is read as a signal. */
export type Exit =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: number; readonly name: string }
  | { readonly kind: 'unknown'; readonly why: string };

/** A keeper's record as found. `blank` means prepared and not written yet; `damaged` is torn or changed. */
export type KeeperReading<T> =
  | { readonly kind: 'blank' }
  | { readonly kind: 'damaged' }
  | { readonly kind: 'ok'; readonly value: T };

/** Size of a prepared record file. Unit: bytes. One block, written, so that the keeper needs no free space. */
export const recordFileBytes = 4096;

/** @pure What a prepared, not yet written record file contains. */
export function blankRecordFile(): string {
  return `${' '.repeat(recordFileBytes - 1)}\n`;
}

/** @pure Reads `pid 1 PID TICKS BOOT DEVICE:INODE CHECKSUM LENGTH`; the checksum covers what stands before it and a newline. */
export function readPidRecord(content: string): KeeperReading<ProcessRecord> {
  return read(
    content,
    /^(?<body>pid 1 (?<pid>\d+) (?<ticks>\d+) (?<boot>[0-9a-f-]{36}) (?<binary>\d+:\d+|-)) (?<sum>\d+) \d+$/,
    (fields) => ({
      pid: Number(fields['pid']),
      startTicks: fields['ticks'] ?? '',
      bootId: fields['boot'] ?? '',
      binary: fields['binary'] === '-' ? undefined : fields['binary'],
    }),
  );
}

/** @pure Reads `exit 1 STATUS CHECKSUM LENGTH`, from the file or from the fifo. */
export function readExitRecord(content: string): KeeperReading<Exit> {
  return read(content, /^(?<body>exit 1 (?<status>\d+)) (?<sum>\d+) \d+$/, (fields) =>
    exitOfStatus(Number(fields['status'])),
  );
}

/** @pure A shell's `$?` as an exit. */
export function exitOfStatus(status: number): Exit {
  if (status <= 128) return { kind: 'code', code: status };
  return signalled(status - 128);
}

/** @pure An end by signal number `signal`, with its name. */
export function signalled(signal: number): Exit {
  return { kind: 'signal', signal, name: signalNames[signal] ?? `signal ${signal}` };
}

/** @pure The checksum that POSIX `cksum` prints: CRC of polynomial 04C11DB7, the length appended, inverted. */
export function cksum(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = step(crc, byte);
  for (let length = bytes.length; length > 0; length = Math.floor(length / 256)) crc = step(crc, length & 0xff);
  return ~crc >>> 0;
}

/** One line about an exit, for logs and messages. */
export function describeExit(exit: Exit): string {
  switch (exit.kind) {
    case 'code':
      return `exit code ${exit.code}`;
    case 'signal':
      return `${exit.name} (signal ${exit.signal})`;
    case 'unknown':
      return `unknown: ${exit.why}`;
  }
}

type Fields = Readonly<Record<string, string | undefined>>;

function read<T>(content: string, pattern: RegExp, value: (fields: Fields) => T): KeeperReading<T> {
  const line = content.split('\n', 1)[0]?.trimEnd() ?? '';
  if (line === '') return { kind: 'blank' };
  const fields: Fields | undefined = pattern.exec(line)?.groups;
  if (fields === undefined) return { kind: 'damaged' };
  if (cksum(new TextEncoder().encode(`${fields['body']}\n`)) !== Number(fields['sum'])) return { kind: 'damaged' };
  return { kind: 'ok', value: value(fields) };
}

function step(crc: number, byte: number): number {
  let value = crc ^ (byte << 24);
  for (let bit = 0; bit < 8; bit++) value = value & 0x80000000 ? (value << 1) ^ 0x04c11db7 : value << 1;
  return value;
}

// Linux, x86-64 and arm64 (signal(7)).
const signalNames: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  5: 'SIGTRAP',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  10: 'SIGUSR1',
  11: 'SIGSEGV',
  12: 'SIGUSR2',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
  31: 'SIGSYS',
};
