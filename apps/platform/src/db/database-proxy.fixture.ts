// A way to the database of a test that can be cut and mended. Used by tests only.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Secret } from '@tunnel/runtime';

export class DatabaseProxy {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port = 0;
  readonly #isPooler: boolean;

  /** `isPooler`: it names another process than the one that serves the connection, as poolers do. */
  constructor(url: Secret, { isPooler = false }: { readonly isPooler?: boolean } = {}) {
    this.#isPooler = isPooler;
    // Without a host, as for a Unix socket, it would be no URL.
    this.#target = new URL(url.reveal().replace(':///', '://localhost/'));
  }

  /** Known before the first open(): nobody answers there until then. */
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

  /** Every connection breaks, and no new one is made. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Nothing passes on the connections of now any more, and neither side hears of it. */
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
    // Before the first bytes are passed on: they are changed in place.
    if (this.#isPooler) database.prependListener('data', renameProcess);
  }
}

/** BackendKeyData, with a length of 12: the process and a key by which a statement is canceled. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

const renameProcess = (bytes: Buffer): void => {
  const at = bytes.indexOf(KEY_DATA);
  if (at >= 0) bytes.writeInt32BE(1, at + KEY_DATA.length);
};
