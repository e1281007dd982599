/** @pure file: which addresses this agent dials, and which it never does. */

/** A peer or client URL, taken apart. */
export interface EtcdAddress {
  /** As it was given. */
  readonly url: string;
  readonly secure: boolean;
  /** A name or an IP address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** `host:port`, IPv6 in brackets. */
  readonly hostPort: string;
}

/** The address, or why it is not dialled. */
export type AddressAnswer =
  | { readonly kind: 'ok'; readonly address: EtcdAddress }
  | { readonly kind: 'refused'; readonly because: string };

/**
 * Takes a URL that came from outside (a member list, a role, a configuration) apart. Allowed is what etcd itself takes for
 * a member: http or https, a host, a port, nothing else. Refused besides: the addresses where clouds answer with
 * credentials, and those that are no single machine. Otherwise whoever can add a member could make this agent call them.
 */
export function parseEtcdUrl(text: string): AddressAnswer {
  const match = /^(https?):\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+):([0-9]{1,5})$/i.exec(text);
  const url = match === null || !URL.canParse(text) ? undefined : new URL(text);
  if (match === null || url === undefined)
    return refused('wanted http://HOST:PORT or https://HOST:PORT and nothing else');
  const port = Number(match[3]);
  if (port < 1 || port > 65_535) return refused(`${port} is no port`);
  // The URL parser writes an address in its one canonical form: 0xa9fea9fe and 2852039166 become 169.254.169.254.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const because = whyNeverDialled(host);
  if (because !== undefined) return refused(because);
  const hostPort = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { kind: 'ok', address: { url: text, secure: url.protocol === 'https:', host, port, hostPort } };
}

/** @pure Why an IP address in canonical form is never dialled, or undefined. A name is judged again by what it resolves to. */
export function whyNeverDialled(ip: string): string | undefined {
  const address = fromMapped(ip.toLowerCase());
  if (metadataServices.has(address)) return `${ip} is where clouds answer with credentials`;
  if (/^169\.254\./.test(address) || /^fe[89ab][0-9a-f]:/.test(address)) return `${ip} is a link-local address`;
  if (/^0\.\d+\.\d+\.\d+$/.test(address) || address === '::') return `${ip} is no address of a machine`;
  if (/^(22[4-9]|23\d|24\d|25[0-5])\.\d+\.\d+\.\d+$/.test(address) || /^ff[0-9a-f]{2}:/.test(address)) {
    return `${ip} is no address of one machine`;
  }
  return undefined;
}

/** Those that are not link-local already. */
const metadataServices: ReadonlySet<string> = new Set([
  '169.254.169.254',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd20:ce::254',
  'metadata.google.internal',
  'metadata',
]);

/** `::ffff:a9fe:a9fe` and `::ffff:169.254.169.254` are 169.254.169.254. */
function fromMapped(ip: string): string {
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(ip);
  if (dotted !== null) return dotted[1] ?? ip;
  const words = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(ip);
  if (words === null) return ip;
  const [high, low] = [Number.parseInt(words[1] ?? '', 16), Number.parseInt(words[2] ?? '', 16)];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

function refused(because: string): AddressAnswer {
  return { kind: 'refused', because };
}
