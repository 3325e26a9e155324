// The control port: one HTTP(S) server whose only business is two upgrades, the WebSocket and the carriers, and the measuring of the path. Who asks
// for something else gets one line of plain text. Clients that came in by a port of visitors are handed to it, and are served as its own.

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import type { Fault } from '@tunnel/errors';
import {
  type AcceptedConnection,
  type ConnectionGate,
  type ListenOn,
  listenOrFault,
  RETRY_AFTER_SECS,
} from '@tunnel/http-shell';
import { guard, type ReportInternalError } from '@tunnel/mux';
import { ALPN_NAMES, CARRIER_PATH, CARRIER_PROTOCOL, CONTROL_PATH, SPEED_PATH, WIRE_LIMITS } from '@tunnel/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import { SPEED_TIMEOUT_MS } from './limits.ts';

/** request heads on the control port: an upgrade needs a few hundred bytes */
const CONTROL_HEAD_MAX_BYTES = 8 * 1024;
/** parts of one WebSocket message; clients send it in one */
const CONTROL_FRAGMENTS_MAX = 16;

/** How often node looks for heads that are over their time. */
const CHECK_INTERVAL_MS = 2000;

/** Of what the server tells. */
const SCOPE = 'control-port';

export interface ControlServerOptions {
  readonly listenOn: ListenOn;
  /** Of a control connection, or a request; a fault: not now. */
  readonly refusal: (request: IncomingMessage, accepted: AcceptedConnection) => Fault | null;
  /** What every connection passes first. */
  readonly gate: ConnectionGate;
  readonly onControl: (ws: WebSocket, request: IncomingMessage, accepted: AcceptedConnection) => void;
  readonly onCarrier: (request: IncomingMessage, socket: Socket, head: Buffer, accepted: AcceptedConnection) => void;
  readonly onSpeed: (request: IncomingMessage, response: ServerResponse, accepted: AcceptedConnection) => void;
  readonly report: ReportInternalError;
}

export class ControlServer {
  readonly #given: ControlServerOptions;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES,
    // Parts of a message are counted by nobody but ws; clients send it whole.
    maxFragments: CONTROL_FRAGMENTS_MAX,
    // The connection answers pings, when it has a token for them.
    autoPong: false,
    // One frame a turn: of the smallest frames one read holds ten thousand, and to take them apart at once would keep everybody else waiting.
    allowSynchronousEvents: false,
    clientTracking: false,
  });
  /** Made at the start, when the certificate is known. */
  #server: Server | undefined;
  #address: { host: string; port: number } | undefined;

  constructor(options: ControlServerOptions) {
    this.#given = options;
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error('control port is not open');
    return this.#address;
  }

  async start(tls: SecureContextOptions | null): Promise<void> {
    const { gate, listenOn, report } = this.#given;
    const server = openServer(tls);
    guard.accept(server, 'connection', report, SCOPE, (socket: Socket) => {
      // One that was handed over has its place.
      if (gate.find(socket) !== undefined) return;
      const accepted = gate.accept('control', socket);
      if (tls !== null && accepted !== null) gate.handshakeBegins(accepted);
    });
    const answer = (request: IncomingMessage, response: ServerResponse): void => this.#answer(request, response);
    guard.accept(server, 'request', report, SCOPE, answer);
    // What a request expects is passed over: node would say no by itself, and keep the connection.
    guard.accept(server, 'checkExpectation', report, SCOPE, answer);
    guard.accept(server, 'upgrade', report, SCOPE, (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    // Bytes that are no HTTP, and TLS handshakes that fail: the socket is closed without a word, the server lives.
    guard.accept(server, 'clientError', report, SCOPE, (_error, socket: Duplex) => socket.destroy());
    this.#server = server;
    this.#address = await listenOrFault(server, listenOn, { onAcceptError: (error) => gate.onAcceptError(error) });
  }

  /** For handshakes from now on; connections do not notice. */
  renew(tls: SecureContextOptions | null): void {
    if (tls !== null && this.#server instanceof TlsServer) this.#server.setSecureContext(tls);
  }

  /** Upgraded connections live on; the rest has nothing to say any more. */
  stopAccepting(): void {
    if (this.#server?.listening !== true) return;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** A connection that another port has accepted, after its TLS handshake if it had one. `first`: what was read of it already. */
  takeOver(socket: Socket, accepted: AcceptedConnection, first: Buffer | null): void {
    const server = this.#server;
    // As if it had come here: not yet, or not any more.
    if (server?.listening !== true) return void socket.destroy();
    if (!this.#given.gate.becomesControl(accepted)) return;
    if (first !== null) socket.unshift(first);
    server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket);
    socket.resume();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const accepted = this.#given.gate.find(request.socket);
    if (accepted === undefined) return void request.socket.destroy();
    const isSpeed = pathOf(request) === SPEED_PATH && accepted.refusal === null;
    const refusal = isSpeed ? this.#given.refusal(request, accepted) : accepted.refusal;
    if (isSpeed && refusal === null) this.#given.onSpeed(request, response, accepted);
    else answerRequest(request, response, refusal);
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    // node has taken its own listener off; an error without one would end the process.
    socket.on('error', () => {});
    const accepted = this.#given.gate.find(socket);
    // It has just been closed to make room.
    if (accepted === undefined) return void socket.destroy();
    if (accepted.refusal !== null) return refuseWithFault(socket, accepted.refusal);
    const path = pathOf(request);
    if (path !== CONTROL_PATH && path !== CARRIER_PATH) return refuseUpgrade(socket, 404, `nothing at ${shown(path)}`);
    if (path === CARRIER_PATH) return this.#given.onCarrier(request, socket, head, accepted);
    const refusal = this.#given.refusal(request, accepted);
    if (refusal !== null) return refuseWithFault(socket, refusal);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      return refuseUpgrade(socket, 426, 'this path expects WebSocket');
    }
    socket.setNoDelay(true);
    this.#webSockets.handleUpgrade(request, socket, head, (ws) => this.#given.onControl(ws, request, accepted));
  }
}

const openServer = (tls: SecureContextOptions | null): Server => {
  const limits = {
    maxHeaderSize: CONTROL_HEAD_MAX_BYTES,
    headersTimeout: WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
    // Only those to /_speed have a body that is waited for.
    requestTimeout: SPEED_TIMEOUT_MS,
    keepAliveTimeout: 1000,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    noDelay: true,
  };
  if (tls === null) return createServer(limits);
  return createTlsServer({
    ...limits,
    ...tls,
    ALPNProtocols: [...ALPN_NAMES],
    handshakeTimeout: WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
  });
};

/** A request without an upgrade: somebody's browser, or a health check of the wrong port. */
const answerRequest = (request: IncomingMessage, response: ServerResponse, refusal: Fault | null): void => {
  if (refusal !== null) {
    response.writeHead(refusal.status, { ...TEXT, 'retry-after': String(RETRY_AFTER_SECS) });
    response.end(`${refusal.message}\n`);
    return;
  }
  const path = pathOf(request);
  const isOurs = path === CONTROL_PATH || path === CARRIER_PATH;
  response.writeHead(isOurs ? 426 : 404, {
    ...TEXT,
    ...(isOurs ? { upgrade: path === CONTROL_PATH ? 'websocket' : CARRIER_PROTOCOL } : {}),
  });
  response.end(isOurs ? 'this path requires an upgrade\n' : `nothing at ${shown(path)}\n`);
};

/** Also of a target that is written whole, with its host: by that one it may have been sent here. */
const pathOf = ({ url }: IncomingMessage): string | undefined =>
  url?.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0];

const TEXT = { 'content-type': 'text/plain; charset=utf-8', connection: 'close' };

const shown = (path: string | undefined): string => (path ?? '').slice(0, 100).replace(/[^\x21-\x7e]/g, '?');

/** What the control port says to those it does not let in: one line of plain text, then the end. */
export const refuseUpgrade = (socket: Duplex, status: number, line: string, retryAfterSecs?: number): void => {
  const body = `${line}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(retryAfterSecs === undefined ? [] : [`Retry-After: ${retryAfterSecs}`]),
    ...(status === 426 ? ['Upgrade: websocket, tunnel-carrier/1'] : []),
    '\r\n',
  ];
  // The peer may be gone; nobody is left to be told.
  socket.on('error', () => {});
  socket.end(head.join('\r\n') + body, () => socket.destroy());
};

/** The same with the words of the catalogue, for those who may come again. */
export const refuseWithFault = (socket: Duplex, { status, message }: Fault): void =>
  refuseUpgrade(socket, status, message, RETRY_AFTER_SECS);
