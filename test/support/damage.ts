import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeRecord } from '../../src/base/record.ts';

/** What can become of a file on disk. `directory` stands for every file that cannot be read: no mode stops root. */
export const damages = ['bit flip', 'truncated', 'empty', 'NULs', 'newer version', 'directory'] as const;
export type Damage = (typeof damages)[number];

/** Damages one file; returns how to put it back as it was. */
export function damageFile(path: string, damage: Damage): () => void {
  const before = readFileSync(path);
  if (damage === 'directory') {
    rmSync(path);
    mkdirSync(path);
  } else {
    writeFileSync(path, damaged(before, damage));
  }
  return () => {
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, before, { mode: 0o600 });
  };
}

/** @pure The bytes of a record after that. */
export function damaged(bytes: Buffer, damage: Exclude<Damage, 'directory'>): Buffer {
  switch (damage) {
    case 'bit flip': {
      const flipped = Buffer.from(bytes);
      const at = Math.floor(bytes.length / 2);
      flipped[at] = (flipped[at] ?? 0) ^ 0x04;
      return flipped;
    }
    case 'truncated':
      return bytes.subarray(0, Math.floor(bytes.length / 2));
    case 'empty':
      return Buffer.alloc(0);
    case 'NULs':
      return Buffer.alloc(bytes.length);
    case 'newer version':
      return Buffer.from(encodeRecord({ a: 'format of tomorrow' }, 2));
  }
}

/** Every file below a directory with its content; a directory in a file's place is a name with a slash. */
export function contentsBelow(directory: string): Readonly<Record<string, string>> {
  const contents: Record<string, string> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) contents[`${name}/`] = '';
    else contents[name] = readFileSync(path, 'base64');
  }
  return contents;
}
