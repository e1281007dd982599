// Goal: the curator's contract cannot be broken by accident: what a node or an operator of an older version relies on stays.
// Method: buf compares a copy of the .proto files, each time with one change in it, with the image that is committed.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { file_curator_v1_error } from '../../proto/gen/curator/v1/error_pb.ts';

const root = join(import.meta.dirname, '../..');

describe('the contract', () => {
  test('as it is breaks nothing', async () => {
    expect(await breaking(() => {})).toBe('');
  });

  test.each<[string, string, RegExp, string, RegExp]>([
    ['a removed field', 'node.proto', /^ {2}string ticket_id = 9;$/m, '', /"9" with name "ticket_id".*deleted/],
    ['a renamed field', 'node.proto', /ticket_id = 9/, 'ticket = 9', /changed name from "ticket_id" to "ticket"/],
    ['another type', 'report.proto', /uint64 seq = 1;/, 'string seq = 1;', /changed type from "uint64" to "string"/],
    ['a removed method', 'node_service.proto', /^ {2}rpc Heartbeat.*$/m, '', /"Heartbeat".*deleted/],
    ['a removed reason', 'error.proto', /^ {2}ERROR_REASON_BUSY = 63;$/m, '', /"63".*deleted/],
  ])('%s is found', async (_what, file, found, replacement, message) => {
    const said = await breaking((directory) => {
      const path = join(directory, 'proto/curator/v1', file);
      const text = readFileSync(path, 'utf8');
      expect(text).toMatch(found);
      writeFileSync(path, text.replace(found, replacement));
    });
    expect(said).toMatch(message);
  });

  test('a new field and a new reason break nothing', async () => {
    const said = await breaking((directory) => {
      const path = join(directory, 'proto/curator/v1/error.proto');
      const text = readFileSync(path, 'utf8')
        .replace('string leader_address = 4;', 'string leader_address = 4;\n  string more = 5;')
        .replace('ERROR_REASON_BUSY = 63;', 'ERROR_REASON_BUSY = 63;\n  ERROR_REASON_NEW = 64;');
      writeFileSync(path, text);
    });
    expect(said).toBe('');
  });
});

test('every reason of an error has a sentence that says what it means', () => {
  const [reasons] = file_curator_v1_error.enums;
  const text = readFileSync(join(root, 'proto/curator/v1/error.proto'), 'utf8');
  for (const { name, number } of reasons?.values ?? []) {
    if (number === 0) continue;
    expect(text, name).toMatch(new RegExp(`^ {2}// [A-Za-z].*\\.\\n {2}${name} = ${number};$`, 'm'));
  }
});

/** What buf says of the contract after a change to a copy of it. */
async function breaking(change: (directory: string) => void): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'contract-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  cpSync(join(root, 'buf.yaml'), join(directory, 'buf.yaml'));
  cpSync(join(root, 'proto'), join(directory, 'proto'), {
    recursive: true,
    filter: (path) => !path.endsWith('/proto/gen'),
  });
  change(directory);
  const buf = join(root, 'node_modules/@bufbuild/buf/bin/buf');
  return await new Promise((resolve) => {
    execFile(
      process.execPath,
      [buf, 'breaking', '--against', join(root, 'proto/curator.binpb')],
      { cwd: directory },
      (error, stdout, stderr) => resolve(error === null ? '' : `${stdout}${stderr}`),
    );
  });
}
