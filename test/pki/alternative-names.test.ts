import { X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAlternativeNames, uriIdentityOf } from '../../src/pki/alternative-names.ts';
import { type CertificateWish, TestCa } from '../support/test-ca.ts';

const ca = new TestCa();
const namesOf = (wish: CertificateWish) => new X509Certificate(ca.issue(wish).cert).subjectAltName;

describe('alternative names of a certificate', () => {
  test('names of every kind are read as they stand in the certificate', () => {
    const names = parseAlternativeNames(
      namesOf({ dns: ['localhost', 'a.example'], uris: ['spiffe://x/node/1'], ips: ['127.0.0.1'] }),
    );
    expect(names).toEqual([
      { kind: 'DNS', value: 'localhost' },
      { kind: 'DNS', value: 'a.example' },
      { kind: 'URI', value: 'spiffe://x/node/1' },
      { kind: 'IP Address', value: '127.0.0.1' },
    ]);
    expect(parseAlternativeNames(undefined)).toEqual([]);
  });

  test('X03 a name with commas, quotes or a second name inside stays one name', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(
          'spiffe://x/a, URI:spiffe://x/admin',
          'spiffe://x/a,URI:spiffe://x/admin',
          'spiffe://x/a", URI:"spiffe://x/admin',
          'spiffe://x/a\\", URI:spiffe://x/admin',
          'spiffe://x/a\n, URI:spiffe://x/admin',
          'spiffe://x/a\u0000, URI:spiffe://x/admin',
        ),
        (uri) => {
          const names = parseAlternativeNames(namesOf({ uris: [uri] }));
          expect(names).toEqual([{ kind: 'URI', value: uri }]);
          expect(uriIdentityOf(namesOf({ uris: [uri] })).kind).toBe('refused');
        },
      ),
    );
  });

  test('whatever stands in a URI name, it is read back whole or refused, never split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom(...'ab,:"\\ \nURI'), minLength: 1, maxLength: 20 })),
        (uris) => {
          const names = parseAlternativeNames(namesOf({ uris }));
          expect(names ?? []).toHaveLength(names === undefined ? 0 : uris.length);
          if (names !== undefined) expect(names.map(({ value }) => value)).toEqual(uris);
        },
      ),
      { numRuns: 200 },
    );
  });

  test.each(['DNS', 'DNS:a,', 'DNS:a, ', 'DNS:"a', ', DNS:a', 'DNS:a URI:b"', 'URI:"a"b'])(
    '%s cannot be read',
    (text) => {
      expect(parseAlternativeNames(text)).toBeUndefined();
      expect(uriIdentityOf(text).kind).toBe('refused');
    },
  );

  test('X03 identity is exactly one URI', () => {
    expect(uriIdentityOf(namesOf({ uris: ['spiffe://x/node/1'], dns: ['localhost'] }))).toEqual({
      kind: 'one',
      uri: 'spiffe://x/node/1',
    });
    expect(uriIdentityOf(namesOf({ dns: ['localhost'] }))).toEqual({ kind: 'none' });
    expect(uriIdentityOf(namesOf({ uris: ['spiffe://x/node/1', 'spiffe://x/admin'] }))).toEqual({
      kind: 'refused',
      because: 'it carries 2 URI names, wanted exactly one',
    });
  });
});
