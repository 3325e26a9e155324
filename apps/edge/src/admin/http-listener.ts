// One small HTTP server of the edge, REST or metrics: its time limits, its port, and what it says to bytes that are no request.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { Fault } from '@tunnel/errors';
import { EDGE_LIMITS } from '../limits.ts';
import { type ListenOn, listenOrFault } from './listen-or-fault.ts';

/** How often node looks for requests that are over their time. */
const CHECK_INTERVAL_MS = 5000;

export class HttpListener {
  readonly #server: Server;
  readonly #on: ListenOn;
  #address: { host: string; port: number } | undefined;

  constructor(on: ListenOn, onRequest: RequestListener, unreadableBody: (fault: Fault) => UnreadableAnswer) {
    this.#on = on;
    this.#server = createServer(
      {
        headersTimeout: EDGE_LIMITS.API_HEAD_TIMEOUT_MS,
        requestTimeout: EDGE_LIMITS.API_REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: CHECK_INTERVAL_MS,
      },
      onRequest,
    );
    this.#server.maxConnections = EDGE_LIMITS.API_CONNECTIONS_MAX;
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      answerUnreadable(socket, error, unreadableBody),
    );
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error(`${this.#on.key} is not open`);
    return this.#address;
  }

  async start(): Promise<void> {
    this.#address = await listenOrFault(this.#server, this.#on);
  }

  /** Requests last milliseconds, and the edge has drained before: nothing is waited for. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}

export interface UnreadableAnswer {
  readonly headers: Record<string, string>;
  readonly body: string;
}

const answerUnreadable = (
  socket: Duplex,
  error: NodeJS.ErrnoException,
  unreadableBody: (fault: Fault) => UnreadableAnswer,
): void => {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const reason =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'the request took too long' : 'the request is not HTTP/1.1';
  const { headers, body } = unreadableBody(new Fault('API_BAD_REQUEST', { reason }, { cause: error }));
  const head = { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join('')}\r\n${body}`);
};
