import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { chainProblems } from './chain.ts';
import { type FileReader, mayRead, othersMayRead } from './file-access.ts';
import { certificatesIn, keyIn, readTlsFile, TlsFileError, type TlsFiles } from './tls-files.ts';

/** What one set of TLS files is to be good for. */
export interface TlsUse {
  readonly files: Required<TlsFiles>;
  /**
   * `server`: etcd's client side, also its metrics side. `peer`: between members, in both directions. `client`: a caller.
   */
  readonly as: 'server' | 'peer' | 'client';
  /** IP addresses and names under which this side is reached. Empty for a client. */
  readonly addresses: readonly string[];
  /** Wall time against which validity is judged. Unit: ms since 1970. */
  readonly nowMs: number;
  /** The user that etcd runs as, if it is another than ours. Left out: only our own reading is checked. */
  readonly reader?: FileReader;
}

/** Something about one file that an operator must know. */
export interface TlsFinding {
  readonly file: string;
  /** What is wrong, in words. */
  readonly what: string;
  /** What helps. */
  readonly remedy: string;
  /** `refuse`: etcd would die of it or nobody could connect. `warn`: it works, but should not stay so. */
  readonly severity: 'refuse' | 'warn';
}

/**
 * Looks at the files before etcd is started with them: etcd joins its cluster first and dies of a missing file afterwards.
 * Gives every finding, not the first alone; an empty list means that nothing is wrong. Reads files, changes nothing.
 */
export function checkTlsFiles(use: TlsUse): readonly TlsFinding[] {
  const findings: TlsFinding[] = [];
  const { certFile, keyFile, caFile } = use.files;
  const chain = attempt(findings, () => certificatesIn(certFile, readTlsFile(certFile)));
  const key = attempt(findings, () => keyIn(keyFile, readTlsFile(keyFile)));
  const authorities = attempt(findings, () => certificatesIn(caFile, readTlsFile(caFile)));
  if (chain !== undefined) {
    const [leaf, ...intermediates] = chain;
    findings.push(
      ...validityFindings(certFile, leaf, use.nowMs),
      ...nameFindings(use, leaf),
      ...usageFindings(use, leaf),
    );
    if (key !== undefined && !leaf.checkPrivateKey(key)) {
      findings.push(refuse(keyFile, `the key does not belong to the certificate in ${certFile}`, matchingKey));
    }
    if (authorities !== undefined) {
      for (const problem of chainProblems({ leaf, intermediates, authorities, nowMs: use.nowMs })) {
        findings.push(refuse(problem.of === 'authority' ? caFile : certFile, problem.what, problem.remedy));
      }
    }
  }
  for (const file of new Set([certFile, keyFile, caFile])) findings.push(...accessFindings(use, file));
  return findings;
}

function validityFindings(file: string, leaf: X509Certificate, nowMs: number): TlsFinding[] {
  const until = leaf.validToDate.getTime();
  const from = leaf.validFromDate.getTime();
  const now = new Date(nowMs).toISOString();
  if (until <= nowMs) {
    const what = `the certificate expired at ${leaf.validToDate.toISOString()}; this machine's clock says ${now}`;
    return [refuse(file, what, 'Renew the certificate; if the clock is wrong, set it first.')];
  }
  if (from > nowMs) {
    const what = `the certificate is not valid before ${leaf.validFromDate.toISOString()}; this machine's clock says ${now}`;
    return [refuse(file, what, 'Set the clock; if it is right, wait or issue the certificate anew.')];
  }
  return [];
}

function nameFindings(use: TlsUse, leaf: X509Certificate): TlsFinding[] {
  const file = use.files.certFile;
  const findings: TlsFinding[] = [];
  for (const address of use.addresses) {
    const covered = isIP(address) === 0 ? leaf.checkHost(address, { subject: 'never' }) : leaf.checkIP(address);
    if (covered !== undefined) continue;
    const kind = isIP(address) === 0 ? 'DNS' : 'IP';
    const has = leaf.subjectAltName ?? 'none at all';
    findings.push(
      refuse(
        file,
        `the certificate does not name ${address} (alternative names: ${has})`,
        `Issue it with ${address} as an alternative name of kind ${kind}.`,
      ),
    );
  }
  const names = leaf.subjectAltName ?? '';
  if (use.as === 'peer' && names.includes('DNS:') && !names.includes('IP Address:')) {
    findings.push({
      file,
      what: 'the peer certificate carries DNS names only; etcd looks them up at each handshake and refuses when the lookup fails',
      remedy: "Issue it with the node's IP addresses as alternative names.",
      severity: 'warn',
    });
  }
  return findings;
}

function usageFindings({ as, files }: TlsUse, leaf: X509Certificate): TlsFinding[] {
  const has = leaf.keyUsage; // the extended ones, as dotted numbers; undefined: any use
  if (has === undefined) return [];
  const missing = (as === 'client' ? [clientAuth] : [serverAuth, clientAuth]).filter(({ oid }) => !has.includes(oid));
  return missing.map(({ name, oid }) => {
    const remedy = `Issue it with the extended key usage ${name}.`;
    // etcd's JSON gateway dials etcd's own client side with the server certificate. Seen on 3.4 and 3.5: all but it serves.
    if (as === 'server' && oid === clientAuth.oid) {
      const what = 'the certificate is not for clientAuth: etcd refuses its own JSON gateway (/v3/...); gRPC works';
      return { file: files.certFile, what, remedy, severity: 'warn' };
    }
    return refuse(
      files.certFile,
      `the certificate is not for ${name} (extended key usage), which is needed here`,
      remedy,
    );
  });
}

/** A file that is not there has its finding already; these answer undefined for it. */
function accessFindings(use: TlsUse, file: string): TlsFinding[] {
  const findings: TlsFinding[] = [];
  if (use.reader !== undefined && mayRead(file, use.reader) === false) {
    findings.push(refuse(file, `may not be read by uid ${use.reader.uid}, which etcd runs as`, readable));
  }
  if (file === use.files.keyFile && othersMayRead(file) === true) {
    const remedy = `chmod 0600 ${file}`;
    findings.push({ file, what: 'every user of this machine may read the private key', remedy, severity: 'warn' });
  }
  return findings;
}

/** What reading gave, or undefined and a finding. */
function attempt<T>(findings: TlsFinding[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    findings.push(refuse(error.file, error.problem, error.hint));
    return undefined;
  }
}

function refuse(file: string, what: string, remedy: string): TlsFinding {
  return { file, what, remedy, severity: 'refuse' };
}

const readable = 'Give the file, and the directories above it, to the user that etcd runs as.';
const matchingKey = 'Put the key there that the certificate was issued for.';
const serverAuth = { oid: '1.3.6.1.5.5.7.3.1', name: 'serverAuth' };
const clientAuth = { oid: '1.3.6.1.5.5.7.3.2', name: 'clientAuth' };
