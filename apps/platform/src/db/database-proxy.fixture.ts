// TCP proxy in front of a test database that can be cut and restored. For tests only.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Secret } from '@tunnel/runtime';

export class DatabaseProxy {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port = 0;
  readonly #isPooler: boolean;

  /** `isPooler`: the proxy reports a process ID other than the ID of the process that serves the connection, as poolers do. */
  constructor(url: Secret, { isPooler = false }: { readonly isPooler?: boolean } = {}) {
    this.#isPooler = isPooler;
    // A URL without a host, as for a Unix socket, is not parseable.
    this.#target = new URL(url.reveal().replace(':///', '://localhost/'));
  }

  /** Returns the URL of the proxy, which is already fixed before the first open(); connections are refused until then. */
  async reserve(): Promise<Secret> {
    await this.open();
    await this.cut();
    const through = new URL(this.#target);
    through.hostname = '127.0.0.1';
    through.port = String(this.#port);
    const user = through.searchParams.get('user');
    if (user !== null) through.username = user;
    through.password = this.#target.searchParams.get('password') ?? this.#target.password;
    through.search = '';
    return new Secret(through.href);
  }

  async open(): Promise<void> {
    this.#server = createServer((socket) => this.#join(socket));
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Breaks every connection and refuses new connections. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Stops forwarding on all current connections, without closing a connection at either end. */
  freeze(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  #join(socket: Socket): void {
    const folder = this.#target.searchParams.get('host');
    const port = Number(this.#target.port || 5432);
    const database =
      folder?.startsWith('/') === true
        ? connect(`${folder}/.s.PGSQL.${port}`)
        : connect(port, folder ?? this.#target.hostname);
    for (const [one, other] of [
      [socket, database],
      [database, socket],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
    // Registered before the pipe, because the bytes are changed in place before they are forwarded.
    if (this.#isPooler) database.prependListener('data', renameProcess);
  }
}

/** Header of a BackendKeyData message with length 12. The process ID and a key for canceling statements follow. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

const renameProcess = (bytes: Buffer): void => {
  const at = bytes.indexOf(KEY_DATA);
  if (at >= 0) bytes.writeInt32BE(1, at + KEY_DATA.length);
};
