// Proxies for tests on loopback: an HTTP CONNECT proxy, a proxy that intercepts TLS, and a SOCKS5 proxy. A test can redirect every target
// to a port of its choice.
import { connect, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer, TLSSocket } from 'node:tls';
import { startTcpServer, type TcpServer } from './tcp-servers.ts';

export interface ProxyRequest {
  /** Requested target as host:port. */
  readonly target: string;
  /** Credentials sent by the client as user:password, or null. */
  readonly credentials: string | null;
}

export interface TestProxy extends TcpServer {
  readonly requests: readonly ProxyRequest[];
  /** Required credentials for further requests, as user:password. Null accepts all requests. */
  credentials: string | null;
}

export interface TestProxyOptions {
  /** Required credentials as user:password. Default: null, which accepts all requests. */
  readonly credentials?: string | null;
  /** Target for every request, regardless of the requested target. Default: the requested target. */
  readonly leadsTo?: { readonly host?: string; readonly port: number };
  /** Port of the proxy. Default: 0, any free port. */
  readonly port?: number;
}

export interface ConnectProxyOptions extends TestProxyOptions {
  /** Certificate of the proxy. Makes the proxy an https:// proxy. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /**
   * Certificate for intercepting TLS. The proxy ends the client's TLS connection and opens a separate TLS connection to the server, so
   * ALPN is not passed through.
   */
  readonly opensTls?: { readonly key: string; readonly cert: string };
}

const HEAD_END = '\r\n\r\n';
const REFUSED =
  'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="test"\r\nContent-Length: 0\r\n\r\n';

/** Reads a request head. Later bytes stay in the socket. */
const readHead = (socket: Socket, onHead: (head: string) => void): void => {
  let seen = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    seen = Buffer.concat([seen, chunk]);
    const end = seen.indexOf(HEAD_END);
    if (end < 0) return;
    socket.off('data', onData).pause();
    const rest = seen.subarray(end + HEAD_END.length);
    if (rest.length > 0) socket.unshift(rest);
    onHead(seen.toString('latin1', 0, end));
  };
  socket.on('data', onData);
};

const targetOf = (text: string, { leadsTo }: TestProxyOptions): { host: string; port: number } => {
  if (leadsTo !== undefined) return { host: leadsTo.host ?? '127.0.0.1', port: leadsTo.port };
  const { hostname, port } = new URL(`http://${text}`);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 80 : Number(port) };
};

const join = (one: Socket, other: Socket): void => {
  for (const socket of [one, other]) socket.on('error', () => {});
  one.on('close', () => other.destroy());
  other.on('close', () => one.destroy());
  one.pipe(other);
  other.pipe(one);
};

const withSettings = (server: TcpServer, requests: ProxyRequest[], credentials: string | null): TestProxy =>
  // Object.assign would copy the current values of the server's counters, which are getters.
  Object.create(server, {
    requests: { value: requests },
    credentials: { value: credentials, writable: true },
  }) as TestProxy;

export const startConnectProxy = async (options: ConnectProxyOptions = {}): Promise<TestProxy> => {
  const requests: ProxyRequest[] = [];
  const serve = (socket: Socket): void =>
    readHead(socket, (head) => {
      const [, target = ''] = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head) ?? [];
      const [, basic] = /\r\nProxy-Authorization: Basic (\S+)/i.exec(head) ?? [];
      const credentials = basic === undefined ? null : Buffer.from(basic, 'base64').toString('utf8');
      requests.push({ target, credentials });
      if (proxy.credentials !== null && credentials !== proxy.credentials) return void socket.end(REFUSED);
      openTarget(socket, targetOf(target, options), options);
    });
  const server = await startTcpServer(
    (raw) => serve(options.tls === undefined ? raw : new TLSSocket(raw, { isServer: true, ...options.tls })),
    { port: options.port ?? 0 },
  );
  const proxy = withSettings(server, requests, options.credentials ?? null);
  return proxy;
};

const openTarget = (socket: Socket, target: { host: string; port: number }, options: ConnectProxyOptions): void => {
  const onward = connect(target);
  const refuse = (): void => void socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n');
  onward.once('error', refuse);
  onward.once('connect', () => {
    onward.off('error', refuse);
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (options.opensTls === undefined) return join(socket, onward);
    // Uses a server of node:tls instead of a bare TLSSocket, so that ALPN is negotiated, with http/1.1 only.
    const opener = createTlsServer({ ...options.opensTls, ALPNProtocols: ['http/1.1'] }, (inside) =>
      join(inside, connectTls({ socket: onward, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })),
    );
    opener.on('tlsClientError', () => socket.destroy());
    opener.emit('connection', socket);
  });
};

export interface SocksProxyOptions extends TestProxyOptions {
  /** Reply code for every request (RFC 1928, 6). Default: 0, granted. */
  readonly reply?: number;
}

/** Starts a SOCKS5 proxy with the CONNECT command only, and with user and password authentication (RFC 1929). */
export const startSocksProxy = async (options: SocksProxyOptions = {}): Promise<TestProxy> => {
  const requests: ProxyRequest[] = [];
  const server = await startTcpServer((socket) => void serveSocks(socket, () => proxy, requests, options), {
    port: options.port ?? 0,
  });
  const proxy = withSettings(server, requests, options.credentials ?? null);
  return proxy;
};

const serveSocks = async (
  socket: Socket,
  proxy: () => TestProxy,
  requests: ProxyRequest[],
  options: SocksProxyOptions,
): Promise<void> => {
  const reader = new ByteReader(socket);
  const [, methodCount = 0] = await reader.take(2);
  const methods = [...(await reader.take(methodCount))];
  const wanted = proxy().credentials;
  const method = wanted === null ? 0 : 2;
  if (!methods.includes(method)) return void socket.end(Buffer.from([5, 0xff]));
  socket.write(Buffer.from([5, method]));
  let credentials: string | null = null;
  if (method === 2) {
    const user = await reader.takeText(1);
    credentials = `${user}:${await reader.takeText(0)}`;
    if (credentials !== wanted) {
      requests.push({ target: '', credentials });
      return void socket.end(Buffer.from([1, 1]));
    }
    socket.write(Buffer.from([1, 0]));
  }
  const target = await reader.takeTarget();
  requests.push({ target, credentials });
  const reply = options.reply ?? 0;
  if (reply !== 0) return void socket.end(Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]));
  const onward = connect(targetOf(target, options));
  const refuse = (): void => void socket.end(Buffer.from([5, 5, 0, 1, 0, 0, 0, 0, 0, 0]));
  onward.once('error', refuse);
  onward.once('connect', () => {
    onward.off('error', refuse);
    reader.release();
    socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    join(socket, onward);
  });
};

class ByteReader {
  readonly #socket: Socket;
  #seen = Buffer.alloc(0);
  #wake: () => void = () => {};
  readonly #onData = (chunk: Buffer): void => {
    this.#seen = Buffer.concat([this.#seen, chunk]);
    this.#wake();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', this.#onData);
  }

  async take(bytes: number): Promise<Buffer> {
    while (this.#seen.length < bytes) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const taken = this.#seen.subarray(0, bytes);
    this.#seen = this.#seen.subarray(bytes);
    return taken;
  }

  /** Skips `skip` bytes, then reads the length of a text from one byte, and the text. */
  async takeText(skip: number): Promise<string> {
    const length = (await this.take(skip + 1))[skip] ?? 0;
    return (await this.take(length)).toString('utf8');
  }

  async takeTarget(): Promise<string> {
    const kind = (await this.take(4))[3];
    const host = kind === 3 ? await this.takeText(0) : addressOf(await this.take(kind === 1 ? 4 : 16));
    return `${host}:${(await this.take(2)).readUInt16BE(0)}`;
  }

  release(): void {
    this.#socket.off('data', this.#onData).pause();
    if (this.#seen.length > 0) this.#socket.unshift(this.#seen);
  }
}

const addressOf = (bytes: Buffer): string =>
  bytes.length === 4 ? bytes.join('.') : `[${bytes.toString('hex').replace(/(.{4})(?!$)/g, '$1:')}]`;
