import { connect, createServer, type Server, type Socket } from 'node:net';

/** Passes TCP connections on to another port of loopback, until it is told to refuse them. */
export class TcpProxy {
  readonly port: number;
  readonly #targetPort: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  private constructor(port: number, targetPort: number) {
    this.port = port;
    this.#targetPort = targetPort;
  }

  /** Listens on `port` of loopback. */
  static async start(port: number, targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(port, targetPort);
    await proxy.accept();
    return proxy;
  }

  /** Nobody listens any more, and every connection is cut: whoever dials is refused. */
  async refuse(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Listens, again. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((incoming) => this.#join(incoming, connect(this.#targetPort, '127.0.0.1')));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(this.port, '127.0.0.1', resolve);
    });
    this.#server = server;
  }

  #join(incoming: Socket, outgoing: Socket): void {
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
