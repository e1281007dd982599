/** @pure file: bytes of a log → lines. */

/** One line of a child's log. */
export interface LogLine {
  /** Without its newline; bytes that are not UTF-8 become U+FFFD. */
  readonly text: string;
  /** Where the line (or what is left of it) starts in the log. Unit: bytes. */
  readonly offset: number;
  /** True if this is not the whole line: longer than 1 MiB, torn at the end of the life, or partly freed. */
  readonly cut: boolean;
  /** Set on the one line that stands for a freed part of the log. Unit: bytes. */
  readonly freedBytes?: number;
}

/** A longer line is cut. Unit: bytes. */
export const maxLineBytes = 1024 * 1024;

/** Turns slices of a log into lines, in order, none lost, holding at most one line's bytes. */
export class LineSplitter {
  readonly #onLine: (line: LogLine) => void;
  #parts: Uint8Array[] = [];
  #heldBytes = 0;
  #lineStart: number;
  #offset: number;
  /** The rest of the current line is dropped: its head was delivered as cut. */
  #skipping = false;
  /** The current line has lost its head. */
  #headless = false;

  constructor(onLine: (line: LogLine) => void, startOffset = 0) {
    this.#onLine = onLine;
    this.#lineStart = startOffset;
    this.#offset = startOffset;
  }

  /** Where the next pushed byte stands in the log. Unit: bytes. */
  get offset(): number {
    return this.#offset;
  }

  /** Takes the next bytes; what is not a whole line yet is copied, so the caller may reuse its buffer. */
  push(bytes: Uint8Array): void {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let from = 0;
    for (let end = view.indexOf(10); end !== -1; end = view.indexOf(10, from)) {
      if (this.#heldBytes === 0 && !this.#skipping && end - from <= maxLineBytes) {
        // The usual case, without a copy: the whole line stands in these bytes.
        this.#onLine({ text: view.toString('utf8', from, end), offset: this.#lineStart, cut: this.#headless });
        this.#offset += end + 1 - from;
        this.#headless = false;
        this.#lineStart = this.#offset;
      } else {
        this.#take(bytes.subarray(from, end), false);
        this.#offset += 1;
        this.#endLine(this.#headless);
      }
      from = end + 1;
    }
    this.#take(bytes.subarray(from), true);
  }

  /** The next `length` bytes of the log are gone. */
  freed(length: number): void {
    if (this.#heldBytes > 0) this.#endLine(true);
    this.#onLine({ text: `… ${length} bytes freed …`, offset: this.#offset, cut: true, freedBytes: length });
    this.#offset += length;
    this.#lineStart = this.#offset;
    this.#skipping = false;
    this.#headless = true;
  }

  /** The log ends here: a line without a newline is delivered as cut. */
  end(): void {
    if (this.#heldBytes > 0) this.#endLine(true);
  }

  #take(bytes: Uint8Array, keep: boolean): void {
    this.#offset += bytes.byteLength;
    if (this.#skipping || bytes.byteLength === 0) return;
    const room = maxLineBytes - this.#heldBytes;
    const fits = bytes.byteLength > room ? bytes.subarray(0, room) : bytes;
    this.#parts.push(keep ? new Uint8Array(fits) : fits); // slice() of a Buffer would not copy
    this.#heldBytes += fits.byteLength;
    if (fits.byteLength === bytes.byteLength) return;
    this.#deliver(true);
    this.#skipping = true;
  }

  #endLine(cut: boolean): void {
    if (!this.#skipping) this.#deliver(cut);
    this.#skipping = false;
    this.#headless = false;
    this.#lineStart = this.#offset;
  }

  #deliver(cut: boolean): void {
    const parts = this.#parts;
    this.#parts = [];
    this.#heldBytes = 0;
    const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
    this.#onLine({ text, offset: this.#lineStart, cut });
  }
}
