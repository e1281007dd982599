/**
 * Bundles one entry into one ESM file that Node runs without node_modules.
 *
 *   scripts/node scripts/bundle.ts ENTRY OUTFILE
 */
import { chmodSync, copyFileSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');

/** Bundles `entry` into `outfile`, with a source map and the keeper (a script of its own) beside it. Returns the size of the bundle. Unit: bytes. */
export async function bundle(entry: string, outfile: string): Promise<number> {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    sourcemap: 'linked',
    legalComments: 'linked',
    // Whitespace and syntax only: names of classes are names of errors.
    minifySyntax: true,
    minifyWhitespace: true,
    define: { BUILD_VERSION: JSON.stringify(manifest.version) },
    // CommonJS packages inside an ESM bundle ask for Node's own modules by require().
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    // Never loaded: validators and a test client of fastify, definitions of grpc's own services.
    external: [
      '@fastify/ajv-compiler',
      '@fastify/fast-json-stringify-compiler',
      'light-my-request',
      '@grpc/proto-loader',
    ],
    absWorkingDir: root,
    logLevel: 'warning',
  });
  // V8 keeps the whole source, and in two bytes a character if a single one is no ASCII.
  if (readFileSync(outfile).some((byte) => byte > 127)) throw new Error(`${outfile} is not plain ASCII`);
  const keeper = join(dirname(outfile), 'keeper.sh');
  copyFileSync(join(root, 'src/supervisor/keeper.sh'), keeper);
  chmodSync(keeper, 0o755);
  return statSync(outfile).size;
}

if (import.meta.main) {
  const [entry, outfile] = process.argv.slice(2);
  if (entry === undefined || outfile === undefined) {
    console.error('usage: scripts/node scripts/bundle.ts ENTRY OUTFILE');
    process.exit(2);
  }
  const bytes = await bundle(resolve(entry), resolve(outfile));
  console.log(`bundle: ${outfile}, ${Math.round(bytes / 1024)} KiB`);
}
