import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { AgentError, errnoOf } from '../base/errors.ts';

/** Paths of PEM files, absolute. */
export interface TlsFiles {
  /** The leaf, followed by its intermediates if there are any. Together with {@link keyFile}, or neither. */
  readonly certFile?: string;
  readonly keyFile?: string;
  /** One or more authorities that the other side's certificate must come from. */
  readonly caFile: string;
}

/** What the files held when they were read. */
export interface TlsMaterial {
  readonly ca: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** When the leaf of {@link cert} ends to be valid. */
  readonly notAfter?: Date;
}

/** A file that TLS needs is missing, unreadable or not what it should be. Nothing was dialled or started. */
export class TlsFileError extends AgentError {
  readonly code = 'TLS_FILE';
  readonly file: string;
  /** What is wrong with it, without its name. */
  readonly problem: string;

  constructor(file: string, problem: string, options: { readonly cause?: unknown; readonly hint?: string } = {}) {
    super(`TLS file ${file}: ${problem}`, options);
    this.file = file;
    this.problem = problem;
  }
}

/**
 * Reads certificate, key and authorities, and makes sure that they parse and that key and certificate belong together:
 * two files that are replaced one after the other can be seen half-done. Throws {@link TlsFileError}.
 */
export function readTlsFiles(files: TlsFiles): TlsMaterial {
  const ca = readTlsFile(files.caFile);
  certificatesIn(files.caFile, ca);
  if (files.certFile === undefined && files.keyFile === undefined) return { ca };
  if (files.certFile === undefined || files.keyFile === undefined) {
    throw new TlsFileError(files.certFile ?? files.keyFile ?? '', 'a certificate and its key are needed together', {
      hint: 'Name both files, or neither.',
    });
  }
  const cert = readTlsFile(files.certFile);
  const key = readTlsFile(files.keyFile);
  const [leaf] = certificatesIn(files.certFile, cert);
  if (!leaf.checkPrivateKey(keyIn(files.keyFile, key))) {
    throw new TlsFileError(files.keyFile, `the key does not belong to the certificate in ${files.certFile}`, {
      hint: 'Put the key there that the certificate was issued for.',
    });
  }
  return { ca, cert, key, notAfter: leaf.validToDate };
}

/** The content of one PEM file. Throws {@link TlsFileError} that says why it cannot be read. */
export function readTlsFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new TlsFileError(file, unreadable[errnoOf(cause) ?? ''] ?? 'cannot be read', {
      cause,
      hint: 'Put the file there, readable for the user that reads it, or name the right one in the configuration.',
    });
  }
}

/** Every certificate of a PEM file, in its order; at least one. Throws {@link TlsFileError} if one does not parse. */
export function certificatesIn(file: string, pem: Buffer): [X509Certificate, ...X509Certificate[]] {
  const blocks = pem.toString('latin1').match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    const [first, ...rest] = blocks.map((block) => new X509Certificate(block));
    if (first !== undefined) return [first, ...rest];
  } catch (cause) {
    throw new TlsFileError(file, 'holds a certificate that cannot be parsed', { cause, hint: pemHint });
  }
  throw new TlsFileError(file, 'holds no certificate in PEM form', { hint: pemHint });
}

/** The private key of a PEM file. Throws {@link TlsFileError}; its text never holds the key. */
export function keyIn(file: string, pem: Buffer): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const locked = pem.includes('ENCRYPTED');
    throw new TlsFileError(file, locked ? 'holds a key with a passphrase' : 'holds no private key in PEM form', {
      cause,
      hint: locked ? 'etcd cannot ask for a passphrase: store the key without one, mode 0600.' : pemHint,
    });
  }
}

const pemHint =
  'The file must begin with a PEM line such as "-----BEGIN CERTIFICATE-----" or "-----BEGIN PRIVATE KEY-----".';

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'may not be read (permission denied)',
  EPERM: 'may not be read (permission denied)',
  EISDIR: 'is a directory',
};
