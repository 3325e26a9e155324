// The control port: one HTTP(S) server whose only business is two upgrades, the WebSocket and the carriers. Who asks for nothing has little
// room, and who asks for something else gets one line of plain text.

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ListenOn, listenOrFault } from '@tunnel/http-shell';
import { guard, type ReportInternalError } from '@tunnel/mux';
import { ALPN_NAMES, CARRIER_PATH, CARRIER_PROTOCOL, CONTROL_PATH, WIRE_LIMITS } from '@tunnel/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import { secureOptionsOf, type TlsFiles } from '../ingress/tls/certificate.ts';
import { EDGE_LIMITS } from '../limits.ts';

/** How often node looks for heads that are over their time. */
const CHECK_INTERVAL_MS = 2000;

/** Of what the server tells. */
const SCOPE = 'control-port';

export interface ControlServerOptions {
  readonly listenOn: ListenOn;
  /** A text: not now, with 503. */
  readonly refusal: () => string | null;
  readonly onControl: (ws: WebSocket, request: IncomingMessage) => void;
  readonly onCarrier: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
  readonly handshakesMax?: number;
  readonly report: ReportInternalError;
}

export class ControlServer {
  readonly #given: ControlServerOptions;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES,
    clientTracking: false,
  });
  readonly #waiting: WaitingSockets;
  /** Made at the start, when the certificate is known. */
  #server: Server | undefined;
  #address: { host: string; port: number } | undefined;

  constructor(options: ControlServerOptions) {
    this.#given = options;
    this.#waiting = new WaitingSockets(options.handshakesMax ?? EDGE_LIMITS.CONTROL_HANDSHAKES_MAX);
  }

  /** Connections that have not asked for anything yet. */
  get waiting(): number {
    return this.#waiting.size;
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error('the control port is not open');
    return this.#address;
  }

  async start(tls: TlsFiles | null): Promise<void> {
    const server = openServer(tls);
    const { report } = this.#given;
    guard.accept(server, 'connection', report, SCOPE, (socket: Socket) => this.#waiting.add(socket));
    guard.accept(server, 'request', report, SCOPE, answerRequest);
    guard.accept(server, 'upgrade', report, SCOPE, (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    // Bytes that are no HTTP, and TLS handshakes that fail: the socket is closed without a word, the server lives.
    guard.accept(server, 'clientError', report, SCOPE, (_error, socket: Duplex) => socket.destroy());
    this.#server = server;
    this.#address = await listenOrFault(server, this.#given.listenOn);
  }

  /** For handshakes from now on; connections do not notice. */
  renew(files: TlsFiles): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(secureOptionsOf(files));
  }

  /** Upgraded connections live on; the rest has nothing to say any more. */
  stopAccepting(): void {
    if (this.#server?.listening !== true) return;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    // node has taken its own listener off; an error without one would end the process.
    socket.on('error', () => {});
    this.#waiting.remove(socket);
    const path = request.url?.split('?', 1)[0];
    if (path !== CONTROL_PATH && path !== CARRIER_PATH) return refuseUpgrade(socket, 404, `nothing at ${shown(path)}`);
    if (path === CARRIER_PATH) return this.#given.onCarrier(request, socket, head);
    const refusal = this.#given.refusal();
    if (refusal !== null) return refuseUpgrade(socket, 503, refusal);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      return refuseUpgrade(socket, 426, 'this path speaks WebSocket');
    }
    socket.setNoDelay(true);
    this.#webSockets.handleUpgrade(request, socket, head, (ws) => this.#given.onControl(ws, request));
  }
}

const openServer = (tls: TlsFiles | null): Server => {
  const limits = {
    maxHeaderSize: EDGE_LIMITS.CONTROL_HEAD_MAX_BYTES,
    headersTimeout: WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
    requestTimeout: WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
    keepAliveTimeout: 1000,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    noDelay: true,
  };
  if (tls === null) return createServer(limits);
  return createTlsServer({
    ...limits,
    ...secureOptionsOf(tls),
    ALPNProtocols: [...ALPN_NAMES],
    handshakeTimeout: WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
  });
};

/** A request without an upgrade: somebody's browser, or a health check of the wrong port. */
const answerRequest = (request: IncomingMessage, response: ServerResponse): void => {
  const path = request.url?.split('?', 1)[0];
  const isOurs = path === CONTROL_PATH || path === CARRIER_PATH;
  response.writeHead(isOurs ? 426 : 404, {
    'content-type': 'text/plain; charset=utf-8',
    connection: 'close',
    ...(isOurs ? { upgrade: path === CONTROL_PATH ? 'websocket' : CARRIER_PROTOCOL } : {}),
  });
  response.end(isOurs ? 'this path needs an upgrade\n' : `nothing at ${shown(path)}\n`);
};

const shown = (path: string | undefined): string => (path ?? '').slice(0, 100).replace(/[^\x21-\x7e]/g, '?');

/** What the control port says to those it does not let in: one line of plain text, then the end. */
export const refuseUpgrade = (socket: Duplex, status: number, line: string): void => {
  const body = `${line}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 426 ? ['Upgrade: websocket, tunnel-carrier/1'] : []),
    '\r\n',
  ];
  // The peer may be gone; nobody is left to be told.
  socket.on('error', () => {});
  socket.end(head.join('\r\n') + body, () => socket.destroy());
};

/** Connections that have not asked for an upgrade yet. There is room for so many; then the oldest goes. */
class WaitingSockets {
  readonly #max: number;
  /** By the peer's address and port: over TLS the upgrade comes on another object than the connection did. Oldest first. */
  readonly #sockets = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** An honest client asks within a round trip, so whoever has waited longest is given up, and not the newcomer. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    this.#sockets.set(peer, socket);
    socket.once('close', () => {
      if (this.#sockets.get(peer) === socket) this.#sockets.delete(peer);
    });
    if (this.#sockets.size <= this.#max) return;
    for (const [oldest, stranger] of this.#sockets) {
      this.#sockets.delete(oldest);
      stranger.destroy();
      return;
    }
  }

  /** It has asked; from here on others count it. */
  remove(socket: Socket): void {
    this.#sockets.delete(peerOf(socket));
  }
}

const peerOf = (socket: Socket): string => `${socket.remoteAddress ?? ''} ${socket.remotePort ?? ''}`;
