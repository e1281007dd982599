import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EtcdBinary, newestBinary } from './etcd-binaries.ts';

/** What a stub does once it is started as etcd; asked for `--version` it always answers like etcd. */
export type StubBehaviour =
  /** Prints to its log and ends. */
  | { readonly kind: 'exit'; readonly code: number; readonly lines?: readonly string[] }
  /** A Go panic as etcd prints one, then code 2. */
  | { readonly kind: 'panic'; readonly message: string }
  /** Its metrics side listens and answers everything with 503; it never becomes ready. */
  | { readonly kind: 'answer503' }
  /** Lives, says nothing, and does not care about TERM. */
  | { readonly kind: 'ignoreTerm' }
  /** Becomes the real etcd after a while. Unit: s. */
  | { readonly kind: 'slow'; readonly seconds: number }
  /** Writes to its log as fast as it can, this much, and lives on. Unit: MiB. */
  | { readonly kind: 'flood'; readonly mib: number };

/**
 * The place of an etcd binary whose content a test can change while the agent looks on: the real one at first. Its
 * directory is removed with it.
 */
export class EtcdPlace {
  readonly real: EtcdBinary;
  readonly #directory: string;

  constructor(real: EtcdBinary = newestBinary()) {
    this.real = real;
    this.#directory = mkdtempSync(join(tmpdir(), 'etcd-place-'));
    this.useReal();
  }

  /** The path that a configuration names. */
  get path(): string {
    return join(this.#directory, 'etcd');
  }

  /** What a fleet is given as its binary. */
  get binary(): EtcdBinary {
    return { version: this.real.version, directory: this.#directory, etcd: this.path };
  }

  /** Puts a real etcd there; by default the one it began with. */
  useReal(binary: EtcdBinary = this.real): void {
    const link = `${this.path}.new`;
    symlinkSync(binary.etcd, link);
    renameSync(link, this.path);
  }

  useStub(behaviour: StubBehaviour): void {
    this.useContent(stubScript(behaviour, this.real));
  }

  /** Any content, executable or not. */
  useContent(content: string | Uint8Array, mode = 0o755): void {
    writeFileSync(`${this.path}.new`, content);
    chmodSync(`${this.path}.new`, mode);
    renameSync(`${this.path}.new`, this.path);
  }

  /** A link to itself. */
  useLoop(): void {
    this.remove();
    symlinkSync(this.path, this.path);
  }

  /** Nothing is there any more. */
  remove(): void {
    rmSync(this.path, { force: true });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function stubScript(behaviour: StubBehaviour, real: EtcdBinary): string {
  return [
    '#!/bin/sh',
    `[ "$1" = --version ] && { echo 'etcd Version: ${real.version}'; exit 0; }`,
    ...bodyOf(behaviour, real),
    '',
  ].join('\n');
}

function bodyOf(behaviour: StubBehaviour, real: EtcdBinary): readonly string[] {
  switch (behaviour.kind) {
    case 'exit':
      return [...printed(behaviour.lines ?? []), `exit ${behaviour.code}`];
    case 'panic':
      return [
        ...printed([
          `panic: ${behaviour.message}`,
          '',
          'goroutine 1 [running]:',
          'main.main()',
          '\t/src/main.go:12 +0x1d',
        ]),
        'exit 2',
      ];
    case 'answer503':
      return [`exec '${process.execPath}' -e '${answer503}' -- "$@"`];
    case 'ignoreTerm':
      return ["trap '' TERM", 'while :; do sleep 0.2; done'];
    case 'slow':
      // The sleep must not keep the descriptors of the keeper: an end would be noticed late.
      return [`sleep ${behaviour.seconds}`, `exec '${real.etcd}' "$@"`];
    case 'flood':
      return [
        `line='{"level":"info","msg":"${'flood '.repeat(40)}"}'`,
        `yes "$line" | head -c ${behaviour.mib * 1024 * 1024}`,
        'echo; while :; do sleep 0.2; done',
      ];
  }
}

function printed(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ["cat >&2 <<'END OF STUB'", ...lines, 'END OF STUB'];
}

const answer503 = [
  'const urls = process.argv.filter((word) => word.startsWith("--listen-metrics-urls="));',
  'const { hostname, port } = new URL(urls[0].split("=")[1]);',
  'require("node:http").createServer((request, answer) => { answer.statusCode = 503; answer.end("not now"); }).listen(port, hostname);',
].join(' ');
