import type { X509Certificate } from 'node:crypto';

/** A certificate with all that may stand between it and an authority. */
export interface ChainQuestion {
  readonly leaf: X509Certificate;
  readonly intermediates: readonly X509Certificate[];
  readonly authorities: readonly X509Certificate[];
  /** Wall time. Unit: ms since 1970. */
  readonly nowMs: number;
}

/** Why a certificate would not be believed. */
export interface ChainProblem {
  /** Whose file it is about: the leaf's (with its intermediates) or the authorities'. */
  readonly of: 'leaf' | 'authority';
  readonly what: string;
  readonly remedy: string;
}

/** Follows the signatures from the leaf to an authority. Empty if some way up is sound from end to end. */
export function chainProblems(question: ChainQuestion): readonly ChainProblem[] {
  const { leaf, authorities } = question;
  if (authorities.some((authority) => authority.fingerprint256 === leaf.fingerprint256)) return [];
  const ways = waysUp(leaf, question, longestChain);
  if (ways.some((problems) => problems.length === 0)) return [];
  const best = ways[0];
  if (best !== undefined) return best;
  const issuer = leaf.issuer.replaceAll('\n', ', ');
  return [
    {
      of: 'leaf',
      what: `the certificate was issued by "${issuer}", which no authority of the CA file has signed`,
      remedy:
        'Name the CA file that this certificate comes from, or add the missing intermediate to the certificate file.',
    },
  ];
}

const longestChain = 5;

/** For each way from `child` to an authority, what is wrong on it. */
function waysUp(child: X509Certificate, question: ChainQuestion, depth: number): ChainProblem[][] {
  if (depth === 0) return [];
  const ends = question.authorities
    .filter((authority) => signed(child, authority))
    .map((authority) => validity(authority, 'authority', question.nowMs));
  const further = question.intermediates
    .filter((step) => step.fingerprint256 !== child.fingerprint256 && signed(child, step))
    .flatMap((step) =>
      waysUp(step, question, depth - 1).map((above) => [...validity(step, 'leaf', question.nowMs), ...above]),
    );
  return [...ends, ...further];
}

/** The names fit, the issuer is an authority at all, and its key made the signature. */
function signed(child: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && child.checkIssued(issuer) && child.verify(issuer.publicKey);
}

function validity(authority: X509Certificate, of: ChainProblem['of'], nowMs: number): ChainProblem[] {
  const name = authority.subject.replaceAll('\n', ', ');
  if (authority.validToDate.getTime() <= nowMs) {
    const what = `the authority "${name}" expired at ${authority.validToDate.toISOString()}`;
    return [{ of, what, remedy: 'Replace the authority and all that it issued; the clock may be wrong as well.' }];
  }
  if (authority.validFromDate.getTime() > nowMs) {
    const what = `the authority "${name}" is not valid before ${authority.validFromDate.toISOString()}`;
    return [{ of, what, remedy: 'Set the clock; if it is right, wait.' }];
  }
  return [];
}
