// Control port: an HTTP(S) server for two upgrades (control WebSocket and carrier) and for speed tests. Any other request gets a line of
// plain text. Client connections accepted by visitor ports are handed over to this server and served in the same way.

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type SecureContextOptions, TLSSocket } from 'node:tls';
import type { Fault } from '@tunnel/errors';
import {
  type AcceptedConnection,
  type ConnectionGate,
  type ListenOn,
  listenOrFault,
  RETRY_AFTER_SECS,
} from '@tunnel/http-shell';
import { guard, type ReportInternalError, readThroughScratch } from '@tunnel/mux';
import { ALPN_NAMES, CARRIER_PATH, CARRIER_PROTOCOL, CONTROL_PATH, SPEED_PATH, WIRE_LIMITS } from '@tunnel/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import { SPEED_TIMEOUT_MS } from './limits.ts';

/** Maximum size of request heads on the control port. An upgrade needs a few hundred bytes. */
const CONTROL_HEAD_MAX_BYTES = 8 * 1024;
/** Maximum number of fragments per WebSocket message on the control port. Clients do not fragment messages. */
const CONTROL_FRAGMENTS_MAX = 16;

/** Interval at which Node.js checks the control port for requests over their timeout. */
const CHECK_INTERVAL_MS = 2000;

/** Name of the control port in reports of errors thrown by event handlers. */
const SCOPE = 'control-port';

export interface ControlServerOptions {
  readonly listenOn: ListenOn;
  /** Returns a fault if a control connection or a request is rejected at the moment. */
  readonly refusal: (request: IncomingMessage, accepted: AcceptedConnection) => Fault | null;
  /** Connection gate that every connection to the control port passes first. */
  readonly gate: ConnectionGate;
  readonly onControl: (ws: WebSocket, request: IncomingMessage, accepted: AcceptedConnection) => void;
  readonly onCarrier: (request: IncomingMessage, socket: Socket, head: Buffer, accepted: AcceptedConnection) => void;
  readonly onSpeed: (request: IncomingMessage, response: ServerResponse, accepted: AcceptedConnection) => void;
  readonly report: ReportInternalError;
}

export class ControlServer {
  readonly #options: ControlServerOptions;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES,
    // Only the ws library sees fragments, so the limit is set there. Clients do not fragment messages.
    maxFragments: CONTROL_FRAGMENTS_MAX,
    // Pings are not answered automatically: ControlConnection answers them, subject to its rate limit.
    autoPong: false,
    // Delivers a single frame per event-loop turn: a socket read can hold ten thousand tiny frames, and parsing them at once would block
    // all other connections.
    allowSynchronousEvents: false,
    clientTracking: false,
  });
  /** Server of the control port. Created in start(), when the certificate is known. */
  #server: Server | undefined;
  #address: { host: string; port: number } | undefined;

  constructor(options: ControlServerOptions) {
    this.#options = options;
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error('control port is not open');
    return this.#address;
  }

  async start(tls: SecureContextOptions | null): Promise<void> {
    const { gate, listenOn, report } = this.#options;
    const server = openServer(tls);
    guard.accept(server, 'connection', report, SCOPE, (socket: Socket) => {
      // Connections handed over by a visitor port have passed the gate already.
      if (gate.find(socket) !== undefined) return;
      const accepted = gate.accept('control', socket);
      if (tls !== null && accepted !== null) gate.handshakeBegins(accepted);
    });
    const answer = (request: IncomingMessage, response: ServerResponse): void => this.#answer(request, response);
    guard.accept(server, 'request', report, SCOPE, answer);
    // Ignores the Expect header; Node would respond with 417 and keep the connection open.
    guard.accept(server, 'checkExpectation', report, SCOPE, answer);
    guard.accept(server, 'upgrade', report, SCOPE, (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    // Closes the socket silently after invalid HTTP or a failed TLS handshake. The server keeps running.
    guard.accept(server, 'clientError', report, SCOPE, (_error, socket: Duplex) => socket.destroy());
    this.#server = server;
    this.#address = await listenOrFault(server, listenOn, { onAcceptError: (error) => gate.onAcceptError(error) });
  }

  /** Replaces the control port's certificate for new handshakes. Open connections are not affected. */
  renew(tls: SecureContextOptions | null): void {
    if (tls !== null && this.#server instanceof TlsServer) this.#server.setSecureContext(tls);
  }

  /** Closes the control port and all its HTTP connections. Upgraded connections stay open. */
  stopAccepting(): void {
    if (this.#server?.listening !== true) return;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Takes over a connection accepted by another port, after its TLS handshake if any. `first` holds bytes read from the socket already. */
  takeOver(socket: Socket, accepted: AcceptedConnection, first: Buffer | null): void {
    const server = this.#server;
    // The port is not open yet or closed already, so the connection is closed as well.
    if (server?.listening !== true) return void socket.destroy();
    if (!this.#options.gate.becomesControl(accepted)) return;
    if (first !== null) socket.unshift(first);
    server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket);
    socket.resume();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const accepted = this.#options.gate.find(request.socket);
    if (accepted === undefined) return void request.socket.destroy();
    const isSpeed = pathOf(request) === SPEED_PATH && accepted.refusal === null;
    const refusal = isSpeed ? this.#options.refusal(request, accepted) : accepted.refusal;
    if (isSpeed && refusal === null) this.#options.onSpeed(request, response, accepted);
    else answerRequest(request, response, refusal);
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    // Node has removed its error listener, and an error without a listener would end the process.
    socket.on('error', ignoreError);
    const accepted = this.#options.gate.find(socket);
    // The connection gate has just closed the connection to make room for another.
    if (accepted === undefined) return void socket.destroy();
    // Clients on visitors' ports are counted here too.
    if (socket instanceof TLSSocket) this.#options.gate.handshakeEnds('control', socket.isSessionReused());
    if (accepted.refusal !== null) return refuseWithFault(socket, accepted.refusal);
    const path = pathOf(request);
    if (path !== CONTROL_PATH && path !== CARRIER_PATH) return refuseUpgrade(socket, 404, `nothing at ${shown(path)}`);
    if (path === CARRIER_PATH) return this.#options.onCarrier(request, socket, head, accepted);
    const refusal = this.#options.refusal(request, accepted);
    if (refusal !== null) return refuseWithFault(socket, refusal);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      return refuseUpgrade(socket, 426, 'this path expects WebSocket');
    }
    socket.setNoDelay(true);
    readThroughScratch(socket);
    this.#webSockets.handleUpgrade(request, socket, head, (ws) => this.#options.onControl(ws, request, accepted));
  }
}

/** Not a closure of the upgrade, because the socket would then keep the request in memory for as long as the client is connected. */
const ignoreError = (): void => {};

const openServer = (tls: SecureContextOptions | null): Server => {
  const limits = {
    maxHeaderSize: CONTROL_HEAD_MAX_BYTES,
    headersTimeout: WIRE_LIMITS.CONTROL_HANDSHAKE_TIMEOUT_MS,
    // Timeout of a whole request, set for speed tests: only requests to /_speed have a body to wait for.
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

/** Answers a request without an upgrade, for example from a browser or a misconfigured health check. */
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

/** Returns the path of a request, also if the request target is an absolute URL, as sent by some proxies. */
const pathOf = ({ url }: IncomingMessage): string | undefined =>
  url?.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0];

const TEXT = { 'content-type': 'text/plain; charset=utf-8', connection: 'close' };

const shown = (path: string | undefined): string => (path ?? '').slice(0, 100).replace(/[^\x21-\x7e]/g, '?');

/** Rejects an upgrade with a line of plain text and closes the socket. */
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
  // Errors of the rejected connection are ignored: the peer may have disconnected.
  socket.on('error', () => {});
  socket.end(head.join('\r\n') + body, () => socket.destroy());
};

/** Rejects a WebSocket or carrier upgrade with a fault's message and a Retry-After header. */
export const refuseWithFault = (socket: Duplex, { status, message }: Fault): void =>
  refuseUpgrade(socket, status, message, RETRY_AFTER_SECS);
