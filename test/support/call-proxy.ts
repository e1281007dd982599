import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Every HTTP/2 connection begins with these words. */
const preface = 'PRI * HTTP/2';

/** A call that a proxy passed on: its path, `/etcdserverpb.Cluster/MemberAdd`, and etcd's answer where there was one. */
export interface SeenCall {
  readonly path: string;
  /** gRPC's status, `0` for yes; undefined until etcd answered. */
  status: string | undefined;
  /** True if the answer was not passed on. */
  lost: boolean;
}

/**
 * Stands in front of an etcd without TLS and passes gRPC calls on, one by one. It can lose the reply to a call: etcd has answered, and
 * the caller sees its connection break. Everything else that is dialled (HTTP/1) passes as it is.
 */
export class CallProxy {
  /** Every call, in the order of its beginning. */
  readonly calls: SeenCall[] = [];
  readonly #port: number;
  readonly #targetPort: number;
  readonly #sockets = new Set<Socket>();
  readonly #losing = new Set<string>();
  #server: Server | undefined;

  private constructor(port: number, targetPort: number) {
    this.#port = port;
    this.#targetPort = targetPort;
  }

  /** Listens on `port` of loopback. */
  static async start(port: number, targetPort: number): Promise<CallProxy> {
    const proxy = new CallProxy(port, targetPort);
    await proxy.accept();
    return proxy;
  }

  /** From now on every good reply to this call is lost, until {@link CallProxy.loseNothing}. */
  lose(path: string): void {
    this.#losing.add(path);
  }

  loseNothing(): void {
    this.#losing.clear();
  }

  /** Nobody listens any more, and every connection is cut. */
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
    const server = createServer((socket) => {
      this.#keep(socket);
      socket.once('data', (first) => {
        socket.pause();
        socket.unshift(first);
        if (first.toString('latin1').startsWith(preface)) this.#passCalls(socket);
        else this.#passBytes(socket);
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(this.#port, '127.0.0.1', resolve);
    });
    this.#server = server;
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #passBytes(incoming: Socket): void {
    const outgoing = connect(this.#targetPort, '127.0.0.1');
    this.#keep(outgoing);
    incoming.once('close', () => outgoing.destroy());
    outgoing.once('close', () => incoming.destroy());
    incoming.pipe(outgoing).pipe(incoming);
  }

  #passCalls(incoming: Socket): void {
    const session = performServerHandshake(incoming);
    const target = connectHttp2(`http://127.0.0.1:${this.#targetPort}`);
    session.on('error', () => {});
    target.on('error', () => {});
    session.once('close', () => target.destroy());
    target.once('close', () => incoming.destroy());
    session.on('stream', (stream, headers) => this.#passCall(session, target, stream, headers));
  }

  #passCall(
    session: ServerHttp2Session,
    target: ClientHttp2Session,
    incoming: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): void {
    const call: SeenCall = { path: String(headers[':path']), status: undefined, lost: false };
    this.calls.push(call);
    incoming.on('error', () => {});
    if (target.destroyed) {
      incoming.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    const { ':authority': _authority, ...rest } = headers;
    const outgoing = target.request(rest as OutgoingHttpHeaders);
    outgoing.on('error', () => {});
    incoming.once('close', () => outgoing.close(constants.NGHTTP2_CANCEL));
    incoming.pipe(outgoing);
    this.#passReply(session, outgoing, incoming, call);
  }

  #passReply(
    session: ServerHttp2Session,
    outgoing: ClientHttp2Stream,
    incoming: ServerHttp2Stream,
    call: SeenCall,
  ): void {
    let trailers: OutgoingHttpHeaders = {};
    outgoing.once('trailers', (read) => {
      trailers = read as OutgoingHttpHeaders;
      call.status = String(read['grpc-status']);
    });
    const respond = (head: OutgoingHttpHeaders): boolean => {
      if (incoming.destroyed) return false;
      incoming.respond(head, { waitForTrailers: true });
      incoming.once('wantTrailers', () => incoming.sendTrailers(trailers));
      return true;
    };
    outgoing.once('response', (read, flags) => {
      const head = read as OutgoingHttpHeaders;
      if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
        call.status = String(read['grpc-status']);
        if (!incoming.destroyed) incoming.respond(head, { endStream: true });
      } else if (!this.#losing.has(call.path)) {
        if (respond(head)) outgoing.pipe(incoming);
      } else {
        // Nothing of it is passed on before it is known whether it is the yes that is to be lost.
        void outgoing.toArray().then(
          (chunks: Buffer[]) => {
            call.lost = call.status === '0';
            if (call.lost) session.destroy();
            else if (respond(head)) incoming.end(Buffer.concat(chunks));
          },
          () => {},
        );
      }
    });
    outgoing.once('close', () => {
      // A call that etcd broke off has no answer.
      if (call.status === undefined && !incoming.destroyed) incoming.close(outgoing.rstCode);
    });
  }
}
