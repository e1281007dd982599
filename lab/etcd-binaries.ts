import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** One etcd version that is on this machine. */
export interface EtcdBinary {
  /** As the binary itself reports it: `3.5.30`. */
  readonly version: string;
  /** Where etcdctl and (from 3.5 on) etcdutl lie. */
  readonly directory: string;
  /** The program itself, of whatever name. */
  readonly etcd: string;
}

/** Every etcd that `scripts/get-etcd --list` knows of, oldest first. Throws if there is none. */
export function binaries(): readonly EtcdBinary[] {
  const script = join(import.meta.dirname, '../scripts/get-etcd');
  const listed = execFileSync(script, ['--list'], { encoding: 'utf8' });
  return listed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [version = '', directory = '', etcd = ''] = line.split('\t');
      return { version, directory, etcd };
    });
}

/** The newest etcd here. */
export function newestBinary(): EtcdBinary {
  const newest = binaries().at(-1);
  if (newest === undefined || !existsSync(newest.etcd)) throw new Error('no etcd here; run scripts/get-etcd');
  return newest;
}

/** `3.5.30` → [3, 5, 30] */
export function versionNumbers(version: string): readonly [number, number, number] {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return [major, minor, patch];
}
