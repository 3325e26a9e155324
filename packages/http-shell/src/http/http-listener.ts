// HTTP server for an API or for metrics: timeouts, port, shutdown, and the response to bytes that are not a valid request.
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type SecureContext, type SecureContextOptions, TLSSocket } from 'node:tls';
import { apiErrorOf } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { ConnectionKind } from '@tunnel/rules/admission';
import type { Clock } from '@tunnel/runtime';
import { type ConnectionGate, RETRY_AFTER_SECS } from '../gate/connection-gate.ts';
import { type ListenOn, listenOrFault } from '../gate/listen-or-fault.ts';
import { ALPN_CHALLENGE, HelloDoor } from '../tls/hello-door.ts';
import { TLS_TERMS } from '../tls/tls-options.ts';

/** Interval at which Node.js checks requests for timeouts. */
const CHECK_INTERVAL_MS = 5000;
const STOP_SWEEP_MS = 20;
/** Error codes of a failed TLS handshake. The peer cannot read a response then. */
const HANDSHAKE_ERROR = /^(ERR_(SSL|TLS)_|EPROTO$)/;

interface RefusalAnswer {
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface HttpListenerOptions {
  readonly on: ListenOn;
  readonly onRequest: RequestListener;
  /** Gate that every connection must pass, and the kind under which a connection is counted. */
  readonly gate: ConnectionGate;
  readonly kind: ConnectionKind;
  readonly bounds: { readonly headTimeoutMs: number; readonly requestTimeoutMs: number };
  /** Renders the response to an invalid request, or to a connection rejected because of a limit. */
  readonly refused: (fault: Fault) => RefusalAnswer;
  /** Specific reasons for invalid requests, by error code of Node.js. Other invalid requests get a general reason. */
  readonly unreadableReasons?: Readonly<Record<string, string>>;
  /**
   * True if requests without Host or with an unknown Expect are passed to `onRequest`. Node.js would reject them without a body; an
   * unknown expectation can be ignored (RFC 9110, 10.1.1).
   */
  readonly takesOddRequests?: boolean;
  /** Time for running requests to finish when the server stops. Default: the server does not wait. */
  readonly grace?: { readonly clock: Clock; readonly ms: number };
  /** True for a TLS server. The certificate is set by `renew` before the start. */
  readonly tls?: boolean;
  /**
   * For TLS servers: distinguishes unencrypted requests and certificate validations by their first message. Without this option, the
   * server closes both.
   */
  readonly door?: ListenerDoor;
  /** Descriptions of errors when opening the port; see listenOrFault. */
  readonly portReasons?: Readonly<Record<string, string>>;
}

export interface ListenerDoor {
  readonly clock: Clock;
  /** Returns the certificate for a certificate authority that validates this name, or null if no validation is pending. Never rejects. */
  readonly challengeFor: (host: string | null) => Promise<SecureContext | null>;
  readonly onClearRequest: RequestListener;
}

export class HttpListener {
  readonly #server: Server;
  readonly #options: HttpListenerOptions;
  #address: { host: string; port: number } | undefined;
  /** Open connections of a server with a door. The HTTP server itself knows a connection only after its first request has begun. */
  readonly #sockets = new Set<Socket>();

  constructor(options: HttpListenerOptions) {
    const { bounds, gate, kind, takesOddRequests = false, tls = false } = options;
    const onRequest: RequestListener = (request, response) => this.#onRequest(request, response);
    this.#options = options;
    const limits = {
      requireHostHeader: !takesOddRequests,
      headersTimeout: bounds.headTimeoutMs,
      requestTimeout: bounds.requestTimeoutMs,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
    };
    this.#server = tls
      ? createTlsServer({ ...limits, ...TLS_TERMS, handshakeTimeout: bounds.headTimeoutMs }, onRequest)
      : createServer(limits, onRequest);
    if (takesOddRequests) this.#server.on('checkExpectation', onRequest);
    if (tls && options.door !== undefined) this.#openDoor(options.door);
    else {
      this.#server.on('connection', (socket: Socket) => {
        const accepted = gate.accept(kind, socket);
        if (tls && accepted !== null) gate.handshakeBegins(accepted);
      });
    }
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => answerUnreadable(socket, error, options));
  }

  get isOpen(): boolean {
    return this.#server.listening;
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#options.on.key} is not open`);
    return this.#address;
  }

  /** Sets the certificate for future handshakes. Open connections are not affected. */
  renew(certificate: SecureContextOptions): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(certificate);
  }

  #openDoor({ clock, challengeFor }: ListenerDoor): void {
    const { gate, kind, bounds } = this.#options;
    const server = this.#server;
    const [handshake] = server.listeners('connection');
    const door = new HelloDoor({
      clock,
      timeoutMs: bounds.headTimeoutMs,
      onHello: (socket, { sni, alpn }) => {
        if (alpn.includes(ALPN_CHALLENGE)) void this.#showChallenge(socket, challengeFor(sni));
        else {
          const accepted = gate.find(socket);
          if (accepted !== undefined && gate.handshakeBegins(accepted)) handshake?.call(server, socket);
        }
      },
      // Emit the event that follows a handshake, so that unencrypted requests are handled in the same way, with the same limits.
      onClear: (socket) => {
        server.emit('secureConnection', socket);
        socket.resume();
      },
    });
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => {
      if (gate.accept(kind, socket) === null) return;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      door.take(socket);
    });
  }

  /** Answers a certificate validation. The handshake is the whole validation, so the connection ends afterwards (RFC 8737, 3). */
  async #showChallenge(socket: Socket, challenge: Promise<SecureContext | null>): Promise<void> {
    const { bounds, door } = this.#options;
    socket.on('error', () => {});
    const timer = door?.clock.setTimeout(() => socket.destroy(), bounds.headTimeoutMs);
    socket.once('close', () => timer?.cancel());
    const secureContext = await challenge;
    if (secureContext === null || socket.destroyed) return void socket.destroy();
    const secured = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: [ALPN_CHALLENGE] });
    secured.on('error', () => socket.destroy());
    secured.once('secure', () => secured.end());
  }

  async start(): Promise<void> {
    const { on, gate, portReasons } = this.#options;
    this.#address = await listenOrFault(this.#server, on, {
      onAcceptError: (error) => gate.onAcceptError(error),
      ...(portReasons === undefined ? {} : { reasons: portReasons }),
    });
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { gate, refused, door } = this.#options;
    const isInClear = door !== undefined && !('encrypted' in request.socket);
    const onRequest = isInClear ? door.onClearRequest : this.#options.onRequest;
    if (response.socket === null) endWithConnection(request.socket, response);
    const connection = gate.find(request.socket);
    if (connection === undefined) return onRequest(request, response);
    if (connection.refusal !== null) return answerRefusal(response, connection.refusal, refused);
    gate.requestBegins(connection);
    response.once('close', () => gate.requestOver(connection));
    onRequest(request, response);
  }

  /** Stops the server. Connections that are still open after the grace period, such as event streams, are cut. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const { grace } = this.#options;
    if (grace === undefined) {
      this.#cutAll();
      await closed;
      return;
    }
    // Close idle connections repeatedly: a connection with a finished request would be kept for a next request.
    const sweep = grace.clock.setInterval(() => this.#server.closeIdleConnections(), STOP_SWEEP_MS);
    const cut = grace.clock.setTimeout(() => this.#cutAll(), grace.ms);
    await closed;
    sweep.cancel();
    cut.cancel();
  }

  #cutAll(): void {
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Pipelined responses that wait for earlier responses, by connection. */
const waitingAnswers = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Destroys pipelined responses when their connection closes. Node.js notifies only the first response; later responses are not attached
 * to the socket yet, so their handlers would never end.
 */
const endWithConnection = (socket: Socket, response: ServerResponse): void => {
  const waiting = waitingAnswers.get(socket) ?? new Set();
  if (!waitingAnswers.has(socket)) {
    waitingAnswers.set(socket, waiting);
    socket.once('close', () => {
      for (const answer of waiting) {
        // The response was attached to the socket meanwhile, and Node.js has destroyed it.
        if (answer.destroyed) continue;
        answer.destroy();
        answer.emit('close');
      }
    });
  }
  waiting.add(response);
  response.once('close', () => waiting.delete(response));
};

/** Renders rejections as JSON with the error body of the APIs and a new request id. */
export const refusedAsJson =
  (newRequestId: () => string) =>
  (fault: Fault): RefusalAnswer => {
    const requestId = newRequestId();
    return {
      headers: { 'content-type': 'application/json', 'x-request-id': requestId },
      body: JSON.stringify(apiErrorOf(fault, requestId)),
    };
  };

const answerRefusal = (response: ServerResponse, fault: Fault, refused: HttpListenerOptions['refused']): void => {
  const { headers, body } = refused(fault);
  response.writeHead(fault.status, {
    ...headers,
    'content-length': Buffer.byteLength(body),
    'retry-after': String(RETRY_AFTER_SECS),
    connection: 'close',
  });
  response.end(body);
};

const answerUnreadable = (
  socket: Duplex,
  error: NodeJS.ErrnoException,
  { refused, unreadableReasons = {} }: HttpListenerOptions,
): void => {
  if (!socket.writable || error.code === 'ECONNRESET' || HANDSHAKE_ERROR.test(error.code ?? '')) {
    socket.destroy();
    return;
  }
  const reason = { ...REASONS, ...unreadableReasons }[error.code ?? ''] ?? 'the request is not HTTP/1.1';
  const { headers, body } = refused(new Fault('API_BAD_REQUEST', { reason }, { cause: error }));
  const head = { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join('')}\r\n${body}`);
};

const REASONS: Readonly<Record<string, string>> = { ERR_HTTP_REQUEST_TIMEOUT: 'the request took too long' };
