import { isIPv4, isIPv6 } from 'node:net';

/** A URL of the only form that etcd's addresses have here: scheme, host, port, nothing else. */
export interface Endpoint {
  readonly scheme: 'http' | 'https';
  /** A lower-case name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  /** True for an address, false for a name. */
  readonly isAddress: boolean;
}

/**
 * Reads `https://10.0.0.1:2380`. Anything else (another scheme, a path, a user name, a missing port, an address in octal
 * or hex that other programs would read differently) is undefined. Lower case only: etcd compares these URLs as text.
 */
export function parseEndpoint(text: string): Endpoint | undefined {
  const match = /^(https?):\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253}):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, scheme, host = '', portText] = match;
  const address = parseHost(host);
  const port = Number(portText);
  if (address === undefined || port < 1 || port > 65_535 || String(port) !== portText) return undefined;
  return { scheme: scheme === 'https' ? 'https' : 'http', port, ...address };
}

/** Reads `127.0.0.1:9100` or `[::1]:9100`: where to listen. Undefined if it is not an address with a port. */
export function parseListenAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const endpoint = parseEndpoint(`http://${text}`);
  return endpoint?.isAddress === true ? { host: endpoint.host, port: endpoint.port } : undefined;
}

/** True for 0.0.0.0 and [::]: good to listen on, impossible to dial. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || /^[0:]+$/.test(host);
}

/**
 * True for addresses that no member can have but that answer with secrets or reach everybody: link-local (the metadata
 * services of clouds live at 169.254.169.254 and fe80::/10, also written as an IPv4-mapped address) and multicast.
 */
export function isForbiddenHost(host: string): boolean {
  const mapped = /^(?:0*:)*(?:0+:)*ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(host)?.[1] ?? host;
  if (isIPv4(mapped)) return /^169\.254\./.test(mapped) || Number(mapped.split('.')[0]) >= 224;
  // A mapped address in hex says the same thing in a way nobody writes by accident.
  return isIPv6(host) && (/^(?:fe[89ab][0-9a-f]:|ff)/.test(host) || /ffff:[0-9a-f]+:[0-9a-f]+$/.test(host));
}

/** True for addresses of this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127\./.test(host) || host === '::1';
}

function parseHost(text: string): { readonly host: string; readonly isAddress: boolean } | undefined {
  if (text.startsWith('[')) {
    const host = text.slice(1, -1);
    return isIPv6(host) ? { host, isAddress: true } : undefined;
  }
  if (isIPv4(text)) return { host: text, isAddress: true };
  const labels = text.split('.');
  const isName = labels.every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
  // A last label that begins with a digit would be read as an address by some programs: 127.1, 0x7f.0.0.1, 2130706433.
  return isName && !/^\d/.test(labels.at(-1) ?? '') ? { host: text, isAddress: false } : undefined;
}
