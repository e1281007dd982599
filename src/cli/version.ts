import { readFileSync } from 'node:fs';

/** Version of this program, as package.json has it. A bundle has the number built in. */
export const version = readVersion();

function readVersion(): string {
  // esbuild replaces this name by a text.
  if (typeof BUILD_VERSION === 'string') return BUILD_VERSION;
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return typeof manifest === 'object' && manifest !== null ? String(Reflect.get(manifest, 'version')) : '';
}

declare const BUILD_VERSION: string | undefined;
