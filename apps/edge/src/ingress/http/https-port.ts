// The public port for HTTP over TLS: handshakes within bounds, then each connection goes where its ALPN says.
import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { LIMITS } from '@tunnel/protocol';
import type { Logger } from '@tunnel/runtime';
import { secureOptionsOf, type TlsFiles } from '../../tls-files.ts';
import type { HttpIngress } from './http-ingress.ts';

/** In the order of our liking; a visitor that offers neither is told so in the handshake, one without ALPN gets HTTP/1.1. */
const ALPN_PROTOCOLS = ['h2', 'http/1.1'];

export class HttpsPort {
  readonly #on: ListenOn;
  readonly #ingress: Pick<HttpIngress, 'accept' | 'acceptHttp2'>;
  readonly #server: Server;
  #address: { host: string; port: number } | undefined;
  /** Connections of any state, and those of them that are through the handshake. */
  #open = 0;
  #secured = 0;

  constructor(on: ListenOn, files: TlsFiles, ingress: Pick<HttpIngress, 'accept' | 'acceptHttp2'>, logger: Logger) {
    this.#on = on;
    this.#ingress = ingress;
    // node documents the options of net.createServer here, too; its types know only some.
    const options: TlsOptions & {
      readonly noDelay: boolean;
      readonly keepAlive: boolean;
      keepAliveInitialDelay: number;
    } = {
      ...secureOptionsOf(files),
      ALPNProtocols: ALPN_PROTOCOLS,
      handshakeTimeout: LIMITS.TLS_HANDSHAKE_TIMEOUT_MS,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: LIMITS.VISITOR_KEEPALIVE_MS,
    };
    this.#server = createServer(options);
    this.#server.on('connection', (socket: Socket) => this.#onConnection(socket));
    this.#server.on('secureConnection', (socket) => this.#onSecure(socket));
    // Strangers' handshakes fail all the time, and plain HTTP comes here by mistake: closed without a word.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
    this.#server.on('error', (error: Error) => {
      if (this.#address !== undefined) logger.warn({ err: error }, 'a connection could not be accepted');
    });
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#on.key} is not open`);
    return this.#address;
  }

  get handshakes(): number {
    return this.#open - this.#secured;
  }

  async start(): Promise<void> {
    this.#address = await listenOrFault(this.#server, this.#on, { backlog: LIMITS.VISITOR_BACKLOG });
  }

  /** For handshakes from now on; connections do not notice. */
  renew(files: TlsFiles): void {
    this.#server.setSecureContext(secureOptionsOf(files));
  }

  stop(): void {
    if (this.#server.listening) this.#server.close();
  }

  #onConnection(socket: Socket): void {
    this.#open += 1;
    socket.once('close', () => {
      this.#open -= 1;
    });
    if (this.handshakes > LIMITS.TLS_HANDSHAKES_MAX) socket.destroy();
  }

  #onSecure(socket: TLSSocket): void {
    this.#secured += 1;
    socket.once('close', () => {
      this.#secured -= 1;
    });
    if (socket.alpnProtocol === 'h2') return this.#ingress.acceptHttp2(socket);
    // Not sooner: whoever hangs up in the handshake has gone for good.
    socket.allowHalfOpen = true;
    this.#ingress.accept(socket, 'https');
  }
}
