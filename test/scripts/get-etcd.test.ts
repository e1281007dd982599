// Goal: a machine that has Go and no apt gets an etcd, the newest release of a line is looked for again, and a binary of any
// name counts.
// Method: the real script with an empty cache and a PATH of its own: the few tools it needs, and a go that "builds" at once.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const script = join(import.meta.dirname, '../../scripts/get-etcd');

test('where only Go is there, --one builds the newest line and no other', () => {
  const machine = makeMachine({ go: ['v3.6.16', 'v3.7.3'] });
  const { status, stdout, stderr } = machine.run('--one');
  expect({ status, versions: versionsIn(stdout) }, stderr).toEqual({ status: 0, versions: ['3.7.3'] });
});

test('where nothing is there, the last line names every way', () => {
  const { status, stderr } = makeMachine({ go: undefined }).run('--one');
  expect(status).toBe(1);
  expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/install.*Go.*ETCD_BIN=/i);
});

test('a newer release of a line that is here already is found, once a day', () => {
  const machine = makeMachine({ go: ['v3.6.16', 'v3.7.3'] });
  machine.run('--one');
  machine.release('v3.7.4', 'v3.7.5-rc.0');
  expect(versionsIn(machine.run('').stdout)).not.toContain('3.7.4'); // asked a moment ago
  machine.aDayPasses();
  const { stdout, stderr } = machine.run('');
  expect(versionsIn(stdout), stderr).toEqual(['3.6.16', '3.7.3', '3.7.4']);
  expect(stderr).toContain('now carries 3.7.4');
});

test('a release that was found stays the newest where Go cannot say', () => {
  const machine = makeMachine({ go: ['v3.6.17', 'v3.7.4'] });
  machine.run('');
  machine.loseGo();
  machine.aDayPasses();
  const { stdout, stderr } = machine.run('');
  expect(versionsIn(stdout)).toEqual(['3.6.17', '3.7.4']);
  expect(stderr).not.toContain('no Go here');
});

test('ETCD_BIN may have any name', () => {
  const machine = makeMachine({ go: undefined });
  const binary = join(machine.root, 'etcd-3.5');
  writeScript(binary, 'echo "etcd Version: 3.5.30"');
  expect(machine.run('--list', { ETCD_BIN: binary }).stdout).toBe(`3.5.30\t${machine.root}\t${binary}\n`);
});

test('the list names each binary in the cache', () => {
  const machine = makeMachine({ go: ['v3.7.3'] });
  const binary = join(machine.cache, '3.7.3/etcd');
  expect(machine.run('--one').stdout).toBe(`3.7.3\t${join(machine.cache, '3.7.3')}\t${binary}\n`);
});

function makeMachine({ go }: { readonly go: readonly string[] | undefined }) {
  const root = mkdtempSync(join(tmpdir(), 'get-etcd-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [path, cache] = [join(root, 'bin'), join(root, 'cache/etcd-node-agent/etcd')];
  mkdirSync(path);
  for (const tool of tools)
    symlinkSync(['/usr/bin', '/bin'].map((in_) => join(in_, tool)).find(existsSync) ?? tool, join(path, tool));
  const releases = [...(go ?? [])];
  const writeGo = () => writeScript(join(path, 'go'), fakeGo(releases));
  if (go !== undefined) writeGo();
  return {
    root,
    cache,
    release(...versions: readonly string[]) {
      releases.push(...versions);
      writeGo();
    },
    loseGo: () => rmSync(join(path, 'go')),
    aDayPasses() {
      const yesterday = new Date(Date.now() - 25 * 3_600_000);
      for (const line of ['3.6', '3.7']) utimesSync(join(cache, `.newest-${line}`), yesterday, yesterday);
    },
    run(mode: string, environment: Readonly<Record<string, string>> = {}) {
      const env = { PATH: path, HOME: root, XDG_CACHE_HOME: join(root, 'cache'), TMPDIR: root, ...environment };
      return spawnSync('/bin/bash', [script, ...(mode === '' ? [] : [mode])], { env, encoding: 'utf8' });
    },
  };
}

/** `go get MODULE@VERSION` remembers the version, `go build -o FILE` makes a program that reports it. */
function fakeGo(releases: readonly string[]): string {
  return `case $1 in
list) echo go.etcd.io/etcd/server/v3 ${releases.join(' ')} ;;
get) for last; do :; done; echo "\${last##*@v}" >version ;;
build) while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\\necho "etcd Version: %s"\\n' "$(cat version)" >"$2"; chmod +x "$2" ;;
esac`;
}

function writeScript(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

function versionsIn(listing: string): readonly string[] {
  return listing.split('\n').flatMap((line) => line.split('\t')[0] || []);
}

const tools =
  'basename cat chmod cp cut date dirname find flock grep head mkdir mktemp mv rm sed sort tail timeout touch tr'.split(
    ' ',
  );
