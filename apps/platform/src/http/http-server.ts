// The HTTP server of the platform: its port, its time limits, and what it says to bytes that are no request.
import { once } from 'node:events';
import { createServer, type IncomingMessage, maxHeaderSize, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger } from '@tunnel/runtime';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { errorAnswer } from './error-mapper.ts';
import { newRequestId } from './platform-app.ts';
import type { PlatformApp } from './platform-env.ts';

/** How often node looks for requests that are over their time. */
const CHECK_INTERVAL_MS = 5000;
const STOP_SWEEP_MS = 20;

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly app: PlatformApp;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;
  #address: { host: string; port: number } | undefined;

  constructor(options: HttpServerOptions) {
    const { app, logger } = options;
    this.#options = options;
    const answer = getRequestListener((request, env) => app.fetch(request, env), {
      errorHandler: (error) => answerUnread(error, logger),
    });
    const listener = (request: IncomingMessage, response: ServerResponse): void => void answer(request, response);
    this.#server = createServer(
      {
        // Refused by ourselves, in words: node would answer without any.
        requireHostHeader: false,
        headersTimeout: PLATFORM_BOUNDS.HEAD_TIMEOUT_MS,
        requestTimeout: PLATFORM_BOUNDS.REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: CHECK_INTERVAL_MS,
      },
      listener,
    );
    // Node would answer an empty 417; one that nobody knows may be ignored (RFC 9110, 10.1.1).
    this.#server.on('checkExpectation', listener);
    this.#server.maxConnections = PLATFORM_BOUNDS.CONNECTIONS_MAX;
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => answerNoRequest(socket, error, logger));
    this.#server.on('error', (error: Error) => {
      if (this.#address !== undefined) logger.warn({ err: error }, 'a connection could not be accepted');
    });
  }

  get isOpen(): boolean {
    return this.#server.listening;
  }

  get address(): { host: string; port: number } {
    if (this.#address === undefined) throw new Error('[platform] port is not open');
    return this.#address;
  }

  async start(): Promise<void> {
    const { host, port } = this.#options;
    this.#server.listen({ host, port });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      throw portFault(error, host, port);
    }
    const { address, port: opened } = this.#server.address() as AddressInfo;
    this.#address = { host: address, port: opened };
  }

  /** Requests under way get a moment to finish; what is open after it, such as the streams of edges, is cut. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const { clock } = this.#options;
    // A connection whose request has finished would be kept for the next one.
    const sweep = clock.setInterval(() => this.#server.closeIdleConnections(), STOP_SWEEP_MS);
    const cut = clock.setTimeout(() => this.#server.closeAllConnections(), PLATFORM_BOUNDS.HTTP_STOP_GRACE_MS);
    await closed;
    sweep.cancel();
    cut.cancel();
  }
}

const portFault = (error: unknown, host: string, port: number): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  const key = '[platform] port';
  if (code === 'EADDRINUSE') return new Fault('CONFIG_PORT_TAKEN', { host, port, key });
  return new Fault('CONFIG_PORT_DENIED', { host, port, key, reason: code ?? message }, { cause: error });
};

/** Requests that never reached the app: their target or host makes no URL. */
const answerUnread = (error: unknown, logger: Logger): Response => {
  const known = error instanceof RequestError ? badRequest('the request has no valid address', error) : error;
  const requestId = newRequestId();
  const { status, headers, body } = errorAnswer(known, requestId, logger);
  return Response.json(body, { status, headers: { ...headers, 'x-request-id': requestId } });
};

const answerNoRequest = (socket: Duplex, error: NodeJS.ErrnoException, logger: Logger): void => {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const requestId = newRequestId();
  const text = JSON.stringify(errorAnswer(badRequest(reasonOf(error), error), requestId, logger).body);
  const head = [
    'HTTP/1.1 400 Bad Request',
    'content-type: application/json',
    `x-request-id: ${requestId}`,
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
};

const reasonOf = ({ code }: NodeJS.ErrnoException): string => {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'the request took too long';
  if (code === 'HPE_HEADER_OVERFLOW') return `the headers of the request are over ${maxHeaderSize} bytes`;
  return 'the request is not HTTP/1.1';
};

const badRequest = (reason: string, cause: unknown): Fault => new Fault('API_BAD_REQUEST', { reason }, { cause });
