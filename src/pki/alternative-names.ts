/** @pure file: the alternative names of a certificate, as Node writes them in one string. */

/** One alternative name. */
export interface AlternativeName {
  /** `DNS`, `URI`, `IP Address`, `email`, … as Node names them. */
  readonly kind: string;
  readonly value: string;
}

/**
 * Takes `X509Certificate.subjectAltName` apart: `DNS:a, URI:"spiffe://x/a\u002cb"`. Node quotes a value that holds a comma,
 * a quote or a control character as a JSON string, so a split at commas would let one name pass for two.
 * Undefined if the text does not follow that form to its end: such a certificate is not to be trusted for its names.
 */
export function parseAlternativeNames(text: string | undefined): readonly AlternativeName[] | undefined {
  const names: AlternativeName[] = [];
  let rest = text ?? '';
  while (rest !== '') {
    const match = /^([A-Za-z][A-Za-z0-9 ]*):("(?:[^"\\]|\\.)*"|[^",]*)(?:, (?=.)|$)/s.exec(rest);
    if (match === null) return undefined;
    const value = unquote(match[2] ?? '');
    if (value === undefined) return undefined;
    names.push({ kind: match[1] ?? '', value });
    rest = rest.slice(match[0].length);
  }
  return names;
}

/** What the URI names of a certificate say about who it is: identity is exactly one URI, never the first of several. */
export type UriIdentity =
  | { readonly kind: 'one'; readonly uri: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly because: string };

/** @pure The one URI of a certificate. Two, or names that cannot be read, are refused. */
export function uriIdentityOf(subjectAltName: string | undefined): UriIdentity {
  const names = parseAlternativeNames(subjectAltName);
  if (names === undefined) return { kind: 'refused', because: 'its alternative names cannot be read' };
  const uris = names.filter((name) => name.kind === 'URI').map((name) => name.value);
  const [uri] = uris;
  if (uri === undefined) return { kind: 'none' };
  if (uris.length > 1) return { kind: 'refused', because: `it carries ${uris.length} URI names, wanted exactly one` };
  if (/[\s,"\\]/.test(uri) || !URL.canParse(uri)) return { kind: 'refused', because: 'its URI name is no plain URI' };
  return { kind: 'one', uri };
}

function unquote(value: string): string | undefined {
  if (!value.startsWith('"')) return value;
  try {
    const text: unknown = JSON.parse(value);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}
