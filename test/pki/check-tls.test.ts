// Goal: every fault of a TLS file that would end etcd, or keep everybody out, is named with its file before a start.
// Method: certificates with one fault each, made by the test CA.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkTlsFiles, type TlsUse } from '../../src/pki/check-tls.ts';
import { readTlsFiles, TlsFileError } from '../../src/pki/tls-files.ts';
import { TestCa, type TestCertificate, type TestTlsFiles, writeTlsFiles } from '../support/test-ca.ts';

const hour = 3_600_000;
const ca = new TestCa({ commonName: 'house CA' });
let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pki-test-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function files(leaf: TestCertificate, caCert = ca.cert): TestTlsFiles {
  return writeTlsFiles(directory, 'n1', leaf, caCert);
}

function check(of: TestTlsFiles, more: Partial<TlsUse> = {}) {
  return checkTlsFiles({ files: of, as: 'peer', addresses: ['127.0.0.1'], nowMs: Date.now(), ...more });
}

const sound = () => ca.issue({ ips: ['127.0.0.1', '::1'], dns: ['localhost'] });

describe('TLS files before a start', () => {
  test('sound files give no finding', () => {
    expect(check(files(sound()), { addresses: ['127.0.0.1', '::1', 'localhost'] })).toEqual([]);
    expect(check(files(ca.issue({ usages: ['client'] })), { as: 'client', addresses: [] })).toEqual([]);
  });

  test.each(['certFile', 'keyFile', 'caFile'] as const)('a missing %s is named', (which) => {
    const of = files(sound());
    rmSync(of[which]);
    expect(check(of)).toEqual([
      {
        file: of[which],
        what: 'does not exist',
        remedy: expect.stringContaining('Put the file there'),
        severity: 'refuse',
      },
    ]);
  });

  test.each(['certFile', 'keyFile', 'caFile'] as const)(
    'a %s that is garbage, empty or a directory is named',
    (which) => {
      const of = files(sound());
      writeFileSync(of[which], 'garbage');
      expect(check(of)).toMatchObject([{ file: of[which], what: expect.stringMatching(/^holds no .* in PEM form$/) }]);
      writeFileSync(of[which], '');
      expect(check(of)).toMatchObject([{ file: of[which] }]);
      rmSync(of[which]);
      mkdirSync(of[which]);
      expect(check(of)).toMatchObject([{ file: of[which], what: 'is a directory' }]);
    },
  );

  test('a certificate that is cut short is named', () => {
    const of = files(sound());
    const cut = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
    writeFileSync(of.certFile, cut);
    expect(check(of)).toMatchObject([{ file: of.certFile, what: 'holds a certificate that cannot be parsed' }]);
  });

  test('several faults are all named, each with its own file', () => {
    const of = files(ca.issue({ notAfter: new Date(Date.now() - hour), ips: ['10.0.0.1'] }));
    rmSync(of.caFile);
    writeFileSync(of.keyFile, ca.issue().key);
    const found = check(of).map(({ file, what }) => [file, what.replace(/\d{4}-.*/, '…')]);
    expect(found).toEqual([
      [of.caFile, 'does not exist'],
      [of.certFile, 'the certificate expired at …'],
      [of.certFile, 'the certificate does not name 127.0.0.1 (alternative names: IP Address:10.0.0.1)'],
      [of.keyFile, `the key does not belong to the certificate in ${of.certFile}`],
    ]);
  });

  test('X04 not valid any more, and not valid yet, are told apart and name both times', () => {
    const now = Date.UTC(2030, 0, 1);
    const of = files(
      ca.issue({ ips: ['127.0.0.1'], notBefore: new Date(now - 2 * hour), notAfter: new Date(now - hour) }),
    );
    const [expired] = check(of, { nowMs: now });
    expect(expired?.what).toMatch(
      /expired at 2029-12-31T23:00:00.000Z; this machine's clock says 2030-01-01T00:00:00.000Z/,
    );
    const [early] = check(files(sound()), { nowMs: Date.now() - 48 * hour });
    expect(early?.what).toMatch(/is not valid before/);
  });

  test('a certificate of another authority, and of one with the same name, is not believed', () => {
    const other = new TestCa({ commonName: 'house CA' });
    const [finding] = check(files(other.issue({ ips: ['127.0.0.1'] })));
    expect(finding).toMatchObject({ what: expect.stringContaining('issued by "CN=house CA", which no authority') });
    const leafAsIssuer = ca.issue({ commonName: 'house CA' }); // a leaf is no authority, whatever its name
    expect(check(files(sound(), leafAsIssuer.cert))).toMatchObject([{ what: expect.stringContaining('no authority') }]);
  });

  test('an authority that has expired is named as such, in its own file', () => {
    const old = new TestCa({ commonName: 'old CA', notAfter: new Date(Date.now() - hour) });
    const of = files(old.issue({ ips: ['127.0.0.1'] }), old.cert);
    expect(check(of)).toMatchObject([
      { file: of.caFile, what: expect.stringMatching(/^the authority "CN=old CA" expired at/) },
    ]);
    expect(check(files(sound(), `${old.cert}${ca.cert}`))).toEqual([]); // beside a good one it does no harm
  });

  test('a certificate for the wrong use is named; that etcd cannot dial itself with it is a warning only', () => {
    const use = (usages: readonly ('server' | 'client')[]) => files(ca.issue({ ips: ['127.0.0.1'], usages }));
    expect(check(use(['server']), { as: 'server' })).toMatchObject([
      { severity: 'warn', what: expect.stringContaining('not for clientAuth') },
    ]);
    expect(check(use(['client']), { as: 'server' })).toMatchObject([
      { severity: 'refuse', what: expect.stringContaining('not for serverAuth') },
    ]);
    expect(check(use(['server']), { as: 'peer' })).toMatchObject([{ severity: 'refuse' }]);
    expect(check(use(['server']), { as: 'client' })).toMatchObject([{ severity: 'refuse' }]);
    expect(check(use([]), { as: 'peer' })).toEqual([]);
  });

  test('a peer certificate with DNS names only is warned about', () => {
    const of = files(ca.issue({ dns: ['localhost'] }));
    expect(check(of, { addresses: ['localhost'] })).toMatchObject([{ severity: 'warn' }]);
  });

  test('X16 a private key that everybody may read is warned about', () => {
    const of = files(sound());
    chmodSync(of.keyFile, 0o644);
    expect(check(of)).toMatchObject([{ file: of.keyFile, severity: 'warn', remedy: `chmod 0600 ${of.keyFile}` }]);
  });

  test('files that only we may read, and not the user that etcd runs as, are named', () => {
    const of = files(sound());
    const reader = { uid: 64_999, gids: [64_999] };
    const found = check(of, { reader });
    expect(found.map(({ file }) => file)).toEqual([of.certFile, of.keyFile, of.caFile]);
    expect(found[0]?.what).toBe('may not be read by uid 64999, which etcd runs as');
    expect(check(of, { reader: { uid: 0, gids: [0] } })).toEqual([]);
  });
});

describe('reading TLS files for our own connections', () => {
  test('what is read fits together', () => {
    const of = files(sound());
    const material = readTlsFiles(of);
    expect(material.cert?.toString()).toContain('BEGIN CERTIFICATE');
    expect(material.notAfter?.getTime()).toBeGreaterThan(Date.now());
    expect(readTlsFiles({ caFile: of.caFile })).not.toHaveProperty('key');
  });

  test('a half-replaced pair, half a configuration and a locked key are refused, without a word of the key', () => {
    const of = files(sound());
    writeFileSync(of.certFile, sound().cert);
    expect(() => readTlsFiles(of)).toThrow(/the key does not belong to the certificate/);
    expect(() => readTlsFiles({ caFile: of.caFile, certFile: of.certFile })).toThrow(/needed together/);
    writeFileSync(of.keyFile, '-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n');
    expect(() => readTlsFiles(of)).toThrow(/holds a key with a passphrase/);
    const error = new TlsFileError('/x', 'y');
    expect(error.message).toBe('TLS file /x: y');
  });
});
