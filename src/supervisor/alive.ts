import { closeSync, constants, openSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { errnoOf } from '../base/errors.ts';

/** What the fifo of a life says at the moment of opening. `held`: keeper or child (or a process it left) lives. */
export type AliveReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'held'; readonly fifo: AliveFifo };

/** Opens the fifo of a life. Never blocks. */
export function openAlive(path: string): AliveReading {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return { kind: 'absent' };
    throw error;
  }
  const first = Buffer.alloc(256);
  try {
    const bytes = readSync(fd, first);
    if (bytes > 0) return { kind: 'held', fifo: new AliveFifo(fd, first.subarray(0, bytes).toString()) };
    closeSync(fd); // end of file: nobody holds it
    return { kind: 'gone' };
  } catch (error) {
    if (errnoOf(error) === 'EAGAIN') return { kind: 'held', fifo: new AliveFifo(fd, '') };
    closeSync(fd);
    throw error;
  }
}

/** The reading end. The kernel tells us of the end of the life: no polling, no pid that could be reused. */
export class AliveFifo {
  readonly #fd: number;
  #text: string;
  #socket: Socket | undefined;

  constructor(fd: number, text: string) {
    this.#fd = fd;
    this.#text = text;
  }

  /** What the keeper has written into the fifo so far: nothing, or its exit line. */
  get text(): string {
    return this.#text;
  }

  /** Calls `onText` when the keeper has written, and `onGone` once when keeper and child are both gone. */
  watch(onText: () => void, onGone: () => void): void {
    const socket = new Socket({ fd: this.#fd, readable: true, writable: false });
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString();
      onText();
    });
    socket.on('error', onGone); // reading a fifo does not fail; were it to, the exit record decides
    socket.on('end', onGone);
    if (this.#text !== '') onText();
  }

  close(): void {
    if (this.#socket === undefined) closeSync(this.#fd);
    else this.#socket.removeAllListeners().destroy();
  }
}
