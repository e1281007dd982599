/** The few pieces of ASN.1 DER that a certificate is made of. For the test CA only. */

/** One element: tag byte, length, content. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

export function sequence(...contents: readonly Uint8Array[]): Buffer {
  return element(0x30, ...contents);
}

export function set(...contents: readonly Uint8Array[]): Buffer {
  return element(0x31, ...contents);
}

/** `[number]` constructed: what X.509 calls an explicit tag. */
export function explicit(number: number, ...contents: readonly Uint8Array[]): Buffer {
  return element(0xa0 + number, ...contents);
}

/** `[number]` primitive: a general name. */
export function implicit(number: number, content: Uint8Array): Buffer {
  return element(0x80 + number, content);
}

/** A positive whole number from its big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes[0] ?? 0;
  return element(0x02, first >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]));
}

export function utf8(text: string): Buffer {
  return element(0x0c, Buffer.from(text, 'utf8'));
}

export function octets(content: Uint8Array): Buffer {
  return element(0x04, content);
}

/** A bit string of whole bytes, less `unused` bits at the end. */
export function bits(content: Uint8Array, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), content);
}

/** GeneralizedTime to the second. */
export function time(when: Date): Buffer {
  const digits = when.toISOString().replace(/[-:T]|\.\d+Z$/g, '');
  // Certificates must use the short form up to 2049.
  return when.getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : element(0x18, Buffer.from(`${digits}Z`));
}

/** `1.2.840.10045.2.1` */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let left = value >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80);
  return digits;
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let left = length; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}
