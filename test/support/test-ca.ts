import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { bits, boolean, explicit, implicit, integer, octets, oid, sequence, set, time, utf8 } from './der.ts';

// Certificates for tests, made in this process: no openssl is needed, and every kind of wrong one can be made.

/** What a certificate says. */
export interface CertificateWish {
  readonly commonName?: string;
  /** Default: an hour ago. */
  readonly notBefore?: Date;
  /** Default: in a day. */
  readonly notAfter?: Date;
  readonly ips?: readonly string[];
  readonly dns?: readonly string[];
  readonly uris?: readonly string[];
  readonly isCa?: boolean;
  /** Extended key usages. Default both; an empty list leaves the extension out. */
  readonly usages?: readonly ('server' | 'client')[];
}

/** A certificate and its key, both PEM (PKCS #8, EC P-256). */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority of a test. */
export class TestCa {
  readonly #name: string;
  readonly #key: KeyObject;
  /** PEM. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;

  constructor(wish: CertificateWish = {}) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    this.#name = wish.commonName ?? `test CA ${randomBytes(4).toString('hex')}`;
    this.cert = certificate({ ...wish, commonName: this.#name, isCa: true }, publicKey, this.#name, privateKey);
    this.key = pem(privateKey);
  }

  /** A new leaf (or, with `isCa`, an intermediate) with a key of its own. */
  issue(wish: CertificateWish = {}): TestCertificate {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return { cert: certificate(wish, publicKey, this.#name, this.#key), key: pem(privateKey) };
  }
}

/** Paths of one certificate, its key and the CA that its other side must come from. */
export interface TestTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** Writes `NAME.crt`, `NAME.key` (0600) and `NAME-ca.crt` into `directory` and gives their paths back. */
export function writeTlsFiles(directory: string, name: string, leaf: TestCertificate, caCert: string): TestTlsFiles {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const files = {
    certFile: join(directory, `${name}.crt`),
    keyFile: join(directory, `${name}.key`),
    caFile: join(directory, `${name}-ca.crt`),
  };
  writeFileSync(files.certFile, leaf.cert);
  writeFileSync(files.keyFile, leaf.key, { mode: 0o600 });
  writeFileSync(files.caFile, caCert);
  return files;
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));

function certificate(wish: CertificateWish, publicKey: KeyObject, issuer: string, issuerKey: KeyObject): string {
  const hour = 3_600_000;
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    name(issuer),
    sequence(
      time(wish.notBefore ?? new Date(Date.now() - hour)),
      time(wish.notAfter ?? new Date(Date.now() + 24 * hour)),
    ),
    name(wish.commonName ?? 'test'),
    publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensions(wish))),
  );
  const signature = sign('sha256', body, issuerKey);
  const der = sequence(body, ecdsaWithSha256, bits(signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function extensions(wish: CertificateWish): Buffer[] {
  const isCa = wish.isCa ?? false;
  const list = [
    extension('2.5.29.19', true, isCa ? sequence(boolean(true)) : sequence()),
    // keyCertSign and cRLSign for a CA, digitalSignature for a leaf
    extension('2.5.29.15', true, isCa ? bits(Buffer.from([0x06]), 1) : bits(Buffer.from([0x80]), 7)),
  ];
  const usages = isCa ? [] : (wish.usages ?? ['server', 'client']);
  if (usages.length > 0) {
    const ids = usages.map((usage) => oid(usage === 'server' ? '1.3.6.1.5.5.7.3.1' : '1.3.6.1.5.5.7.3.2'));
    list.push(extension('2.5.29.37', false, sequence(...ids)));
  }
  const names = [
    ...(wish.dns ?? []).map((text) => implicit(2, Buffer.from(text))),
    ...(wish.uris ?? []).map((text) => implicit(6, Buffer.from(text))),
    ...(wish.ips ?? []).map((text) => implicit(7, ipBytes(text))),
  ];
  if (names.length > 0) list.push(extension('2.5.29.17', false, sequence(...names)));
  return list;
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function name(commonName: string): Buffer {
  return sequence(set(sequence(oid('2.5.4.3'), utf8(commonName))));
}

function ipBytes(text: string): Buffer {
  if (isIP(text) === 4) return Buffer.from(text.split('.').map(Number));
  if (isIP(text) !== 6) throw new Error(`${text} is no IP address`);
  const [head = '', tail = ''] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const words = [...left, ...zeros, ...right].map((word) => Number.parseInt(word, 16));
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
